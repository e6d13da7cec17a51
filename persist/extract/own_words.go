package extract

import (
	"strings"
	"unicode"

	"github.com/remora-proxy/remora/text"
)

// ownText is what a speaker said in their own words, with its flags.
type ownText struct {
	text    string
	message string // all of it
	flags
}

func ownTextOf(message string) ownText {
	text := ownWords(cutForwarded(message))
	return ownText{text, message, scan(text)}
}

// ownWords removes from a message what its speaker did not say in their own
// words: fenced code, quoted and indented lines, elements that agents wrap
// around files and notes, and a model's thoughts. Episodes store the whole
// message; facts come from own words alone.
func ownWords(s string) string {
	s = CutThoughts(s)
	s = cutFences(s, nil)
	s = cutElements(s, nil)
	var b strings.Builder
	whole := true // so far
	at := 0
	for line := range strings.Lines(s) {
		switch foreign := foreignLine(line); {
		case foreign && whole:
			whole = false
			b.Grow(len(s))
			b.WriteString(s[:at])
		case !foreign && !whole:
			b.WriteString(line)
		}
		at += len(line)
	}
	if whole {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(b.String())
}

// collectForeign is foreignText for a text that may have some.
func collectForeign(s string) string {
	var out strings.Builder
	s = cutElements(cutFences(s, &out), &out)
	for line := range strings.Lines(s) {
		if foreignLine(line) {
			out.WriteString(strings.TrimLeft(line, "> \t"))
		}
	}
	return out.String()
}

// foreignLine recognises quotations, tables, shell prompts, patches, stack
// traces and log lines.
func foreignLine(line string) bool {
	t := strings.TrimRight(line, "\r\n")
	if strings.HasPrefix(t, "\t") || strings.HasPrefix(t, "    ") {
		return true
	}
	t = strings.TrimLeft(t, " ")
	for _, p := range [...]string{">", "|", "$ ", "+++", "---", "@@", "at ", "File \"", "Traceback", "#!", "//", "/*", "<?", "#include", "panic: ", "goroutine ", "npm ERR!", "npm error ",
		"Caused by: ", "Exception in thread "} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return logLine(t)
}

// logLine reports whether a line begins with date and time, or with seconds.
// "2026-03-02T10:11:12Z ERROR" and "[10:11:12] warn" do.
func logLine(line string) bool {
	line = strings.TrimPrefix(line, "[")
	if hasForm(line, "0000-00-00") || hasForm(line, "0000/00/00") {
		line = strings.TrimLeft(line[10:], "T ")
		return hasForm(line, "00:00")
	}
	return hasForm(line, "00:00:00")
}

// hasForm reports whether a text begins with a digit for every 0 of form, and
// with the other signs of form.
func hasForm(text, form string) bool {
	if len(text) < len(form) {
		return false
	}
	for i := range len(form) {
		if form[i] == '0' && (text[i] < '0' || text[i] > '9') || form[i] != '0' && text[i] != form[i] {
			return false
		}
	}
	return true
}

// cutFences removes fenced code, to the end if it is not closed, and writes it
// to cut.
func cutFences(s string, cut *strings.Builder) string {
	for _, fence := range [...]string{"```", "~~~"} {
		var kept strings.Builder
		at := 0 // s[:at] is done with
		for {
			i := strings.Index(s[at:], fence)
			if i < 0 {
				break
			}
			i += at
			end := len(s)
			if j := strings.Index(s[i+3:], fence); j >= 0 {
				end = i + 3 + j + 3
			}
			if cut != nil {
				cut.WriteString(s[i+3 : end])
				cut.WriteByte('\n')
			}
			kept.WriteString(s[at:i])
			kept.WriteByte('\n')
			at = end
		}
		if at > 0 {
			s = kept.String() + s[at:]
		}
	}
	return s
}

// maxElements limits the elements of a message that are cut, and the searches
// for their ends. The rest of the message stays.
const maxElements = 64

// element is <name ...>inside</name> in a text.
type element struct {
	kind               text.ElementKind
	name, head         string // in lower case; head is its last word
	start, end         int    // of the whole
	from, to           int    // of what is inside
	hasAttributes, own bool
}

// cutElements removes elements, and writes what was in them to cut. What a
// person typed stays, with its tags cut: agents put it into elements, too.
func cutElements(s string, cut *strings.Builder) string { return cutNested(s, cut, maxElementDepth) }

// maxElementDepth is how deep elements within those that a person typed into
// are looked at.
const maxElementDepth = 4

func cutNested(s string, cut *strings.Builder, depth int) string {
	all := elementsOf(s)
	if len(all) == 0 || depth == 0 {
		return s
	}
	markOwn(s, all)
	var kept strings.Builder
	at := 0
	for i := range all {
		e := &all[i]
		kept.WriteString(s[at:e.start])
		kept.WriteByte('\n')
		inside := s[e.from:e.to]
		switch {
		case e.own:
			kept.WriteString(cutNested(inside, cut, depth-1))
			kept.WriteByte('\n')
		case cut != nil:
			cut.WriteString(inside)
			cut.WriteByte('\n')
		}
		at = e.end
	}
	return kept.String() + s[at:]
}

// elementsOf returns the outermost elements of a text, at most maxElements.
func elementsOf(s string) (all []element) {
	from := 0
	for range maxElements {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			break
		}
		i += from
		from = i + 1
		name, tag := text.ElementName(s[i:])
		if name == "" {
			continue
		}
		closing := "</" + name + ">"
		if j := text.IndexTag(s[i+tag:], closing); j >= 0 {
			e := element{kind: text.ElementKindOf(name), name: strings.ToLower(name), head: text.ElementHead(name), start: i, from: i + tag, to: i + tag + j, hasAttributes: tag > len(name)+2}
			e.end = e.to + len(closing)
			all, from = append(all, e), e.end
		}
	}
	return all
}

