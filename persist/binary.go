package persist

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dataMark stands where encoded data stood.
const dataMark = "[DATA]"

// longestRun is the longest row of characters without a space that is taken for a word, a link or a hash, in bytes.
const longestRun = 512

// binary says whether text is data that someone put where text belongs: NUL, or more than eight control characters
// and bytes that are no UTF-8 (which have become U+FFFD by now), if they are a twentieth of it.
func binary(text string) bool {
	odd, all := 0, 0
	for _, r := range text {
		all++
		if r == 0 {
			return true
		}
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			odd++
		}
	}
	return odd > 8 && odd*20 > all
}

// cutData puts a mark in place of encoded data: rows of more than longestRun characters of base64 or hex.
func cutData(text string) string {
	if len(text) <= longestRun {
		return text
	}
	var out strings.Builder
	kept, start := 0, 0
	flush := func(end int) {
		if end-start > longestRun {
			out.WriteString(text[kept:start])
			out.WriteString(dataMark)
			kept = end
		}
	}
	for i := range len(text) {
		c := text[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_' || c == '-' {
			continue
		}
		flush(i)
		start = i + 1
	}
	flush(len(text))
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}
