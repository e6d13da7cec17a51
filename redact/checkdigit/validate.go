package checkdigit

import (
	"strconv"
	"strings"
)

// The checks of identity numbers. Each function gets an id of the right length,
// with digits and capitals at the right places. Ids that are never issued (all
// the same digit) are refused where they would pass.

func digit(id string, i int) int { return int(id[i] - '0') }

// numeric returns the number id[from:to].
func numeric(id string, from, to int) int {
	n := 0
	for i := from; i < to; i++ {
		n = n*10 + digit(id, i)
	}
	return n
}

// dot returns the sum of the first digits of id multiplied by weights.
func dot(id string, weights ...int) int {
	sum := 0
	for i, w := range weights {
		sum += w * digit(id, i)
	}
	return sum
}

// weighted returns a check that the weighted sum of all digits is a multiple of
// modulus.
func weighted(weights string, modulus int) func(string) bool {
	var list []int
	for w := range strings.FieldsSeq(weights) {
		n, err := strconv.Atoi(w)
		if err != nil {
			panic(err) // a constant of the program
		}
		list = append(list, n)
	}
	return func(id string) bool {
		return len(id) == len(list) && dot(id, list...)%modulus == 0 && distinct(id) > 1
	}
}

// day reports whether a day and month exist in some year.
func day(d, m int) bool { return d >= 1 && d <= 31 && m >= 1 && m <= 12 }

func validLuhn(id string) bool { return Luhn([]byte(id)) }

// mod1110 checks ISO 7064 modulo 11,10.
func mod1110(id string) bool {
	p := 10
	for i := range len(id) - 1 {
		if p = (p + digit(id, i)) % 10; p == 0 {
			p = 10
		}
		p = p * 2 % 11
	}
	return (11-p)%10 == digit(id, len(id)-1) && distinct(id) > 1
}

func validAT(id string) bool {
	sum := dot(id, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6)
	return id[0] != '0' && sum%11 == digit(id, 3) && day(numeric(id, 4, 6), numeric(id, 6, 8)%20)
}

func validBE(id string) bool {
	n, check := numeric(id, 0, 9), numeric(id, 9, 11)
	month := numeric(id, 2, 4) % 20
	return month <= 12 && numeric(id, 4, 6) <= 31 && (97-n%97 == check || 97-(2_000_000_000+n)%97 == check)
}

func validCPF(id string) bool {
	check := func(n, top int) bool {
		sum := 0
		for i := range n {
			sum += digit(id, i) * (top - i)
		}
		return sum*10%11%10 == digit(id, n)
	}
	return distinct(id) > 1 && check(9, 10) && check(10, 11)
}

func validCH(id string) bool {
	return strings.HasPrefix(id, "756") && dot(id, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)%10 == 0
}

func validCL(id string) bool {
	n := len(id) - 1
	sum := 0
	for i := range n {
		sum += digit(id, n-1-i) * (2 + i%6)
	}
	return "0123456789K0"[11-sum%11] == id[n] && distinct(id[:n]) > 1
}

func validCN(id string) bool {
	year := numeric(id, 6, 10)
	if id[0] == '0' || year < 1900 || year > 2100 || !day(numeric(id, 12, 14), numeric(id, 10, 12)) {
		return false
	}
	return "10X98765432"[dot(id, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)%11] == id[17]
}

func validCZ(id string) bool {
	month := numeric(id, 2, 4)
	for _, offset := range []int{70, 50, 20} { // women, and overflow since 2004
		if month > offset {
			month -= offset
			break
		}
	}
	n := numeric(id, 0, 10)
	return day(numeric(id, 4, 6), month) && (n%11 == 0 || numeric(id, 0, 9)%11 == 10 && id[9] == '0')
}

// validDE also requires one digit twice or three times among the first ten.
func validDE(id string) bool {
	return id[0] != '0' && distinct(id[:10]) >= 8 && distinct(id[:10]) <= 9 && mod1110(id)
}

const spanishLetters = "TRWAGMYFPDXBNJZSQVHLCKE"

func validES(id string) bool {
	number := id[:8]
	if i := strings.IndexByte("XYZ", id[0]); i >= 0 {
		number = strconv.Itoa(i) + id[1:8]
	} else if !isDigit(id[0]) {
		return false
	}
	return spanishLetters[numeric(number, 0, 8)%23] == id[8]
}

func validFI(id string) bool {
	if len(id) == 11 { // the century was a letter
		if strings.IndexByte("ABCDEFUVWXY", id[6]) < 0 {
			return false
		}
		id = id[:6] + id[7:]
	}
	return day(numeric(id, 0, 2), numeric(id, 2, 4)) && "0123456789ABCDEFHJKLMNPRSTUVWXY"[numeric(id, 0, 9)%31] == id[9]
}

func validFR(id string) bool {
	month := numeric(id, 3, 5)
	return strings.IndexByte("12378", id[0]) >= 0 && (month >= 1 && month <= 12 || month >= 20 && month <= 42 || month >= 50) &&
		97-numeric(id, 0, 13)%97 == numeric(id, 13, 15)
}

func validNHS(id string) bool {
	check := 11 - dot(id, 10, 9, 8, 7, 6, 5, 4, 3, 2)%11
	return check%11 == digit(id, 9) && check != 10 && distinct(id) > 1
}

func validIE(id string) bool {
	sum := dot(id, 8, 7, 6, 5, 4, 3, 2)
	if len(id) == 9 && id[8] != 'W' {
		sum += 9 * int(id[8]-'A'+1)
	}
	return "WABCDEFGHIJKLMNOPQRSTUV"[sum%23] == id[7]
}