// markOwn marks the elements that hold what the speaker typed: those that
// clients name so, and, where all of a message is in elements, those that are
// neither a client's notes nor a document. Next to other words of the speaker,
// and next to a request in its own element, an element is what these are about.
func markOwn(s string, all []element) {
	alone, at := true, 0
	for i := range all {
		e := &all[i]
		alone = alone && !hasLetters(s[at:e.start])
		at = e.end
	}
	alone = alone && !hasLetters(s[at:])
	requested, name := false, ""
	for i := range all {
		e := &all[i]
		requested = requested || e.kind == text.PersonElement || e.kind == text.RequestElement || workElements[e.head]
		if e.kind == text.UnknownElement && name == "" {
			name = e.name
		}
	}
	for i := range all {
		e := &all[i]
		switch {
		case e.kind == text.PersonElement:
			e.own = true
		case isDocument(s[e.from:e.to]):
		case e.kind == text.RequestElement:
			e.own = alone || e.name == "task" || e.name == "feedback"
		case e.kind == text.UnknownElement:
			e.own = alone && !requested && !e.hasAttributes && e.name == name && !workElements[e.name] && !documentElements[e.head]
		}
	}
}

// Elements of prompts, by their names: what is to be done, and what with.
var (
	workElements     = setOf("instruction instructions rules role objective persona character format style tone language")
	documentElements = setOf(`document documents doc docs article email mail letter page post review story poem essay transcript conversation dialogue chat history
		code source context data file files output result results stdout stderr log logs example examples sample samples quote quotation citation excerpt passage cv resume bio
		html body head script style table svg pre blockquote tool function system assistant ai bot model search web website url snippet note notes memory memories`)
)

// maxTypedElement is the longest text in an element that counts as typed, in
// bytes, maxTypedLines the most lines.
const (
	maxTypedElement = 2000
	maxTypedLines   = 24
)

// isDocument reports whether a text is longer than people type, or set like a
// document: with headings or numbered items.
func isDocument(s string) bool {
	if len(s) > maxTypedElement {
		return true
	}
	lines, items := 0, 0
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		lines++
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "---") {
			return true
		}
		if number := strings.TrimLeft(line, "0123456789"); len(number) < len(line) && (strings.HasPrefix(number, ". ") || strings.HasPrefix(number, ") ")) {
			items++
		}
	}
	return lines > maxTypedLines || items > 2
}

func hasLetters(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }

// thoughts are the elements that models write their thoughts in.
var thoughts = [...]string{"think", "thinking", "thought", "reasoning"}

// CutThoughts removes <think>...</think> and similar elements. One that is not
// closed extends to the end of the text. One that was opened outside the text,
// by a template, extends from its start.
func CutThoughts(s string) string {
	if !strings.Contains(s, "</") && !strings.Contains(s, "<th") && !strings.Contains(s, "<re") {
		return s
	}
	for _, name := range thoughts {
		opening, closing := "<"+name+">", "</"+name+">"
		if j := strings.Index(s, closing); j >= 0 && (name == "think" || name == "thinking") {
			if i := strings.Index(s, opening); i < 0 || i > j {
				s = s[j+len(closing):]
			}
		}
		for range maxThoughtRounds {
			if !strings.Contains(s, opening) {
				break
			}
			s = cutThought(s, opening, closing)
		}
		s, _, _ = strings.Cut(s, opening)
	}
	return s
}

// maxThoughtRounds limits how often a cut may join what is around it to the
// start of another thought. From the next one on, the rest of the text is
// removed.
const maxThoughtRounds = 8

// cutThought removes what is between opening and closing, to the end if it is
// not closed. It reads s once.
func cutThought(s, opening, closing string) string {
	var kept strings.Builder
	for {
		before, inside, found := strings.Cut(s, opening)
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		if _, s, found = strings.Cut(inside, closing); !found {
			return kept.String()
		}
	}
}
