package documents

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// cut splits a text after at most size bytes, at the last end of a sentence, of
// a line, or of a word. Code is split at lines first. The white space at the cut
// is left out, except that code keeps the indentation of its lines. The size is
// at least that of the longest character.
func cut(s string, size int, code bool) (piece, rest string) {
	if len(s) <= size {
		return s, ""
	}
	line := strings.LastIndexByte(s[:size+1], '\n')
	at := line
	if !code {
		at = sentenceEnd(s, size)
	}
	if at < size/4 { // a short sentence would leave most of the passage empty
		at = max(at, line)
	}
	if at < size/4 {
		at = max(at, lastSpace(s, size))
	}
	if at <= 0 {
		at = sentenceEnd(s, size) // of code without blanks
	}
	if at <= 0 {
		at = runeStart(s, size)
	}
	piece, rest = s[:at], s[at:]
	if code {
		return strings.TrimRightFunc(piece, unicode.IsSpace), strings.TrimPrefix(rest, "\n")
	}
	return strings.TrimSpace(piece), strings.TrimLeftFunc(rest, unicode.IsSpace)
}

// lastSpace returns where the last white space in s[:size+1] begins that follows
// a word, or 0.
func lastSpace(s string, size int) int {
	at := strings.LastIndexFunc(s[:runeStart(s, size+1)], unicode.IsSpace)
	if at <= 0 || strings.TrimSpace(s[:at]) == "" {
		return 0
	}
	return at
}

// sentenceEnd returns the end of the last sentence that ends in s[:size], or 0.
// The next item of a list, row of a table or quotation ends one, too.
func sentenceEnd(s string, size int) int {
	for at := runeStart(s, size); at > 0; {
		r, n := utf8.DecodeLastRuneInString(s[:at])
		switch {
		case strings.ContainsRune("。！？…", r) && n > 1:
			return at
		case s[at] == '\n' && isItem(s[at+1:min(len(s), at+1+maxWord)]):
			return at
		case unicode.IsSpace(rune(s[at])) && endsSentence(s[:at]):
			return at
		}
		at -= n
	}
	return 0
}

// maxWord is how far endsSentence looks back for the word before a point, and
// how far sentenceEnd looks ahead for the mark of an item.
const maxWord = 16

// endsSentence reports whether a text ends in a sign that ends a sentence, with
// or without a closing quotation mark or bracket.
func endsSentence(s string) bool {
	s = s[max(0, len(s)-maxWord):]
	s = strings.TrimRight(s, `"')]”’»`)
	switch {
	case strings.HasSuffix(s, "!"), strings.HasSuffix(s, "?"):
		return true
	case strings.HasSuffix(s, "."):
		return !text.EndsInAbbreviation([]byte(strings.TrimRight(s, ".")))
	}
	return false
}
