package query

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// "Sorry to bother you again, but where do I park?" asks where the user parks.
// What precedes or follows a question only out of courtesy is not searched for.

//go:embed leadins.txt
var leadInsText string

// maxLeadIn is the maximum length of a message whose lead-in is looked for, in
// bytes.
const maxLeadIn = 600

// leadInWords are the words of a language's lead-ins.
type leadInWords struct {
	language  text.Language
	courtesy  map[string]bool
	questions map[string]bool
}

type leadInTable struct {
	languages []*leadInWords
	phrases   []string // the longest first
}

var leadIns = sync.OnceValue(func() *leadInTable {
	t := &leadInTable{}
	codes := map[string]*leadInWords{}
	of := func(code string) *leadInWords {
		if codes[code] == nil {
			l := conceptLanguages[code]
			switch code {
			case "ru":
				l = text.Russian
			case "ar":
				l = text.Arabic
			}
			codes[code] = &leadInWords{l, map[string]bool{}, map[string]bool{}}
			t.languages = append(t.languages, codes[code])
		}
		return codes[code]
	}
	for line := range strings.Lines(leadInsText) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] == "#" {
			continue
		}
		for _, w := range f[1:] {
			switch code := f[0][:2]; f[0][2] {
			case ':':
				of(code).courtesy[w] = true
			case '?':
				of(code).questions[w] = true
			case '!':
				t.phrases = append(t.phrases, strings.ReplaceAll(w, "_", " "))
			}
		}
	}
	slices.SortStableFunc(t.phrases, func(a, b string) int { return len(b) - len(a) })
	return t
})

// cutLeadIn returns a message without its lead-in and what follows it out of
// courtesy, or all of it if nothing would be left.
func cutLeadIn(message string) string {
	if len(message) > maxLeadIn {
		return message
	}
	if !text.IsASCII(message) {
		message = cutPhrases(message)
	}
	best := message
	for _, l := range leadIns().languages {
		if rest := l.cut(message); len(rest) < len(best) {
			best = rest
		}
	}
	return best
}

// isBetween reports whether a character stands between phrases.
func isBetween(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}

// cutPhrases cuts phrases off both ends of a message.
func cutPhrases(message string) string {
	rest := message
	for again := true; again; {
		again = false
		for _, p := range leadIns().phrases {
			trimmed := strings.TrimLeftFunc(rest, isBetween)
			if r, ok := strings.CutPrefix(trimmed, p); ok {
				rest, again = r, true
				break
			}
			trimmed = strings.TrimRightFunc(rest, isBetween)
			if r, ok := strings.CutSuffix(trimmed, p); ok {
				rest, again = r+rest[len(trimmed):], true
				break
			}
		}
	}
	if strings.TrimFunc(rest, isBetween) == "" {
		return message
	}
	return strings.TrimLeftFunc(rest, isBetween)
}

// cut is cutLeadIn for one language. A lead-in consists of words of courtesy
// and function words; it ends at a sign or before the word that begins the
// question.
func (l *leadInWords) cut(message string) string {
	from, courteous := 0, false
	for at := 0; ; {
		word, start, end := wordAt(message, at)
		if word == "" {
			return message // all of it is courtesy
		}
		if courteous && (l.questions[word] || strings.ContainsAny(message[at:start], ",:;.!?—\n")) {
			from = start
		}
		if l.questions[word] {
			break
		}
		known := l.courtesy[word]
		if !known && !text.IsStop(l.language, word) {
			break
		}
		courteous, at = courteous || known, end
	}
	return l.cutEnd(message[from:])
}

// cutEnd cuts off a last clause of courtesy.
func (l *leadInWords) cutEnd(message string) string {
	at := strings.LastIndexAny(strings.TrimRightFunc(message, isBetween), ",;.!?—\n")
	if at <= 0 {
		return message
	}
	courteous := false
	for end := at; ; {
		word, _, next := wordAt(message, end)
		if word == "" {
			break
		}
		known := l.courtesy[word]
		if !known && !text.IsStop(l.language, word) {
			return message
		}
		courteous, end = courteous || known, next
	}
	if !courteous {
		return message
	}
	if message[at] == '?' {
		at++
	} else if strings.HasSuffix(message, "?") {
		return message[:at] + "?"
	}
	return message[:at]
}

// wordAt returns the first word from a place on, in lower case, and where it
// is.
func wordAt(s string, at int) (word string, start, end int) {
	start = -1
	for i := at; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		inside := !isBetween(r) || start >= 0 && (r == '\'' || r == '’' || r == '-')
		switch {
		case inside && start < 0:
			start = i
		case !inside && start >= 0:
			return strings.ReplaceAll(strings.ToLower(s[start:i]), "’", "'"), start, i
		}
		i += n
	}
	if start < 0 {
		return "", len(s), len(s)
	}
	return strings.ReplaceAll(strings.ToLower(s[start:]), "’", "'"), start, len(s)
}
