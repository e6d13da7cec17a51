package dialect

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// commonForm is one byte-for-byte form of a message that has a role, one text
// and nothing else. Nearly all messages of a long conversation have the same
// form. Reading such a message key by key would take as long again as finding
// the end of its text.
type commonForm struct {
	prefix  string // up to and including the opening quote of the text
	suffix  string // after the closing quote of the text
	content int    // offset in prefix of the value of content
	role    Role
	hash    digest // of the value of role
}

// The parts of common forms: before the role, between role and text, after the
// text.
const (
	roleFirst  = `{"role":`
	typeFirst  = `{"type":"message","role":`
	thenString = `,"content":"`
	stringEnds = `}`
	partEnds   = `}]}`
)

// thenPart is thenString for a text part of type typ.
func thenPart(typ string) string { return `,"content":[{"type":"` + typ + `","text":"` }

var (
	chatForms = append(commonForms(roleFirst, thenString, thenString, stringEnds),
		commonForms(roleFirst, thenPart("text"), thenPart("text"), partEnds)...)
	responsesForms = append(commonForms(typeFirst, thenPart("input_text"), thenPart("output_text"), partEnds),
		append(commonForms(roleFirst, thenPart("input_text"), thenPart("output_text"), partEnds),
			commonForms(roleFirst, thenString, thenString, stringEnds)...)...)
)

// commonForms returns the forms of a user's and an assistant's message: without
// blanks, as clients in most languages write JSON, and with Python's blanks.
func commonForms(before, user, assistant, after string) []commonForm {
	var all []commonForm
	for _, format := range []func(string) string{
		strings.Clone, strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace,
	} {
		for _, role := range [...]struct{ value, then string }{{`"user"`, user}, {`"assistant"`, assistant}} {
			f := commonForm{prefix: format(before + role.value + role.then), suffix: after, role: roleOf([]byte(role.value)), hash: xxh3.HashString128(role.value)}
			f.content = strings.Index(f.prefix, format(`"content":`)) + len(format(`"content":`))
			all = append(all, f)
		}
	}
	return all
}

// commonMessage consumes a message in one of forms, with the same result as
// message. It consumes nothing of any other message.
func (r *requestReader) commonMessage(forms []commonForm) (Message, bool) {
	rest := r.b[r.i:]
	for i := range forms {
		f := &forms[i]
		if len(rest) < len(f.prefix) || string(rest[:len(f.prefix)]) != f.prefix {
			continue
		}
		text := span{start: r.i + len(f.prefix) - 1}
		if text.end = rawStringEnd(r.b, text.start); text.end < 0 {
			break
		}
		r.known = text
		end := text.end + len(f.suffix)
		if end > len(r.b) || string(r.b[text.end:end]) != f.suffix {
			break
		}
		content := link(digest{}, tagText, xxh3.Hash128(r.b[text.start:text.end]), digest{})
		content = link(content, tagEnd, digest{}, digest{})
		m := Message{
			Start: r.i, End: end, Role: f.role, Hash: link(digest{}, tagMessage, f.hash, content),
			contentStart: r.i + f.content, contentEnd: end - 1,
		}
		r.i = end
		return m, true
	}
	return Message{}, false
}
