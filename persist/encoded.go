package persist

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dataMark replaces encoded data.
const dataMark = "[DATA]"

// maxRun is the longest run that may be a word or link, in bytes.
const maxRun = 512

// isBinary reports whether a twentieth of text are control characters and
// invalid bytes (U+FFFD by now): more than eight, or more than one if some are
// NUL.
func isBinary(text string) bool {
	odd, all, nul := 0, 0, false
	for _, r := range text {
		all++
		nul = nul || r == 0
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			odd++
		}
	}
	return (odd > 8 || nul && odd > 1) && odd*20 > all
}

// isData are the characters of base64 and hex.
var isData = func() (is [256]bool) {
	for c := range is {
		is[c] = c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '_' || c == '-'
	}
	return is
}()

// cutData replaces runs of more than maxRun bytes of base64 or hex by a mark.
func cutData(text string) string {
	var out strings.Builder
	kept, start := 0, 0
	flush := func(end int) {
		if end-start > maxRun {
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
