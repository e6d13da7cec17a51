package text

import (
	_ "embed" // the names of wrappers
	"strings"
)

// maxCode is the longest fenced code that counts as typed by a person, in
// bytes.
const maxCode = 400

//go:embed wrappers.txt
var wrapperNames string

// wrappers are the elements in which agents put text that no person typed.
var wrappers = strings.Fields(wrapperNames)

// HumanWords returns the part of a message that a person typed: without the
// wrapper elements of agents and clients, what clients put before it, long
// fenced code and quoted files, and without the tags around what a client says
// that its user typed. Of
// a message longer than MaxText it reads the start and, as that is where people
// write if they add a lot of context, more of the end. The result may be empty.
func HumanWords(message string) string {
	message = AfterPreamble(message)
	if len(message) > MaxText {
		message = strings.ToValidUTF8(message[:MaxText/4]+"\n"+message[len(message)-MaxText*3/4:], "")
	}
	return cutCode(cutMachineElements(CutElements(message, wrappers)))
}

// CutElements removes the elements <name ...>...</name> of these names. It
// reads message once, and once more for each name that an element in it may
// have.
func CutElements(message string, names []string) string {
	for _, n := range opened(message, names) {
		message = cutElement(message, n)
	}
	return message
}

// opened returns, in their order, those of the names that elements in message
// may have.
func opened(message string, names []string) []string {
	if len(names) == 0 || strings.IndexByte(message, '<') < 0 {
		return nil
	}
	var first [256]bool
	for _, n := range names {
		if n != "" {
			first[n[0]|0x20], first[n[0]&^0x20] = true, true
		}
	}
	found := make([]bool, len(names))
	for rest := message; ; {
		i := strings.IndexByte(rest, '<')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; rest == "" || !first[rest[0]] {
			continue
		}
		for i, n := range names {
			// A removed element leaves a blank, so the next element's bracket
			// can end this one's name, too.
			if !found[i] && len(n) < len(rest) && strings.EqualFold(rest[:len(n)], n) && strings.IndexByte("> \n<", rest[len(n)]) >= 0 {
				found[i] = true
			}
		}
	}
	var out []string
	for i, is := range found {
		if is {
			out = append(out, names[i])
		}
	}
	return out
}

// cutElement removes the elements <name ...>...</name>, in any case, reading s
// once. Only an element that clients put at the end of a message is removed
// without its end.
func cutElement(s, name string) string {
	opening, closing := "<"+name, "</"+name+">"
	var out strings.Builder
	at := 0 // s[:at] is in out, or removed
	for from := 0; ; {
		i := IndexTag(s[from:], opening)
		if i < 0 {
			break
		}
		i += from
		from = i + len(opening)
		if from == len(s) || s[from] != '>' && s[from] != ' ' && s[from] != '\n' {
			continue
		}
		j := IndexTag(s[from:], closing)
		if j < 0 { // so none that follows is closed either
			if name == "system-reminder" || name == "environment_context" {
				return out.String() + s[at:i]
			}
			break // not an element: prose about one
		}
		out.WriteString(s[at:i])
		out.WriteByte(' ')
		from += j + len(closing)
		at = from
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}

// IndexTag returns where tag, which begins with "<", first occurs in s, in any
// case, or -1.
func IndexTag(s, tag string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], '<')
		if at += i; i < 0 || len(s)-at < len(tag) {
			return -1
		}
		if strings.EqualFold(s[at:at+len(tag)], tag) {
			return at
		}
	}
}

// cutCode removes fenced code that is longer than maxCode, reading s once.
func cutCode(s string) string {
	const fence = "```"
	var out strings.Builder
	at := 0
	for from := 0; ; {
		i := strings.Index(s[from:], fence)
		if i < 0 {
			break
		}
		i += from
		end := len(s)
		if j := strings.Index(s[i+len(fence):], fence); j >= 0 {
			end = i + len(fence) + j + len(fence)
		}
		if from = end; end-i > maxCode {
			out.WriteString(s[at:i])
			out.WriteByte(' ')
			at = end
		}
	}
	if at == 0 {
		return s
	}
	return out.String() + s[at:]
}
