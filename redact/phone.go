package redact

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// phoneRules validates numbers with libphonenumber's metadata. Its tables cost about 3 MiB from process start on; the
// regexps of a country are compiled when a number of it is first met.
type phoneRules struct{ regions []string }

func knownRegion(region string) bool { return phonenumbers.GetSupportedRegions()[region] }

// Bounds of a phone number: ITU-T E.164 allows 15 digits; below 7 a number is too short to tell.
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// phone judges the sequence of digits and separators that begins at i, or shortly before with + or (. It returns its
// end and whether it was taken for a phone number.
//
// In international format libphonenumber decides. Elsewhere a number needs either a word such as "phone" nearby, or
// separators and validity as a national number, with its trunk prefix 0 or in the 3-3-4 groups of North America.
func (m *numberMatcher) phone(i int) (end int, matched bool) {
	from := i
	for from > 0 && i-from < 2 && (m.text[from-1] == '(' || m.text[from-1] == '+') {
		from--
	}
	if c := byteAt(m.text, from-1); isWord(c) || c == '#' && !m.phoneWord(from) || strings.IndexByte("$€£/=._-@", c) >= 0 && c != 0 {
		return m.run(i, isDigit), false
	}
	end, digits, groups := m.phoneSequence(i)
	number := m.text[from:end]
	stop := m.extension(end)
	if c := byteAt(m.text, stop); isWord(c) || c == '%' || c == '@' || c == '/' {
		return end, false
	}
	if c := byteAt(m.text, stop); c == '-' || c == '.' || c == ':' {
		if next := byteAt(m.text, stop+1); isDigit(next) {
			return end, false
		}
	}
	if len(digits) < minPhoneDigits || len(digits) > maxPhoneDigits || looksLikeDate(number) || distinctBytes(digits) < 2 || isDecimal(number, groups) {
		return end, false
	}
	if years(digits, groups) {
		return end, false
	}
	ok := false
	switch {
	case strings.HasPrefix(number, "+") || strings.HasPrefix(number, "(+"):
		ok = international("+"+digits) || m.phoneWord(from)
	case strings.HasPrefix(digits, "00") && len(digits) >= 10:
		ok = international("+"+digits[2:]) || m.phoneWord(from)
	case len(groups) == 1 && m.isCount(stop):
	case m.phoneWord(from) || m.phoneWordAfter(stop):
		ok = len(groups) > 1 || len(digits) <= 11 || containsAny(m.before(from, 24), messengers) && international("+"+digits)
	case len(groups) > 1:
		ok = m.redactor.phones.national(digits, groups)
	}
	if before := m.before(from, 12); !ok || strings.Contains(before, "isbn") || strings.Contains(before, "issn") {
		return end, false
	}
	if strings.HasPrefix(number, "(") && !strings.Contains(number, ")") {
		from++
	}
	m.add(rulePhone, from, stop)
	return stop, true
}

// phoneSequence reads digit groups with the separators that phone numbers have between them.
func (m *numberMatcher) phoneSequence(i int) (end int, digits string, groups []int) {
	var b [40]byte
	n := 0
	for at := i; at < len(m.text) && n < len(b); {
		stop := at
		for stop < len(m.text) && isDigit(m.text[stop]) && n < len(b) {
			b[n] = m.text[stop]
			n++
			stop++
		}
		if stop == at {
			break
		}
		groups = append(groups, stop-at)
		end = stop
		at = stop
		for at-stop < 3 && at < len(m.text) && strings.IndexByte(" -.()/", m.text[at]) >= 0 {
			at++
		}
		switch gap := m.text[stop:at]; gap {
		case " ", "-", ".", ") ", ")", " (", "/", ")-", " - ", " / ", "-(", ") (":
		default:
			return end, string(b[:n]), groups
		}
	}
	return end, string(b[:n]), groups
}

