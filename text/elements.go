package text

import (
	"slices"
	"strings"
)

// An ElementKind says who wrote what is inside an element, as far as its name
// tells.
type ElementKind uint8

// The kinds of elements.
const (
	UnknownElement ElementKind = iota
	PersonElement              // a client puts a person's words into it: <user_query>, <USER_REQUEST>, <userMessage>
	RequestElement             // a request, of a person or within a template: <task>, <question>
	MachineElement             // a client puts its notes or files into it: <environment_info>, <editorContext>
)

// maxElementName is the longest name that is read, in bytes.
const maxElementName = 40

// ElementName returns the name of the element that opens at the start of s,
// which begins with "<", and the length of its tag; "" if none does.
func ElementName(s string) (name string, tag int) {
	n := 1
	for n < len(s) && n <= maxElementName && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z' || n > 1 && (s[n] == '-' || s[n] == '_' || s[n] >= '0' && s[n] <= '9')) {
		n++
	}
	if n == 1 || n == len(s) || s[n] != '>' && s[n] != ' ' && s[n] != '\n' {
		return "", 0
	}
	end := strings.IndexByte(s[n:], '>')
	if end < 0 {
		return "", 0
	}
	return s[1:n], n + end + 1
}

// ElementKindOf judges an element by its name. Names that clients make up have
// several words, of which the last tells what is inside and the first whose it
// is: user_query, userRequest, environment_info. A name of one word tells
// little: it may be markup that somebody writes about.
func ElementKindOf(name string) ElementKind {
	first, last := nameEnds(name)
	switch {
	case (first == "user" || first == "human") && requestNames[last]:
		return PersonElement
	case first == last && requestNames[last]:
		return RequestElement
	case first != last && machineNames[last]:
		return MachineElement
	}
	if isWrapper(name) {
		return MachineElement
	}
	return UnknownElement
}

// isWrapper reports whether agents are known to put text that no person typed
// into elements of a name.
func isWrapper(name string) bool {
	return slices.ContainsFunc(wrappers, func(w string) bool { return strings.EqualFold(w, name) })
}

// ElementHead returns the last word of a name, in lower case.
func ElementHead(name string) string {
	_, last := nameEnds(name)
	return last
}

var (
	requestNames = WordSet("query request message prompt task question feedback input words utterance ask goal")
	machineNames = WordSet(`info information context data details metadata environment reminder reminders instruction instructions rule rules guideline guidelines
		note notes file files content contents output outputs result results stdout stderr selection state status log logs diff attachment attachments
		document documents setting settings config tool tools snippet snippets caveat hook notification notifications memory memories summary window windows tab tabs
		editor terminal caution warning warnings error errors command commands list tree overview progress mode`)
)

// nameEnds returns the first and the last word of a name, in lower case.
func nameEnds(name string) (first, last string) {
	from := 0
	for i := 1; i <= len(name); i++ {
		switch {
		case i == len(name), name[i] == '_', name[i] == '-', name[i] >= 'A' && name[i] <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z':
			if word := strings.ToLower(strings.Trim(name[from:i], "_-")); word != "" {
				if last = word; first == "" {
					first = word
				}
			}
			from = i
		}
	}
	return first, last
}

// maxElements bounds the elements of a message that are looked at.
const maxElements = 64

// cutMachineElements removes elements with what a client put into them, and the
// tags, not the words, of those that hold what a person typed. Elements that are
// known by the form of their name alone are removed outside fenced code where
// clients put them: before all words of a message or behind them.
func cutMachineElements(s string) string {
	var out strings.Builder
	at, from := 0, 0            // s[:at] is in out, or removed
	fences, counted := 0, 0     // the fences in s[:counted]
	leading, blanked := true, 0 // only blanks are in out and s[at:blanked]
	for range maxElements {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			break
		}
		i += from
		from = i + 1
		name, tag := ElementName(s[i:])
		if name == "" {
			continue
		}
		kind := ElementKindOf(name)
		if kind != MachineElement && kind != PersonElement {
			continue
		}
		closing := "</" + name + ">"
		j := IndexTag(s[i+tag:], closing)
		if j < 0 {
			continue
		}
		end := i + tag + j
		fences += strings.Count(s[counted:i], "```")
		counted = i
		leading = leading && strings.TrimSpace(s[max(at, blanked):i]) == ""
		blanked = i
		if kind == MachineElement && !isWrapper(name) && (!composed(name) || fences%2 > 0 || !leading && !onlyElements(s[end+len(closing):])) {
			leading = false
			continue
		}
		out.WriteString(s[at:i])
		at = i + tag
		if kind == PersonElement {
			s = s[:end] + "\n" + s[end+len(closing):]
		} else {
			out.WriteByte(' ')
			at = end + len(closing)
			counted = at
		}
		from = at
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}

// composed reports whether a name is put together as clients do it, not as the
// components of user interfaces are: editor_context, editor-context,
// editorContext.
func composed(name string) bool {
	first, last := nameEnds(name)
	return first != last && (name[0] >= 'a' && name[0] <= 'z' || strings.ContainsAny(name, "_-"))
}

// onlyElements reports whether a text consists of elements and blanks.
func onlyElements(s string) bool {
	for range maxElements {
		if s = strings.TrimSpace(s); s == "" {
			return true
		}
		if s[0] != '<' {
			return false
		}
		name, tag := ElementName(s)
		if name == "" {
			return false
		}
		closing := "</" + name + ">"
		j := IndexTag(s[tag:], closing)
		if j < 0 {
			return false
		}
		s = s[tag+j+len(closing):]
	}
	return false
}
