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

// isBinary says whether text is data that someone put where text belongs: NUL, or more than eight control characters
// and bytes that are no UTF-8 (which have become U+FFFD by now), if they are a twentieth of it.
func isBinary(text string) bool {
	if printable(text) {
		return false
	}
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

// printable says whether text is ASCII and holds no control character that isBinary counts.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\r' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// isData are the characters of base64 and hex.
var isData = func() (is [256]bool) {
	for c := range is {
		is[c] = c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_' || c == '-'
	}
	return is
}()

// hasRun says whether cutData has anything to do. It looks at the end of where a row would have to be first, so it sees but a
// few bytes of prose.
func hasRun(text string) bool {
	for from := 0; len(text)-from > longestRun; {
		at := from + longestRun
		for at >= from && isData[text[at]] {
			at--
		}
		if at < from {
			return true
		}
		from = at + 1
	}
	return false
}

// cutData puts a mark in place of encoded data: rows of more than longestRun characters of base64 or hex.
func cutData(text string) string {
	if !hasRun(text) {
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
		if isData[text[i]] {
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