// extension returns the end of an extension such as x123 or ext. 12 behind end, or end.
func (m *numberMatcher) extension(end int) int {
	if c := byteAt(m.text, end); strings.IndexByte(" eExX#", c) < 0 {
		return end
	}
	if next := byteAt(m.text, end+1); m.text[end] == ' ' && strings.IndexByte("eExX#", next) < 0 {
		return end
	}
	rest := strings.ToLower(m.text[end:min(len(m.text), end+12)])
	trimmed := strings.TrimPrefix(rest, " ")
	for _, mark := range [...]string{"extension ", "ext. ", "ext.", "ext ", "ext", "x", "#"} {
		if after, ok := strings.CutPrefix(trimmed, mark); ok {
			from := end + len(rest) - len(after)
			if stop := m.run(from, isDigit); stop > from && stop-from <= 6 {
				return stop
			}
		}
	}
	return end
}

func international(number string) bool {
	n, err := phonenumbers.Parse(number, phonenumbers.UNKNOWN_REGION)
	return err == nil && phonenumbers.IsPossibleNumber(n)
}

// national reports that digits are a valid number of one of the regions in a form people write there.
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

// phoneWords announce a number, in the languages with most speakers among those who write to assistants.
var phoneWords = []string{
	"phone", "mobile", "cell", "tel:", "tel.", "tel ", "fax", "desk:", "whatsapp", "hotline", "call me", "call us", "call him", "call her",
	"call them", "call at", "text me", "ring me", "reach me", "reach us", "reach him", "reach her", "dial", "answering at", "messages to",
	"message to", "sms to", "sms", "viber", "registered ", "contact number", "my number", "his number", "her number", "our number", "their number",
	"telefon", "handy", "mobil", "móvil", "teléfono", "celular", "téléphone", "portable", "numéro", "телефон", "тел.", "тел:", "电话", "電話", "手机", "전화",
}

// messengers name their users by numbers in international format, which many write without the plus sign.
var messengers = []string{"whatsapp", "viber"}

// phoneWord reports one of phoneWords shortly before i, in the same or the line before.
func (m *numberMatcher) phoneWord(i int) bool {
	return containsAny(strings.ReplaceAll(m.before(i, 40), "iphone", ""), phoneWords)
}

// years reports 2023 2024 and the like.
func years(digits string, groups []int) bool {
	for i, n := range groups {
		if n != 4 || digits[4*i:4*i+2] != "19" && digits[4*i:4*i+2] != "20" {
			return false
		}
	}
	return true
}

// phoneWordAfter reports a label behind the number, as in address blocks.
func (m *numberMatcher) phoneWordAfter(end int) bool {
	after := strings.TrimLeft(strings.ToLower(m.text[end:min(len(m.text), end+12)]), " -,(")
	for _, word := range [...]string{"office", "fax", "mobile", "cell", "home", "work", "phone"} {
		if strings.HasPrefix(after, word) {
			return true
		}
	}
	return false
}

// isDecimal reports 0.16777216 and the like.
func isDecimal(number string, groups []int) bool {
	return len(groups) == 2 && number[groups[0]] == '.'
}

// looksLikeDate reports 2024-05-01, 1.5.2024, 5/1/24 and the like, with or without a time behind it.
func looksLikeDate(number string) bool {
	var parts []int
	var values []int
	n, v := 0, 0
	for i := 0; i <= len(number); i++ {
		if i < len(number) && isDigit(number[i]) {
			n++
			v = v*10 + int(number[i]-'0')
			continue
		}
		if n > 0 {
			parts, values = append(parts, n), append(values, v)
		}
		n, v = 0, 0
	}
	if len(parts) < 3 {
		return false
	}
	year := func(i int) bool { return parts[i] == 4 && values[i] >= 1800 && values[i] < 2200 }
	small := func(i, most int) bool { return parts[i] <= 2 && values[i] >= 1 && values[i] <= most }
	switch {
	case year(0) && small(1, 12) && small(2, 31):
		return true
	case year(2) && (small(0, 31) && small(1, 31)):
		return true
	}
	return false
}
