package redact

import (
	"regexp"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// phoneRules validates numbers with libphonenumber's metadata. Its tables cost
// about 3 MiB from process start; the patterns of a country are compiled when
// one of its numbers first occurs.
type phoneRules struct{ regions []string }

func knownRegion(region string) bool { return phonenumbers.GetSupportedRegions()[region] }

// Limits of a phone number: ITU-T E.164 allows 15 digits; fewer than 7 are
// ambiguous.
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// phone examines the sequence of digits and separators at i, including a + or (
// just before. It returns its end and whether it is a phone number.
//
// In international format libphonenumber decides. Otherwise a number needs a
// word such as "phone" nearby, or separators and validity as a national number,
// with its trunk prefix 0 or in the 3-3-4 groups of North America.
func (m *numberMatcher) phone(i int) (end int, found bool) {
	from := m.back(i, 2, in("(+"))
	if c := byteAt(m.text, from-1); isWord(c) || c == '#' && !m.phoneWord(from) || c != 0 && strings.IndexByte("$€£/=._-@", c) >= 0 {
		return m.run(i, isDigit), false
	}
	end, digits, groups := m.phoneSequence(i)
	number := m.text[from:end]
	stop := m.extension(end)
	switch c := byteAt(m.text, stop); {
	case isWord(c) || c == '%' || c == '@' || c == '/':
		return end, false
	case (c == '-' || c == '.' || c == ':') && isDigit(byteAt(m.text, stop+1)):
		return end, false
	}
	decimal := len(groups) == 2 && number[groups[0]] == '.' // 0.16777216
	if len(digits) < minPhoneDigits || len(digits) > maxPhoneDigits || date.MatchString(number) || distinctBytes(digits) < 2 || decimal || areYears(digits, groups) {
		return end, false
	}
	ok := false
	switch {
	case strings.HasPrefix(number, "+") || strings.HasPrefix(number, "(+"):
		ok = isInternational("+"+digits) || m.phoneWord(from)
	case strings.HasPrefix(digits, "00") && len(digits) >= 10:
		ok = isInternational("+"+digits[2:]) || m.phoneWord(from)
	case len(groups) == 1 && m.isCount(stop):
	case m.phoneWord(from) || phoneLabel.MatchString(m.after(stop, 12)):
		ok = len(groups) > 1 || len(digits) <= 11 || containsAny(m.before(from, 24), messengers) && isInternational("+"+digits)
	case len(groups) > 1:
		ok = m.redactor.phones.national(digits, groups)
	}
	if !ok || containsAny(m.before(from, 12), []string{"isbn", "issn"}) {
		return end, false
	}
	if strings.HasPrefix(number, "(") && !strings.Contains(number, ")") {
		from++
	}
	m.add(rulePhone, from, stop)
	return stop, true
}

// phoneSequence reads groups of digits with the separators of phone numbers. It
// returns their end, the digits, and the sizes of the groups.
func (m *numberMatcher) phoneSequence(i int) (end int, digits string, groups []int) {
	const limit = 40
	for len(digits) < limit {
		end = m.runTo(i, limit-len(digits), isDigit)
		digits += m.text[i:end]
		groups = append(groups, end-i)
		i = m.runTo(end, 3, in(" -.()/"))
		switch m.text[end:i] {
		case " ", "-", ".", ") ", ")", " (", "/", ")-", " - ", " / ", "-(", ") (":
		default:
			return end, digits, groups
		}
		if !isDigit(byteAt(m.text, i)) {
			break
		}
	}
	return end, digits, groups
}

var extensionMark = regexp.MustCompile(`^(?i: ?(?:extension |ext\. ?|ext ?|x|#)\d{1,6})`)

// extension returns the end of an extension such as x123 or ext. 12 at end, or
// end.
func (m *numberMatcher) extension(end int) int {
	c, next := byteAt(m.text, end), byteAt(m.text, end+1)
	if strings.IndexByte("eExX#", c) < 0 && (c != ' ' || strings.IndexByte("eExX#", next) < 0) {
		return end
	}
	n := len(extensionMark.FindString(m.after(end, 20)))
	if isDigit(byteAt(m.text, end+n)) {
		return end
	}
	return end + n
}

func isInternational(number string) bool {
	n, err := phonenumbers.Parse(number, phonenumbers.UNKNOWN_REGION)
	return err == nil && phonenumbers.IsPossibleNumber(n)
}

// national reports whether digits are a valid number of one of the regions in a
// form that is used there.
func (p phoneRules) national(digits string, groups []int) bool {
	northAmerican := len(digits) == 10 && len(groups) == 3 && groups[0] == 3 && groups[1] == 3
	if !northAmerican && digits[0] != '0' {
		return false
	}
	for _, region := range p.regions {
		if (region == "US" || region == "CA") != northAmerican {
			continue
		}
		n, err := phonenumbers.Parse(digits, region)
		if err == nil && (northAmerican && phonenumbers.IsPossibleNumber(n) || phonenumbers.IsValidNumberForRegion(n, region)) {
			return true
		}
	}
	return false
}

// phoneWords announce a number, in the most common languages of users.
var phoneWords = []string{
	"phone", "mobile", "cell", "tel:", "tel.", "tel ", "fax", "desk:", "whatsapp", "hotline", "call me", "call us", "call him", "call her",
	"call them", "call at", "text me", "ring me", "reach me", "reach us", "reach him", "reach her", "dial", "answering at", "messages to",
	"message to", "sms to", "sms", "viber", "registered ", "contact number", "my number", "his number", "her number", "our number", "their number",
	"telefon", "handy", "mobil", "móvil", "teléfono", "celular", "téléphone", "portable", "numéro", "телефон", "тел.", "тел:", "电话", "電話", "手机", "전화",
}

// messengers identify users by international numbers, often without the plus
// sign.
var messengers = []string{"whatsapp", "viber"}

// phoneWord reports whether one of phoneWords occurs shortly before i.
func (m *numberMatcher) phoneWord(i int) bool {
	return containsAny(strings.ReplaceAll(m.before(i, 40), "iphone", ""), phoneWords)
}

// phoneLabel matches a label after a number, as in address blocks.
var phoneLabel = regexp.MustCompile(`^[ \-,(]*(?i:office|fax|mobile|cell|home|work|phone)`)

// phoneLink finds the number of a link that opens a chat with it.
func (m *numberMatcher) phoneLink(_, end int) {
	i := m.runTo(end, 3, in("+%2B"))
	if stop := m.run(i, isDigit); stop-i >= minPhoneDigits && stop-i <= maxPhoneDigits {
		m.add(rulePhone, i, stop)
	}
}

// areYears reports whether digits are years: 2023 2024.
func areYears(digits string, groups []int) bool {
	for i, n := range groups {
		if n != 4 || digits[4*i:4*i+2] != "19" && digits[4*i:4*i+2] != "20" {
			return false
		}
	}
	return true
}

// date matches numbers such as 2024-05-01, 1.5.2024 and 5/1/2024, also with a
// time after them.
var date = regexp.MustCompile(`^\D*(?:(?:1[89]|2[01])\d\d\D+(?:0?[1-9]|1[0-2])\D+(?:0?[1-9]|[12]\d|3[01])(?:\D|$)` +
	`|(?:(?:0?[1-9]|[12]\d|3[01])\D+){2}(?:1[89]|2[01])\d\d(?:\D|$))`)

// countNouns are nouns that large numbers count. A number before one is not a
// phone or social security number.
var countNouns = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`users people customers members accounts messages downloads subscribers followers views visits clicks installs requests
		calls events rows records bytes tokens points miles steps likes votes copies shares units pixels years nutzer benutzer menschen kunden mitglieder
		nachrichten anfragen punkte aufrufe zeilen utilisateurs personnes abonnés téléchargements lignes usuarios personas clientes mensajes descargas puntos filas`) {
		m[w] = true
	}
	return m
}()

// countAdjectives may occur between a number and what it counts.
const countAdjectives = " active monthly daily registered unique million billion aktive aktiven "

// isCount reports whether the number that ends at i counts something.
func (m *numberMatcher) isCount(i int) bool {
	if byteAt(m.text, i) != ' ' {
		return false
	}
	fields := strings.Fields(strings.ToLower(m.after(i, 40)))
	for len(fields) > 0 && strings.Contains(countAdjectives, " "+fields[0]+" ") {
		fields = fields[1:]
	}
	return len(fields) > 0 && countNouns[strings.TrimRight(fields[0], `.,;:!?)"'`)]
}
