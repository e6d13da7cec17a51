package redact

import (
	"strings"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// numberMatcher finds personal data that consists of digits.
type numberMatcher struct{ *document }

// maxSeparated is the longest row of digits that may begin with a card's number; a longer one is something else.
const maxSeparated = 40

// separated reads digits that begin at i, one separator allowed between two of them, the same throughout. It appends the
// digits and the offset behind each of them, or returns none where there are more than maxSeparated.
func (m *numberMatcher) separated(i int, digits []byte, ends []int) ([]byte, []int) {
	separator := ""
	for at := i; at < len(m.text); {
		if isDigit(m.text[at]) {
			if len(digits) == maxSeparated {
				return nil, nil
			}
			at++
			digits, ends = append(digits, m.text[at-1]), append(ends, at)
			continue
		}
		found := separatorAt(m.text[at:])
		next := at + len(found)
		if found == "" || separator != "" && found != separator || next >= len(m.text) || !isDigit(m.text[next]) {
			break
		}
		separator, at = found, next
	}
	return digits, ends
}

// separatorAt returns the separator that text begins with, "" if with none.
func separatorAt(text string) string {
	switch text[0] {
	case ' ', '-', '.', '/', '_':
		return text[:1]
	case 0xc2, 0xe2:
		for _, wide := range [...]string{"\u00a0", "\u202f", "\u2011", "\u2013"} {
			if strings.HasPrefix(text, wide) {
				return wide
			}
		}
	}
	return ""
}

// card finds a payment card number that begins at i: 12 to 19 digits, the prefix of a network, the Luhn check digit
// (ISO/IEC 7812). With separators the groups must be those printed on cards. It returns its end, or i.
func (m *numberMatcher) card(i int) int {
	if i > 0 && (m.text[i-1] == '.' || m.text[i-1] == '-' && i > 1 && isAlnum(m.text[i-2]) || m.text[i-1] == '_' && !m.cardWord(i)) {
		return i
	}
	stop := m.run(i, isDigit)
	if n := stop - i; n != 4 && (n < 12 || n > 19) {
		return i
	}
	var digitSpace [maxSeparated]byte
	var endSpace [maxSeparated]int
	digits, ends := m.separated(i, digitSpace[:0], endSpace[:0])
	if stop-i >= 12 {
		digits, ends = []byte(m.text[i:stop]), nil
	} else {
		digits, ends = cardGroups(i, digits, ends)
	}
	n := len(digits)
	if n < 12 || n > 19 || !checkdigit.Luhn(digits) {
		return i
	}
	end := stop
	if ends != nil {
		end = ends[n-1]
	}
	if end < len(m.text) && (isWord(m.text[end]) || m.text[end] == '.' && end+1 < len(m.text) && isDigit(m.text[end+1])) {
		return i
	}
	if !cardNetwork(string(digits)) && !m.cardWord(i) {
		return i
	}
	m.add(ruleCard, i, end)
	return end
}

// cardGroups cuts digits to the groups of a printed card number: 4-4-4-4(-3), 4-6-5 or 4-6-4.
func cardGroups(i int, digits []byte, ends []int) ([]byte, []int) {
	var sizes []int
	last, at := 0, i
	for k, e := range ends {
		if k > 0 && e-at > 1 {
			sizes = append(sizes, k-last)
			last = k
		}
		at = e
	}
	sizes = append(sizes, len(ends)-last)
	for _, want := range [...][]int{{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}} {
		if len(sizes) < len(want) {
			continue
		}
		n, same := 0, true
		for k, w := range want {
			same = same && sizes[k] == w
			n += w
		}
		if same && checkdigit.Luhn(digits[:n]) {
			return digits[:n], ends[:n]
		}
	}
	return nil, nil
}

// cardNetworks are the issuer prefixes and the lengths in use (ISO/IEC 7812 registrations as the networks publish them).
var cardNetworks = []struct {
	low, high string
	lengths   string // each letter is a length, a = 1
}{
	{"4", "4", "mps"},         // Visa 13, 16, 19
	{"51", "55", "p"},         // Mastercard
	{"2221", "2720", "p"},     // Mastercard
	{"34", "34", "o"},         // American Express
	{"37", "37", "o"},         // American Express
	{"300", "305", "np"},      // Diners Club
	{"36", "36", "np"},        // Diners Club
	{"38", "39", "np"},        // Diners Club
	{"6011", "6011", "ps"},    // Discover
	{"644", "659", "ps"},      // Discover, RuPay
	{"62", "62", "pqrs"},      // UnionPay
	{"3528", "3589", "op"},    // JCB
	{"35", "35", "p"},         // JCB
	{"2131", "2131", "o"},     // JCB
	{"1800", "1800", "o"},     // JCB
	{"2200", "2204", "p"},     // Mir
	{"5018", "5018", "lmnop"}, // Maestro
	{"5020", "5020", "lmnop"},
	{"5038", "5038", "lmnop"},
	{"56", "58", "lmnop"},
	{"6304", "6304", "lmnop"},
	{"6390", "6390", "lmnop"},
	{"6759", "6763", "lmnop"},
}

func cardNetwork(digits string) bool {
	length := byte('a' + len(digits) - 1)
	for _, n := range cardNetworks {
		prefix := digits[:len(n.low)]
		if prefix >= n.low && prefix <= n.high && strings.IndexByte(n.lengths, length) >= 0 {
			return true
		}
	}
	return false
}

// cardWord reports a word about cards shortly before i.
func (m *numberMatcher) cardWord(i int) bool {
	before := m.before(i, 40)
	for _, word := range [...]string{"card", "credit", "debit", "visa", "amex", "maestro", "karte", "carte", "tarjeta", " cc", "pan "} {
		if strings.Contains(before, word) {
			return true
		}
	}
	return false
}

// ssn finds a US social security number: AAA-GG-SSSS, or nine digits after a word that says so. Numbers never issued
// (area 000, 666, group 00, serial 0000) are let be. It returns its end, or i.
func (m *numberMatcher) ssn(i, stop int) int {
	t := m.text
	var end int
	switch {
	case stop-i == 3 && len(t) >= i+11 && (t[i+3] == '-' || t[i+3] == ' ' || t[i+3] == '.') && t[i+6] == t[i+3] &&
		m.run(i+4, isDigit) == i+6 && m.run(i+7, isDigit) == i+11:
		end = i + 11
		if t[i+3] != '-' && !m.ssnWord(i) {
			return i
		}
	case stop-i == 9 && m.ssnWord(i):
		end = stop
	default:
		return i
	}
	if i > 0 && (isWord(t[i-1]) || t[i-1] == '-' || t[i-1] == '+') || end < len(t) && (isWord(t[end]) || t[end] == '-' && end+1 < len(t) && isDigit(t[end+1])) {
		return i
	}
	digits := bare.Replace(t[i:end])
	if area := digits[:3]; area == "000" || area == "666" || digits[3:5] == "00" || digits[5:] == "0000" || !m.ssnWord(i) && m.isCount(end) {
		return i
	}
	m.add(ruleSSN, i, end)
	return end
}

// bare takes the signs between a number's groups away.
var bare = strings.NewReplacer("-", "", " ", "", ".", "")

func (m *numberMatcher) ssnWord(i int) bool {
	before := m.before(i, 40)
	return strings.Contains(before, "ssn") || strings.Contains(before, "social security") || strings.Contains(before, "taxpayer")
}

// ibanLengths are those of the SWIFT IBAN registry.
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21, "CR": 22,
	"CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22,
	"GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30,
	"KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27,
	"MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31,
	"SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}

// iban finds an account number that begins at i, with or without blanks between groups, and checks it modulo 97
// (ISO 13616). It returns its end, or i.
func (m *numberMatcher) iban(i int) int {
	t := m.text
	if i > 0 && isWord(t[i-1]) || i+4 > len(t) {
		return i
	}
	want := ibanLengths[strings.ToUpper(t[i:i+2])]
	if want == 0 {
		return i
	}
	var compact [34]byte
	n, end := 0, i
	digits, printed := 0, true // in groups of four
	for at := i; at < len(t) && n < want; at++ {
		c := t[at]
		if c == 0xc2 && at+1 < len(t) && t[at+1] == 0xa0 {
			continue // the first byte of a no-break space
		}
		if c == ' ' || c == '-' || c == 0xa0 && t[at-1] == 0xc2 {
			if t[at-1] == c {
				return i
			}
			printed = printed && n%4 == 0
			continue
		}
		if !isAlnum(c) {
			return i
		}
		if isDigit(c) {
			digits++
		}
		compact[n] = lower(c)
		n++
		end = at + 1
	}
	if n < want || end < len(t) && isWord(t[end]) {
		return i
	}
	if !printed && digits+6 < n || !checkdigit.Mod97(compact[:n]) {
		return i
	}
	m.add(ruleIBAN, i, end)
	return end
}

// identity finds an identity number that begins at i and returns its end, or i.
func (m *numberMatcher) identity(i int) int {
	kind, end := checkdigit.Find(m.text, i, func(kind int) bool { return m.enabled(ruleNational + ruleID(kind)) })
	m.add(ruleNational+ruleID(kind), i, end)
	return end
}
