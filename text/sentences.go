package text

import (
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Sentences returns an iterator over the sentences of s, with their numbers.
// Each keeps the sign that ends it and loses the space around it. A line ends a
// sentence, too. A quotation belongs to one sentence with who said it: 'Julia
// wrote: "I got the job! I start in May"'.
func Sentences(s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) { readSentences(s, yield) }
}

func readSentences(s string, yield func(int, string) bool) {
	start, count := 0, 0
	cut := func(end int) bool {
		sentence := strings.TrimSpace(s[start:end])
		if start = end; sentence == "" {
			return true
		}
		count++
		return yield(count-1, sentence)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if to := QuotationEnd(s, i); to > 0 {
			if i = to; endsSentence(s, to) && !cut(to) {
				return
			}
			continue
		}
		i += n
		switch r {
		case '\n', '\r', '。', '！', '？', '…', '؟', '।', '۔':
			if !cut(i) {
				return
			}
		case '.', '!', '?':
			for i < len(s) && strings.IndexByte(`.!?"')]`, s[i]) >= 0 {
				i++
			}
			if i < len(s) && s[i] != ' ' && s[i] != '\n' && s[i] != '\t' {
				continue
			}
			if (r != '.' || !abbreviates(s[start:i], s[i:])) && !cut(i) {
				return
			}
		}
	}
	cut(len(s))
}

// maxQuotation is the longest quotation that isn't split, in bytes.
const maxQuotation = 400

// QuotationEnd returns the end of the quotation that the sign at s[at] opens,
// or 0 if it opens none that ends on the same line.
func QuotationEnd(s string, at int) int {
	closing := ""
	sign, size := utf8.DecodeRuneInString(s[at:])
	switch sign {
	case '"':
		if before, _ := utf8.DecodeLastRuneInString(s[:at]); at > 0 && before != ' ' && before != '(' && before != '\n' && before != ':' {
			return 0
		}
		closing = `"`
	case '“', '„':
		closing = "”“\""
	case '«':
		closing = "»"
	case '「':
		closing = "」"
	default:
		return 0
	}
	from := at + size
	rest, _, _ := strings.Cut(s[from:min(len(s), from+maxQuotation)], "\n")
	end := -1
	for _, c := range closing { // IndexAny takes ten times as long if it finds nothing, which every sign of a text may cost
		if i := strings.IndexRune(rest, c); i >= 0 && (end < 0 || i < end) {
			end = i
		}
	}
	if end <= 0 {
		return 0
	}
	_, n := utf8.DecodeRuneInString(rest[end:])
	to := from + end + n
	if after, _ := utf8.DecodeRuneInString(s[to:]); sign == '"' && to < len(s) && (unicode.IsLetter(after) || unicode.IsDigit(after)) {
		return 0 // 5" by 7"
	}
	return to
}

// endsSentence reports whether a quotation that ends at s[:to] ends the
// sentence around it.
func endsSentence(s string, to int) bool {
	quoted := strings.TrimRight(s[:to], "\"”“»」")
	last, _ := utf8.DecodeLastRuneInString(quoted)
	if !strings.ContainsRune(".!?。！？…؟।۔", last) {
		return false
	}
	rest := strings.TrimLeft(s[to:], " ")
	next, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || rest != s[to:] && unicode.IsUpper(next)
}

// abbreviates reports whether the point at the end of a sentence so far, before
// rest, does not end it.
func abbreviates(sentence, rest string) bool {
	sentence = strings.TrimSuffix(sentence, ".")
	at := strings.LastIndexAny(sentence, " \t(")
	last := sentence[at+1:]
	switch {
	case last == "":
		return false
	case len(last) == 1 && unicode.IsUpper(rune(last[0])) && at >= 0:
		return last != "I"
	case strings.Trim(last, "0123456789") == "": // "3. März", "12. bis"; at the start "1." numbers an item of a list
		next, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		first, _ := utf8.DecodeRuneInString(next)
		return len(last) <= 2 && (at < 0 || unicode.IsLower(first) || Months()[string(AppendFolded(nil, strings.TrimRight(next, ".,;")))] > 0)
	}
	return abbreviations[string(AppendFolded(nil, last))]
}

// Months returns the folded names of months in English, German, French and
// Spanish, and short English ones, with their numbers. It must not be changed.
var Months = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for _, names := range [][]string{
		strings.Split(monthNames, "|"), strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec"),
		timeVocabularies[German].months, timeVocabularies[French].months, timeVocabularies[Spanish].months,
	} {
		for i, name := range names {
			m[name] = i + 1
		}
	}
	m["sept"] = 9
	return m
})
