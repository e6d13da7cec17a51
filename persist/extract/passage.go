package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// PassageRunes is the longest passage, in characters, marks of a cut
	// included.
	PassageRunes = 1024
	// CutMark is put at the end of a passage that continues in the next one,
	// and at the start of that one.
	CutMark = "..."
)

// Uncut removes marks of a cut, and reports whether there was one at either
// end.
func Uncut(passage string) (text string, continues, continued bool) {
	text, continues = strings.CutPrefix(passage, CutMark)
	text, continued = strings.CutSuffix(text, CutMark)
	return text, continues, continued
}

// NextPassage cuts the first passage off a text, which has no white space
// around it, and returns it and the rest. It cuts behind a sentence, else
// behind a word. continues marks a passage that continues another.
func NextPassage(text string, continues bool) (passage, rest string) {
	lead := ""
	if continues {
		lead = CutMark
	}
	room := PassageRunes - len(lead)
	if len(text) <= room*utf8.UTFMax && utf8.RuneCountInString(text) <= room { // a long text is not counted
		return lead + text, ""
	}
	at := cutPosition(text, room-len(CutMark))
	return lead + strings.TrimRightFunc(text[:at], unicode.IsSpace) + CutMark, strings.TrimLeftFunc(text[at:], unicode.IsSpace)
}

// cutPosition returns where to cut text, at most limit characters from its
// start: behind the last paragraph or sentence that ends in the second half,
// else behind its last word, else at the limit.
func cutPosition(text string, limit int) int {
	half, end, n := 0, 0, 0
	for i := range text {
		if n == limit/2 {
			half = i
		}
		if n == limit {
			end = i
			break
		}
		n++
	}
	sentence, word := 0, 0
	for i, r := range text[half:end] {
		at := half + i
		switch {
		case r == '\n':
			sentence = at + 1
		case strings.ContainsRune("。！？", r):
			sentence = at + utf8.RuneLen(r)
		case unicode.IsSpace(r):
			word = at
			if before := strings.TrimRight(text[:at], `"')]`); before != "" && strings.IndexByte(".!?", before[len(before)-1]) >= 0 {
				sentence = at
			}
		}
	}
	switch {
	case sentence > 0:
		return sentence
	case word > 0:
		return word
	}
	return end
}
