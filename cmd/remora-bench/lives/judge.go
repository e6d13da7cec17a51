package lives

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Verdicts.
const (
	pass      = "pass"
	miss      = "miss"            // what is wanted is not there
	stale     = "stale"           // it is, next to what does not hold any more
	wrong     = "wrong"           // it is, next to what was never right
	uncalled  = "false injection" // there is a block where none is wanted
	outdated  = "outdated)"       // marks a line that does not hold any more
	markRunes = 60                // of a line, among which the mark stands
)

// judge compares a block with what a question wants, and returns how many lines
// help.
func judge(q *question, lines []string) (verdict string, help int) {
	folded := make([]string, len(lines))
	for i, l := range lines {
		folded[i] = fold(l)
	}
	if q.Nothing {
		if len(lines) > 0 {
			return uncalled, 0
		}
		return pass, 0
	}
	holds := func(line string, group []string) bool {
		return slices.ContainsFunc(group, func(alternative string) bool { return strings.Contains(line, fold(alternative)) })
	}
	for _, line := range folded {
		if slices.ContainsFunc(q.Want, func(group []string) bool { return holds(line, group) }) {
			help++
		}
	}
	for _, group := range q.Want {
		if !slices.ContainsFunc(folded, func(line string) bool { return holds(line, group) }) {
			return miss, help
		}
	}
	for _, a := range q.Avoid {
		for _, line := range folded {
			if strings.Contains(line, fold(a.Text)) && !marked(line) && (a.Unless == "" || !strings.Contains(line, fold(a.Unless))) {
				if strings.Contains("abcdek", q.Kind) {
					return stale, help
				}
				return wrong, help
			}
		}
	}
	return pass, help
}

func marked(line string) bool {
	runes := []rune(line)
	return strings.Contains(string(runes[:min(len(runes), markRunes)]), outdated)
}

var folding = cases.Fold()

func fold(s string) string { return folding.String(norm.NFKC.String(s)) }

// opening matches the first line of a block.
var opening = regexp.MustCompile(`<(remora-memory-[0-9a-f]+)>\n`)

// blockOf returns the newest block in a text with its fence, "" if there is
// none.
func blockOf(text string) (block string) {
	for {
		at := opening.FindStringSubmatchIndex(text)
		if at == nil {
			return block
		}
		closing := "</" + text[at[2]:at[3]] + ">"
		n := strings.Index(text[at[1]:], closing)
		if n < 0 {
			return block
		}
		end := at[1] + n + len(closing)
		block, text = text[at[0]:end], text[end:]
	}
}

// linesOf returns the memories of a block, of which one may take several lines.
func linesOf(block string) (out []string) {
	inside := strings.Split(block, "\n")
	if len(inside) < 2 {
		return nil
	}
	for _, l := range inside[1 : len(inside)-1] {
		switch memory, begins := strings.CutPrefix(l, "- "); {
		case begins:
			out = append(out, memory)
		case len(out) > 0 && !strings.HasPrefix(l, "Reference data"):
			out[len(out)-1] += "\n" + l
		}
	}
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// tokens estimates the tokens of a text as common tokenizers count them: a
// character of Chinese, Japanese or Korean is one, and four bytes of other
// ASCII, or three of other scripts, are one.
func tokens(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r < 0x80:
			n += 3
		case r >= 0x2e80:
			n += 12
		default: // two bytes or three
			n += 8
		}
	}
	return (n + 11) / 12
}
