package redact

import (
	_ "embed"
	"iter"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

//go:embed tokens.tsv
var tokenData string

// tokenWindow is how much of the text a token's pattern may see after its
// prefix, in bytes.
const tokenWindow = 2 << 10

// tokenShape is a key with a prefix of its own. The prefix is the keyword,
// matched in its exact case; the pattern (RE2) follows it.
type tokenShape struct {
	rule    ruleID
	prefix  string
	pattern string
	// uniform keys need not look random. Others must, because documentation is
	// full of xxxx.
	uniform bool
	// anywhere allows a letter or digit before the prefix.
	anywhere bool
	// digits requires a digit, because without one it is a word.
	digits bool
}

// tokenShapes reads the embedded data, whose syntax a test checks.
var tokenShapes = sync.OnceValue(func() []tokenShape {
	byID := ids(builtIn())
	var all []tokenShape
	for column := range rows(tokenData) {
		for prefix := range strings.FieldsSeq(column[1]) {
			all = append(all, tokenShape{
				rule: byID[column[0]], prefix: prefix, pattern: column[3],
				uniform: strings.Contains(column[2], "uniform"), anywhere: strings.Contains(column[2], "anywhere"),
				digits: strings.Contains(column[2], "digits"),
			})
		}
	}
	return all
})

// rows is an iterator over the lines of tab-separated data, without comments.
func rows(data string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(data) {
			if !strings.HasPrefix(line, "#") && !yield(strings.Split(strings.TrimSuffix(line, "\n"), "\t")) {
				return
			}
		}
	}
}

// find returns an action that matches the shape at its prefix. The pattern is
// compiled when a prefix first occurs: most processes never see most of them,
// and compiled they take megabytes.
func (t tokenShape) find() action {
	compiled := sync.OnceValue(func() func(string) int { return matcher(t.pattern) })
	return func(s *scanner, start, end int) {
		if s.text[start:end] != t.prefix {
			return
		}
		if !t.anywhere && start > 0 && isAlnum(s.text[start-1]) && isAlnum(t.prefix[0]) {
			return
		}
		window := s.text[end:min(len(s.text), end+tokenWindow)]
		if !t.uniform && distinctBytes(window[:min(len(window), 24)]) < 6 {
			return // a mask; saves running the pattern
		}
		n := compiled()(window)
		if n < 0 {
			return
		}
		stop := end + n
		for n == len(window) && stop < len(s.text) && isWord(s.text[stop]) { // longer than the window
			stop++
		}
		if stop < len(s.text) && isWord(s.text[stop]) && isWord(s.text[stop-1]) {
			return
		}
		if stop+1 < len(s.text) && s.text[stop] == '.' && isAlnum(s.text[stop+1]) {
			return // a file name
		}
		value := s.text[end:stop]
		if !t.uniform && !looksRandom(value) || t.digits && !strings.ContainsAny(value, "0123456789") {
			return
		}
		if t.prefix == "sk-" && (strings.HasPrefix(value, "ant-") || lacksOpenAIMark(value) || isSlug(value)) {
			return // "ant-" has its own rule, which knows its length
		}
		s.add(t.rule, start, stop)
	}
}

// isSlug reports whether value is a name of words joined by hyphens.
func isSlug(value string) bool {
	if strings.Count(value, "-") < 3 || value != strings.ToLower(value) {
		return false
	}
	for part := range strings.SplitSeq(value, "-") {
		if len(part) > 15 || !isDigits(part) && strings.ContainsAny(part, "0123456789") {
			return false
		}
	}
	return true
}

// openAIMark is base64 of "OpenAI". It is in the middle of the keys of OpenAI's
// projects.
const openAIMark = "T3BlbkFJ"

// lacksOpenAIMark reports whether value, without "sk-", is as long as the first
// project keys, with 20 characters on both sides of the mark, but has no mark.
func lacksOpenAIMark(value string) bool {
	kind, key, ok := strings.Cut(value, "-")
	return ok && len(key) == 48 && isOneOf(kind, []string{"proj", "svcacct", "admin"}) && key[20:28] != openAIMark
}

// matcher returns a function that returns the length of the pattern's match at
// the start of a text, -1 if there is none. Most patterns are a repeated
// character class: those are counted, some hundred times faster than the
// regular expression is run, for texts with a prefix at every other word.
func matcher(pattern string) func(text string) int {
	if class, minimum, maximum, ok := classRun(pattern); ok {
		return func(text string) int {
			n := 0
			for n < len(text) && n < maximum && class[text[n]] {
				n++
			}
			if n < minimum {
				return -1
			}
			return n
		}
	}
	compiled := regexp.MustCompile(`^(?:` + pattern + `)`)
	return func(text string) int {
		m := compiled.FindStringIndex(text)
		if m == nil {
			return -1
		}
		return m[1]
	}
}

// classRun takes apart a pattern that is one repeated class of ASCII
// characters.
func classRun(pattern string) (class *[256]bool, minimum, maximum int, ok bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpRepeat || re.Flags&syntax.NonGreedy != 0 || re.Sub[0].Op != syntax.OpCharClass {
		return nil, 0, 0, false
	}
	class = &[256]bool{}
	for i, ranges := 0, re.Sub[0].Rune; i < len(ranges); i += 2 {
		if ranges[i+1] >= 0x80 {
			return nil, 0, 0, false
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			class[r] = true
		}
	}
	if minimum, maximum = re.Min, re.Max; maximum < 0 {
		maximum = tokenWindow
	}
	return class, minimum, maximum, true
}
