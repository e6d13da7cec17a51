package fence

import (
	"regexp"
	"strings"
)

// name begins every tag of a fence; the id follows.
const name = "remora-memory-"

// tag matches an opening or closing tag as models and clients hand it back: in any case, with blanks inside, escaped for
// HTML or JSON. Group 1 is the slash, group 2 the id.
var tag = regexp.MustCompile(`(?i)(?:<|&lt;|\\u003c)\s*(/?)\s*` + name + `([0-9a-f]{8,64})\s*(?:>|&gt;|\\u003e)`)

// cutTag matches a tag that the end of the text cuts off.
var cutTag = regexp.MustCompile(`(?i)(?:<|&lt;|\\u003c)\s*/?\s*` + name + `[0-9a-f]{0,64}\s*$`)

// maxRounds bounds how often taking a block out may join the text around it to a new tag.
const maxRounds = 16

// Contains reports whether a tag of a fence stands in text.
func Contains(text string) bool {
	return mayContain(text) && (tag.MatchString(text) || cutAt(text) >= 0)
}

// Strip takes every block out of text, wherever it stands: whole, quoted line by line ("> "), cut off before its end,
// nested, escaped, from another Remora. A text without one is returned unchanged.
//
// A block with its end goes whole, together with the quotation marks before it and the line end after it. Of a block
// without its end only those lines go that have the shape of a block's lines, so that text which follows is kept.
// A closing tag on its own goes alone.
func Strip(text string) string {
	for range maxRounds {
		if !mayContain(text) {
			return text
		}
		out := stripOnce(text)
		if out == text {
			return text
		}
		text = out
	}
	// Somebody builds tags out of tags. What stands before the first is safe.
	if at := tag.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return text
}

func stripOnce(text string) string {
	tags := tag.FindAllStringSubmatchIndex(text, -1)
	next := nextSameID(text, tags)
	var b strings.Builder
	at := 0
	for i := 0; i < len(tags); {
		t := tags[i]
		if t[0] < at { // inside what went already
			i++
			continue
		}
		start, wholeLine := lineStart(text, t[0], at)
		end := t[1]
		i++
		if t[2] == t[3] { // an opening tag
			// A second opening tag with the id comes first only where this block was cut off.
			if c := next[i-1]; c >= 0 && tags[c][2] < tags[c][3] {
				end = tags[c][1]
				i = c + 1
			} else {
				end = shapeEnd(text, t[1])
			}
		}
		if wholeLine {
			end = lineEnd(text, end)
		}
		b.WriteString(text[at:start])
		at = end
	}
	b.WriteString(text[at:])
	out := b.String()
	if c := cutAt(out); c >= 0 {
		start, _ := lineStart(out, c, 0)
		out = out[:start]
	}
	return out
}

// cutAt is where a tag begins that the end of the text cuts off, -1 if none does. Only so much of the end is read as a
// tag can take.
func cutAt(text string) int {
	const longest = 256
	end := strings.TrimRight(text, " \t\r\n\f\v")
	from := max(0, len(end)-longest)
	if c := cutTag.FindStringIndex(end[from:]); c != nil {
		return from + c[0]
	}
	return -1
}

// nextSameID returns for every tag the index of the next one with its id, -1 where none follows.
func nextSameID(text string, tags [][]int) []int {
	next := make([]int, len(tags))
	seen := make(map[string]int, len(tags))
	for i := len(tags) - 1; i >= 0; i-- {
		id := strings.ToLower(text[tags[i][4]:tags[i][5]])
		next[i] = -1
		if j, ok := seen[id]; ok {
			next[i] = j
		}
		seen[id] = i
	}
	return next
}

// lineStart moves at back over quotation marks and blanks if nothing else precedes it on its line, but not before floor.
func lineStart(text string, at, floor int) (start int, wholeLine bool) {
	i := at
	for i > floor && strings.IndexByte("> \t", text[i-1]) >= 0 {
		i--
	}
	if i == 0 || text[i-1] == '\n' {
		return i, true
	}
	return at, false
}

// lineEnd moves end over blanks and one line end, if nothing else follows on the line.
func lineEnd(text string, end int) int {
	i := end
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	if i == len(text) {
		return i
	}
	if text[i] == '\n' {
		return i + 1
	}
	return end
}

// shapeEnd returns where the lines that look like a block's end: the rule and memory lines after an opening tag at end.
func shapeEnd(text string, end int) int {
	rest := text[end:]
	first := true
	for rest != "" {
		line, after, more := strings.Cut(rest, "\n")
		body := strings.TrimLeft(line, "> \t")
		body = strings.TrimRight(body, " \t\r")
		isRule := strings.HasPrefix(body, "Reference data")
		switch {
		case strings.HasPrefix(body, "- "), isRule, first && body == "":
		case body == "-" && !more: // a line that the cut left nothing of
		default:
			return len(text) - len(rest)
		}
		first = false
		rest = after
	}
	return len(text)
}

// mayContain is a cheap necessary condition for a tag.
func mayContain(text string) bool {
	for i := 0; i+len(name) <= len(text); {
		j := strings.IndexByte(text[i:], '-')
		if j < 0 {
			return false
		}
		j += i
		// name is "remora-memory-": the hyphen found is its first.
		if j >= 6 && j+8 <= len(text) && strings.EqualFold(text[j-6:j+8], name) {
			return true
		}
		i = j + 1
	}
	return false
}
