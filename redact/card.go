package redact

import (
	"strings"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// numberMatcher finds personal data that consists of digits.
type numberMatcher struct{ *document }

// cardLayouts are the groups of digits printed on cards.
var cardLayouts = [...][]int{{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}}

// card finds a payment card number that begins at i and returns its end, or i.
// It has 12 to 19 digits, in a row or grouped as on cards, the prefix of a
// network or a word about cards before it, and a Luhn check digit (ISO/IEC
// 7812).
func (m *numberMatcher) card(i int) int {
	before := byteAt(m.text, i-1)
	if before == '.' || before == '-' && isAlnum(byteAt(m.text, i-2)) || before == '_' && !m.cardWord(i) {
		return i
	}
	end := m.run(i, isDigit)
	digits := m.text[i:end]
	if len(digits) == 4 {
		for _, layout := range cardLayouts {
			if digits, end = m.grouped(i, layout); checkdigit.Luhn([]byte(digits)) {
				break
			}
		}
	}
	if len(digits) < 12 || len(digits) > 19 || !checkdigit.Luhn([]byte(digits)) {
		return i
	}
	if isWord(byteAt(m.text, end)) || byteAt(m.text, end) == '.' && isDigit(byteAt(m.text, end+1)) {
		return i
	}
	if !cardNetwork(digits) && !m.cardWord(i) {
		return i
	}
	m.add(ruleCard, i, end)
	return end
}

// grouped returns the digits at i and their end if they are in groups of these
// sizes with the same separator between all of them, else "".
func (m *numberMatcher) grouped(i int, sizes []int) (digits string, end int) {
	separator := byte(0)
	for k, size := range sizes {
		if k > 0 {
			if separator == 0 {
				separator = byteAt(m.text, i)
			}
			if byteAt(m.text, i) != separator || strings.IndexByte(" -./_", separator) < 0 {
				return "", i
			}
			i++
		}
		stop := m.run(i, isDigit)
		if stop-i != size {
			return "", i
		}
		digits += m.text[i:stop]
		i = stop
	}
	return digits, i
}

// cardNetworks are the issuer prefixes and lengths in use (ISO/IEC 7812
// registrations as the networks publish them).
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

// cardNetwork reports whether digits have the prefix and length of a network.
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

var cardWords = []string{"card", "credit", "debit", "visa", "amex", "maestro", "karte", "carte", "tarjeta", " cc", "pan "}

// cardWord reports whether a word about cards occurs shortly before i.
func (m *numberMatcher) cardWord(i int) bool { return containsAny(m.before(i, 40), cardWords) }

// ssn finds a US social security number and returns its end, or i: AAA-GG-SSSS,
// or after a word that announces it nine digits or other separators. Numbers
// that are never issued (area 000 or 666, group 00, serial 0000) are ignored.
func (m *numberMatcher) ssn(i, stop int) int {
	end, digits, announced := stop, m.text[i:stop], containsAny(m.before(i, 40), []string{"ssn", "social security", "taxpayer"})
	if stop-i == 3 {
		digits, end = m.grouped(i, []int{3, 2, 4})
	}
	if len(digits) != 9 || !announced && byteAt(m.text, i+3) != '-' || strings.IndexByte("/_", byteAt(m.text, i+3)) >= 0 {
		return i
	}
	if c := byteAt(m.text, i-1); isWord(c) || c == '-' || c == '+' {
		return i
	}
	if c := byteAt(m.text, end); isWord(c) || c == '-' && isDigit(byteAt(m.text, end+1)) {
		return i
	}
	if area := digits[:3]; area == "000" || area == "666" || digits[3:5] == "00" || digits[5:] == "0000" || !announced && m.isCount(end) {
		return i
	}
	m.add(ruleSSN, i, end)
	return end
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

// iban finds an account number that begins at i and returns its end, or i. It
// may have blanks or hyphens between its groups, and is checked modulo 97 (ISO
// 13616).
func (m *numberMatcher) iban(i int) int {
	t := m.text
	want := 0
	if i+4 <= len(t) && !isWord(byteAt(t, i-1)) {
		want = ibanLengths[strings.ToUpper(t[i:i+2])]
	}
	var compact [34]byte
	n, end := 0, i
	digits, printed := 0, true // printed in groups of four
	for at := i; at < len(t) && n < want; at++ {
		switch c := t[at]; {
		case c == ' ' || c == '-':
			if t[at-1] == c {
				return i
			}
			printed = printed && n%4 == 0
			continue
		case !isAlnum(c):
			return i
		case isDigit(c):
			digits++
		}
		compact[n] = lower(t[at])
		n++
		end = at + 1
	}
	if want == 0 || n < want || isWord(byteAt(t, end)) || !printed && digits+6 < n || !checkdigit.Mod97(compact[:n]) {
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
