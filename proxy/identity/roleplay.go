package identity

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed roleplay.txt
var rolePlayText string

// rolePlayPhrase is a phrase of roleplay.txt.
type rolePlayPhrase struct {
	text   string
	stem   bool // a longer word may begin with it
	weight int  // enoughHints if it is enough alone
	n      int  // which of the phrases
}

// Weights of phrases, and how much a system prompt needs that sets up a role
// play without saying so.
const (
	weakHint    = 1
	strongHint  = 2
	enoughHints = 4
)

// rolePlayPhrases are those of roleplay.txt, by their first byte.
var rolePlayPhrases = sync.OnceValue(func() *[256][]rolePlayPhrase {
	phrases, weight, n := new([256][]rolePlayPhrase), weakHint, 0
	for line := range strings.Lines(rolePlayText) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line == ":plain":
			weight = enoughHints
		case line == ":strong":
			weight = strongHint
		case line == ":hint":
			weight = weakHint
		default:
			for text := range strings.SplitSeq(line, "|") {
				text, stem := strings.CutSuffix(text, "~")
				phrases[text[0]] = append(phrases[text[0]], rolePlayPhrase{text, stem, weight, n})
				n++
			}
		}
	}
	return phrases
})

// RolePlayReach is how much of each text of a system prompt is read for whether
// it sets up a role play, in bytes. Long prompts of assistants mention role play
// further down.
const RolePlayReach = 2 << 10

// RolePlay reports whether a system prompt sets up a role play, a story or a
// game in which the user plays somebody. may is set if it only hints at one.
func RolePlay(system []string) (plays, may bool) {
	phrases := rolePlayPhrases()
	found, sum, strong := map[int]bool{}, 0, false
	for _, text := range system {
		lower := strings.ToLower(strings.ToValidUTF8(text[:min(len(text), RolePlayReach)], ""))
		end := 0 // of the last hint, within which no other counts
		for i := range lower {
			for j := range phrases[lower[i]] {
				switch p := &phrases[lower[i]][j]; {
				case found[p.n] || !strings.HasPrefix(lower[i:], p.text) || !p.delimited(lower, i):
				case p.weight < enoughHints && i < end:
				case p.weight < enoughHints:
					found[p.n], end = true, i+len(p.text)
					sum += p.weight
					strong = strong || p.weight == strongHint
				case !negated(lower[:i]):
					return true, true
				}
			}
		}
	}
	return strong && sum >= enoughHints, sum > weakHint
}

// delimited reports whether the phrase at text[i:] is no part of a longer word.
func (p *rolePlayPhrase) delimited(text string, i int) bool {
	first, _ := utf8.DecodeRuneInString(p.text)
	last, _ := utf8.DecodeLastRuneInString(p.text)
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+len(p.text):])
	return !(spaced(first) && spaced(before)) && (p.stem || !(spaced(last) && spaced(after)))
}

// spaced reports whether a sign is a letter of a script that separates words.
func spaced(r rune) bool { return unicode.In(r, unicode.Latin, unicode.Cyrillic) }

// negated reports whether a text ends with a negation: "do not", "never".
func negated(before string) bool {
	ws := strings.Fields(before[max(0, len(before)-30):])
	for _, w := range ws[max(0, len(ws)-3):] {
		switch w {
		case "not", "no", "never", "don't", "avoid", "without", "refuse", "nicht", "kein", "keine", "pas", "jamais", "nunca", "не":
			return true
		}
	}
	return false
}

// Narrates reports whether a text has an action between asterisks, as
// characters of a role play do: "*Kira looks up from the sword.*"
func Narrates(text string) bool {
	for range 8 {
		_, after, ok := strings.Cut(text, "*")
		if !ok {
			return false
		}
		inside, rest, closed := strings.Cut(after, "*")
		if !closed {
			return false
		}
		first, _ := utf8.DecodeRuneInString(inside)
		if unicode.IsLetter(first) && len(strings.Fields(inside)) > 2 && !strings.Contains(inside, "\n") && !strings.HasPrefix(rest, "*") {
			return true
		}
		text = rest
	}
	return false
}
