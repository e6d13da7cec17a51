package fence

import "strings"

// name begins every tag of a fence; the id follows.
const name = "remora-memory-"

// maxRounds is how often the removal of a block may join the text around it to
// a new tag.
const maxRounds = 16

// Contains reports whether [Strip] would remove anything.
func Contains(text string) bool { return first(text) >= 0 }

// first returns where the first tag of a fence, or the first block without one,
// begins, or -1.
func first(text string) int {
	at, _ := nextUnfenced(text, 0)
	if !mayContain(text) {
		return at
	}
	tagAt := cutAt(text)
	if t, found := nextTag(text, 0); found {
		tagAt = t.start
	}
	if at < 0 || tagAt >= 0 && tagAt < at {
		return tagAt
	}
	return at
}

// Strip removes every block from text: whole, quoted line by line ("> "), cut
// off before its end, without its opening tag, nested, escaped, or from another
// Remora. A text without one is returned unchanged.
//
// A block with a closing tag is removed whole, with the quotation marks before
// it and the line end after it. Of a block without one only the lines that look
// like a block's are removed, so that text after it stays. The same holds if
// both tags are missing, as when a model repeats what it read, provided that
// the rule begins a line and memories follow it: nobody writes that. The rule
// alone reveals nothing about anybody and stays. Of a closing tag on its own
// only the tag is removed.
func Strip(text string) string {
	for range maxRounds {
		if !mayContain(text) && !strings.Contains(text, Rule) {
			return text
		}
		out := stripUnfenced(stripTags(text))
		if out == text {
			return text
		}
		text = out
	}
	// Somebody builds tags out of tags. The text before the first is safe.
	if at := first(text); at >= 0 {
		text = text[:at]
	}
	return text
}

// stripUnfenced removes blocks that lost their tags.
func stripUnfenced(text string) string {
	var b strings.Builder
	at := 0
	for {
		start, end := nextUnfenced(text, at)
		if start < 0 {
			break
		}
		b.WriteString(text[at:start])
		at = end
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}

// nextUnfenced returns the first block at or after from that begins with its
// rule; start is -1 if there is none.
func nextUnfenced(text string, from int) (start, end int) {
	for at := from; ; {
		i := strings.Index(text[at:], Rule)
		if i < 0 {
			return -1, 0
		}
		at += i
		start, wholeLine := lineStart(text, at, from)
		if at += len(Rule); !wholeLine {
			continue
		}
		if end = shapeEnd(text, at); strings.Contains(text[at:end], "- ") {
			return start, end
		}
		at = end // a rule in between would find no more
	}
}

func stripTags(text string) string {
	tags := allTags(text)
	next := nextSameID(text, tags)
	var b strings.Builder
	at := 0
	for i := 0; i < len(tags); {
		t := tags[i]
		if t.start < at { // inside what is removed already
			i++
			continue
		}
		start, wholeLine := lineStart(text, t.start, at)
		end := t.end
		i++
		if t.closing {
			// If the lines of a block were joined, only the tag shows where it
			// ends.
			if r := strings.LastIndex(text[at:t.start], Rule); r >= 0 && !strings.Contains(text[at+r:t.start], "\n") {
				start, wholeLine = lineStart(text, at+r, at)
			}
		} else {
			// If another opening tag with the id comes first, this block was
			// cut off.
			if c := next[i-1]; c >= 0 && tags[c].closing {
				end = tags[c].end
				i = c + 1
			} else {
				end = shapeEnd(text, t.end)
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
	for c := cutAt(out); c >= 0; c = cutAt(out) {
		start, _ := lineStart(out, c, 0)
		out = out[:start]
	}
	return out
}

// nextSameID returns, for every tag, the index of the next one with its id, or
// -1.
func nextSameID(text string, tags []tag) []int {
	next := make([]int, len(tags))
	seen := make(map[string]int, len(tags))
	for i := len(tags) - 1; i >= 0; i-- {
		id := strings.ToLower(text[tags[i].idStart:tags[i].idEnd])
		next[i] = -1
		if j, ok := seen[id]; ok {
			next[i] = j
		}
		seen[id] = i
	}
	return next
}

// lineStart moves at back over quotation marks and blanks if nothing else
// precedes it on its line, but not past floor.
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

// lineEnd moves end over blanks and one line end, if nothing else follows on
// the line.
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

// shapeEnd returns where the lines that look like a block's end: the rule and
// memory lines after an opening tag at end. It looks at the beginning of any
// other line only: the end may be far away, and every tag on it asks.
func shapeEnd(text string, end int) int {
	rest := text[end:]
	for first := true; rest != ""; first = false {
		body := strings.TrimLeft(rest, "> \t")
		blank := strings.TrimLeft(body, " \t\r")
		switch {
		case strings.HasPrefix(body, "Reference data"):
		case strings.HasPrefix(body, "- ") && !strings.HasPrefix(strings.TrimLeft(body[1:], " \t\r"), "\n"):
		case first && (blank == "" || blank[0] == '\n'):
		case strings.HasPrefix(body, "-") && strings.TrimLeft(body[1:], " \t\r") == "": // cut off after the dash
		default:
			return len(text) - len(rest)
		}
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return len(text)
}

// mayContain is a cheap necessary condition for a tag.
func mayContain(text string) bool { return nextName(text, 0) >= 0 }
