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
func weighted(modulus int, weights ...int) func(string) bool {
	return func(id string) bool {
		return len(id) == len(weights) && dot(id, weights...)%modulus == 0 && distinct(id) > 1
	}
}

// complement11 returns 11 - sum modulo 11, with 0 for 10 and 11.
func complement11(sum int) int {
	check := 11 - sum%11
	if check > 9 {
		return 0
	}
	return check
}

// day reports whether a day and month exist in some year.
func day(d, m int) bool { return d >= 1 && d <= 31 && m >= 1 && m <= 12 }

// dayAt reports whether a day at offset d and a month at offset m exist.
func dayAt(id string, d, m int) bool { return day(numeric(id, d, d+2), numeric(id, m, m+2)) }

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
	first := dot(id, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	second := dot(id, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	return distinct(id) > 1 && first == digit(id, 9) && second == digit(id, 10)
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
	return id[0] != '0' && year >= 1900 && year <= 2100 && dayAt(id, 12, 10) &&
		"10X98765432"[dot(id, 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)%11] == id[17]
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

func validES(id string) bool {
	number := id[:8]
	if i := strings.IndexByte("XYZ", id[0]); i >= 0 {
		number = strconv.Itoa(i) + id[1:8]
	} else if !isDigit(id[0]) {
		return false
	}
	return "TRWAGMYFPDXBNJZSQVHLCKE"[numeric(number, 0, 8)%23] == id[8]
}

func validFI(id string) bool {
	if len(id) == 11 { // the century was a letter
		if strings.IndexByte("ABCDEFUVWXY", id[6]) < 0 {
			return false
		}
		id = id[:6] + id[7:]
	}
	return dayAt(id, 0, 2) && "0123456789ABCDEFHJKLMNPRSTUVWXY"[numeric(id, 0, 9)%31] == id[9]
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
	c := 0
	for i := range len(id) {
		d := digit(id, len(id)-1-i)
		for range i % 8 {
			d = digit("1576283094", d)
		}
		product := (c + d) % 5
		if c >= 5 {
			product = (c - d + 10) % 5
		}
		if (c < 5) != (d < 5) {
			product += 5
		}
		c = product
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
	return complement11(dot(id, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) == digit(id, 11) && distinct(id) > 1
}

// datedKR checks only the date: since October 2020 the digits after the seventh
// are random, without a check digit.
func datedKR(id string) bool { return dayAt(id, 4, 2) && distinct(id) > 2 }

func validKR(id string) bool {
	return id[6] != '0' && datedKR(id) && (11-dot(id, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)%11)%10 == digit(id, 12)
}

func datedMX(id string) bool { return strings.IndexByte("HMX", id[10]) >= 0 && dayAt(id, 8, 6) }

func validMX(id string) bool {
	const alphabet = "0123456789ABCDEFGHIJKLMN\xd1OPQRSTUVWXYZ" // with Ñ
	sum := 0
	for i := range 17 {
		sum += strings.IndexByte(alphabet, id[i]) * (18 - i)
	}
	return datedMX(id) && (10-sum%10)%10 == digit(id, 17)
}

func validNO(id string) bool {
	return day(numeric(id, 0, 2)%40, numeric(id, 2, 4)%40) &&
		dot(id, 3, 7, 6, 1, 8, 9, 4, 5, 2, 1)%11 == 0 && dot(id, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)%11 == 0
}

func validPT(id string) bool {
	return id[0] != '0' && complement11(dot(id, 9, 8, 7, 6, 5, 4, 3, 2)) == digit(id, 8)
}

func validRO(id string) bool {
	check := dot(id, 2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9) % 11
	return id[0] != '0' && dayAt(id, 5, 3) && (check == digit(id, 12) || check == 10 && id[12] == '1')
}

func validINN(id string) bool {
	return dot(id, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == digit(id, 10) &&
		dot(id, 3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)%11%10 == digit(id, 11) && distinct(id) > 1
}

func validSNILS(id string) bool {
	return dot(id, 9, 8, 7, 6, 5, 4, 3, 2, 1)%101%100 == numeric(id, 9, 11) && distinct(id[:9]) > 1
}

func validSE(id string) bool {
	id = id[len(id)-10:]
	return day(numeric(id, 4, 6)%60, numeric(id, 2, 4)) && validLuhn(id)
}

func validSG(id string) bool {
	letters, offset := "JZIHGFEDCBA", 0
	switch id[0] {
	case 'S':
	case 'T':
		offset = 4
	case 'F':
		letters = "XWUTRQPNMLK"
	case 'G':
		letters, offset = "XWUTRQPNMLK", 4
	default:
		return false
	}
	return letters[(dot(id[1:], 2, 7, 6, 5, 4, 3, 2)+offset)%11] == id[8]
}

func validTR(id string) bool {
	odd, even := dot(id, 1, 0, 1, 0, 1, 0, 1, 0, 1), dot(id, 0, 1, 0, 1, 0, 1, 0, 1)
	tenth := ((odd*7-even)%10 + 10) % 10
	return id[0] != '0' && tenth == digit(id, 9) && (odd+even+tenth)%10 == digit(id, 10)
}

func validTW(id string) bool {
	place := 10 + strings.IndexByte("ABCDEFGHJKLMNPQRSTUVXYWZIO", id[0])
	sum := place/10 + place%10*9 + dot(id[1:], 8, 7, 6, 5, 4, 3, 2, 1, 1)
	return strings.IndexByte("1289", id[1]) >= 0 && sum%10 == 0
}

func validZA(id string) bool {
	return dayAt(id, 4, 2) && (id[10] == '0' || id[10] == '1') && validLuhn(id)
}
