package redact

import (
	"strings"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// document is the text of one pass with the matches found in it so far.
type document struct {
	text     string
	redactor *Redactor
	matches  []match
}

func (d *document) enabled(rule ruleID) bool { return d.redactor.enabled[rule>>8][rule&0xff] }

// add records a match. Empty ones and those of disabled rules are ignored.
func (d *document) add(rule ruleID, start, end int) {
	if start < end && d.enabled(rule) {
		d.matches = append(d.matches, match{start: start, end: end, rule: rule})
	}
}

// before returns at most n bytes in front of i, in lower case.
func (d *document) before(i, n int) string { return strings.ToLower(d.text[max(0, i-n):i]) }

// after returns at most n bytes from i on.
func (d *document) after(i, n int) string { return d.text[i:min(len(d.text), i+n)] }

// line returns the rest of the line from i on, at most n bytes.
func (d *document) line(i, n int) string {
	line, _, _ := strings.Cut(d.after(i, n), "\n")
	return line
}

// back returns the start of the run of bytes before i that satisfy in, at most
// limit of them.
func (d *document) back(i, limit int, in func(byte) bool) int {
	from := i
	for from > 0 && i-from < limit && in(d.text[from-1]) {
		from--
	}
	return from
}

// run returns the end of the run of bytes from i on that satisfy in.
func (d *document) run(i int, in func(byte) bool) int { return d.runTo(i, len(d.text), in) }

// runTo is run for at most limit bytes.
func (d *document) runTo(i, limit int, in func(byte) bool) int {
	stop := i
	for stop < len(d.text) && stop-i < limit && in(d.text[stop]) {
		stop++
	}
	return stop
}

// scanner is the state of one pass over a text: the document and one matcher
// for each family of findings.
type scanner struct {
	document
	keyMatcher
	webMatcher
	fileMatcher
	loginMatcher
	assignmentMatcher
	sentenceMatcher
	numberMatcher
	addressMatcher
	// keywordsSeen has a bit for each custom rule, set once one of its keywords
	// occurs.
	keywordsSeen [(MaxCustom + 63) / 64]uint64
}

func newScanner(text string, r *Redactor) *scanner {
	s := &scanner{document: document{text: text, redactor: r}}
	d := &s.document
	s.keyMatcher.document, s.webMatcher.document, s.fileMatcher.document, s.loginMatcher.document = d, d, d, d
	s.assignmentMatcher.document, s.sentenceMatcher.document = d, d
	s.numberMatcher.document, s.addressMatcher.document = d, d
	s.sentences = &s.sentenceMatcher
	return s
}

// scanKeywords runs the action of every keyword in the text.
func (s *scanner) scanKeywords() {
	s.redactor.keywords.each(s.text, func(keyword, start, end int) {
		s.redactor.actions[keyword](s, start, end)
	})
}

// scanTriggers examines the bytes that every piece of personal data contains: a
// digit, an @, a colon; and the dots inside of some keys.
func (s *scanner) scanTriggers() {
	phonesFrom := 0 // digits before it belong to a sequence that was examined already
	for i := 0; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c < '.' || c > '@':
		case isDigit(c):
			i = s.number(i, &phonesFrom) - 1
		case c == '.':
			s.discord(i)
			s.airtable(i)
		case c == '@':
			s.email(i)
		case c == ':':
			s.telegram(i)
			s.ipv6(i)
		}
	}
}

// number examines the digits that begin at i and returns where to continue,
// which is past them.
func (s *scanner) number(i int, phonesFrom *int) int {
	stop := s.run(i, isDigit)
	if i > 0 && isLetter(s.text[i-1]) {
		if i > 1 && isLetter(s.text[i-2]) && stop-i >= 2 {
			if end := s.iban(i - 2); end > stop {
				return end
			}
		}
		return max(stop, s.identity(s.back(i, checkdigit.MaxLetters, isLetter)))
	}
	if stop < len(s.text) && s.text[stop] == '.' && stop-i <= 3 {
		if end := s.ipv4(i); end > i {
			return end
		}
	}
	if end := s.facebook(i, stop); end > i {
		return end
	}
	if end := s.card(i); end > i {
		return end
	}
	if end := s.ssn(i, stop); end > i {
		return end
	}
	if end := s.identity(i); end > i {
		return end
	}
	if i >= *phonesFrom {
		end, found := s.phone(i)
		*phonesFrom = end
		if found {
			return end
		}
	}
	return stop
}

// byteAt returns the byte at i, 0 outside the text.
func byteAt(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

// in returns a function that reports whether a byte is one of set.
func in(set string) func(byte) bool {
	return func(c byte) bool { return strings.IndexByte(set, c) >= 0 }
}

// wordOr returns a function that reports whether a byte is a letter, a digit,
// an underscore or one of set.
func wordOr(set string) func(byte) bool {
	return func(c byte) bool { return isWord(c) || strings.IndexByte(set, c) >= 0 }
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isLetter(c byte) bool {
	c = lower(c)
	return c >= 'a' && c <= 'z'
}

func isAlnum(c byte) bool { return isDigit(c) || isLetter(c) }

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

func isHex(c byte) bool { return isDigit(c) || lower(c) >= 'a' && lower(c) <= 'f' }

func isBase64(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '=' }

func isBase64URL(c byte) bool { return isWord(c) || c == '-' }

func isBlank(c byte) bool { return c == ' ' }

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// isOneOf reports whether word is in list, ignoring case.
func isOneOf(word string, list []string) bool {
	for _, w := range list {
		if len(w) == len(word) && strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}