// validIN is Verhoeff's check: the digits, permuted by position, are multiplied
// in the dihedral group of order 10.
func validIN(id string) bool {
	product := func(a, b int) int {
		switch {
		case a < 5 && b < 5:
			return (a + b) % 5
		case a < 5:
			return 5 + (a+b)%5
		case b < 5:
			return 5 + (a-b+5)%5
		}
		return (a - b + 5) % 5
	}
	c := 0
	for i := range len(id) {
		d := digit(id, len(id)-1-i)
		for range i % 8 {
			d = digit("1576283094", d)
		}
		c = product(c, d)
	}
	return id[0] >= '2' && c == 0
}

func validIT(id string) bool {
	const odd = "\x01\x00\x05\x07\x09\x0d\x0f\x11\x13\x15\x02\x04\x12\x14\x0b\x03\x06\x08\x0c\x0e\x10\x0a\x16\x19\x18\x17" // by letter; digits count as A to J
	sum := 0
	for i := range 15 {
		v := int(id[i] - 'A')
		if isDigit(id[i]) {
			v = digit(id, i)
		}
		if i%2 == 0 {
			v = int(odd[v])
		}
		sum += v
	}
	return strings.IndexByte("ABCDEHLMPRST", id[8]) >= 0 && int(id[15]-'A') == sum%26
}

func validJP(id string) bool {
	check := 11 - dot(id, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)%11
	if check > 9 {
		check = 0
	}
	return check == digit(id, 11) && distinct(id) > 1
}

// datedKR checks only the date: since October 2020 the digits after the seventh
// are random, without a check digit.
func datedKR(id string) bool { return day(numeric(id, 4, 6), numeric(id, 2, 4)) && distinct(id) > 2 }

func validKR(id string) bool {
	return id[6] != '0' && datedKR(id) && (11-dot(id, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)%11)%10 == digit(id, 12)
}

func validMX(id string) bool {
	const alphabet = "0123456789ABCDEFGHIJKLMN\xd1OPQRSTUVWXYZ" // with Ñ in its place
	sum := 0
	for i := range 17 {
		sum += strings.IndexByte(alphabet, id[i]) * (18 - i)
	}
	return datedMX(id) && (10-sum%10)%10 == digit(id, 17)
}

func datedMX(id string) bool {
	return (id[10] == 'H' || id[10] == 'M' || id[10] == 'X') && day(numeric(id, 8, 10), numeric(id, 6, 8))
}

func validNO(id string) bool {
	d, m := numeric(id, 0, 2), numeric(id, 2, 4)
	return day(d%40, m%40) && (dot(id, 3, 7, 6, 1, 8, 9, 4, 5, 2, 1))%11 == 0 && dot(id, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func validPT(id string) bool {
	check := 11 - dot(id, 9, 8, 7, 6, 5, 4, 3, 2)%11
	if check > 9 {
		check = 0
	}
	return id[0] != '0' && check == digit(id, 8)
}

func validRO(id string) bool {
	check := dot(id, 2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9) % 11
	if check == 10 {
		check = 1
	}
	return id[0] != '0' && day(numeric(id, 5, 7), numeric(id, 3, 5)) && check == digit(id, 12)
}

func validINN(id string) bool {
	return dot(id, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == digit(id, 10) && dot(id, 3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == digit(id, 11) && distinct(id) > 1
}

func validSNILS(id string) bool {
	return dot(id, 9, 8, 7, 6, 5, 4, 3, 2, 1)%101%100 == numeric(id, 9, 11) && distinct(id[:9]) > 1
}

func validSE(id string) bool {
	id = id[len(id)-10:]
	d := numeric(id, 4, 6)
	return day(d%60, numeric(id, 2, 4)) && validLuhn(id)
}

func validSG(id string) bool {
	sum := 0
	for i, w := range []int{2, 7, 6, 5, 4, 3, 2} {
		sum += w * digit(id, i+1)
	}
	switch id[0] {
	case 'S':
		return "JZIHGFEDCBA"[sum%11] == id[8]
	case 'T':
		return "JZIHGFEDCBA"[(sum+4)%11] == id[8]
	case 'F':
		return "XWUTRQPNMLK"[sum%11] == id[8]
	case 'G':
		return "XWUTRQPNMLK"[(sum+4)%11] == id[8]
	}
	return false
}

func validTR(id string) bool {
	odd := digit(id, 0) + digit(id, 2) + digit(id, 4) + digit(id, 6) + digit(id, 8)
	even := digit(id, 1) + digit(id, 3) + digit(id, 5) + digit(id, 7)
	tenth := ((odd*7-even)%10 + 10) % 10
	return id[0] != '0' && tenth == digit(id, 9) && (odd+even+tenth)%10 == digit(id, 10)
}

func validTW(id string) bool {
	place := 10 + strings.IndexByte("ABCDEFGHJKLMNPQRSTUVXYWZIO", id[0])
	sum := place/10 + place%10*9
	for i, w := range []int{8, 7, 6, 5, 4, 3, 2, 1, 1} {
		sum += w * digit(id, i+1)
	}
	return (id[1] == '1' || id[1] == '2' || id[1] == '8' || id[1] == '9') && sum%10 == 0
}

func validZA(id string) bool {
	return day(numeric(id, 4, 6), numeric(id, 2, 4)) && (id[10] == '0' || id[10] == '1') && validLuhn(id)
}
