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
	text  string
	plain bool // enough alone; otherwise a hint
	n     int  // which of the hints
}

// rolePlayPhrases are those of roleplay.txt, by their first byte.
var rolePlayPhrases = sync.OnceValue(func() *[256][]rolePlayPhrase {
	phrases, plain, hints := new([256][]rolePlayPhrase), false, 0
	for line := range strings.Lines(rolePlayText) {
		switch line = strings.TrimSpace(line); {
		case line == "" || line[0] == '#':
		case line[0] == ':':
			plain = line == ":plain"
		default:
			for text := range strings.SplitSeq(line, "|") {
				phrases[text[0]] = append(phrases[text[0]], rolePlayPhrase{text, plain, hints})
				hints++
			}
		}
	}
	return phrases
})

// RolePlayReach is how much of each text of a system prompt is read for whether
// it sets up a role play, in bytes. Long prompts of assistants mention role play
// further down.
const RolePlayReach = 2 << 10

// minHints is the number of different hints from which a system prompt sets up
// a role play without saying so.
const minHints = 3

// RolePlay reports whether a system prompt sets up a role play, a story or a
// game in which the user plays somebody. may is set if it only hints at one.
func RolePlay(system []string) (plays, may bool) {
	phrases := rolePlayPhrases()
	hints := map[int]bool{}
	for _, text := range system {
		lower := strings.ToLower(strings.ToValidUTF8(text[:min(len(text), RolePlayReach)], ""))
		letter := false // the sign before is one, so that no word begins
		for i := 0; i+1 < len(lower); i++ {
			c := lower[i]
			within := letter
			letter = c >= 'a' && c <= 'z'
			if within && letter {
				continue
			}
			for j := range phrases[c] {
				p := &phrases[c][j]
				switch {
				case p.text[1] != lower[i+1] || !strings.HasPrefix(lower[i:], p.text):
				case !p.plain:
					hints[p.n] = true
				case !negated(lower[:i]):
					return true, true
				}
			}
		}
	}
	return len(hints) >= minHints, len(hints) > 0
}

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
