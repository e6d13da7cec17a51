package persist

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dataMark replaces encoded data.
const dataMark = "[DATA]"

// maxRun is the longest run without a space that may be a word or link, in
// bytes.
const maxRun = 512

// isBinary reports whether text holds NUL, or more than eight control
// characters and invalid bytes (U+FFFD by now) that are at least a twentieth of
// it.
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

// printable reports whether text is ASCII that isBinary counts nothing of.
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

// hasRun reports whether cutData would change text. It looks first where a run
// would have to end, so it reads few bytes of prose.
func hasRun(text string) bool {
	for from := 0; len(text)-from > maxRun; {
		at := from + maxRun
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

// cutData replaces runs of more than maxRun bytes of base64 or hex by a mark.
func cutData(text string) string {
	if !hasRun(text) {
		return text
	}
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
