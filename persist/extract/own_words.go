package extract

import (
	"strings"

	"github.com/remora-proxy/remora/text"
)

// ownText is what a speaker said in their own words, with its flags.
type ownText struct {
	text string
	flags
}

func ownTextOf(message string) ownText {
	text := ownWords(message)
	return ownText{text, scan(text)}
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

// cutElements removes <name ...>...</name> with its content and writes it to
// cut.
func cutElements(s string, cut *strings.Builder) string {
	var kept strings.Builder
	at := 0 // s[:at] is done with
	from := 0
	for range maxElements {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			break
		}
		i += from
		from = i + 1
		n := 0
		for from+n < len(s) && n < 40 && (s[from+n]|0x20 >= 'a' && s[from+n]|0x20 <= 'z' || n > 0 && (s[from+n] == '-' || s[from+n] == '_')) {
			n++
		}
		if n == 0 || from+n == len(s) || s[from+n] != '>' && s[from+n] != ' ' && s[from+n] != '\n' {
			continue
		}
		closing := "</" + s[from:from+n] + ">"
		if j := text.IndexTag(s[from:], closing); j >= 0 {
			if cut != nil {
				cut.WriteString(s[from : from+j])
				cut.WriteByte('\n')
			}
			kept.WriteString(s[at:i])
			kept.WriteByte('\n')
			from += j + len(closing)
			at = from
		}
	}
	if at == 0 {
		return s
	}
	return kept.String() + s[at:]
}

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
