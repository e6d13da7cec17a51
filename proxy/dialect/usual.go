package dialect

import (
	"strings"

	"github.com/zeebo/xxh3"
)

// usual is one way of writing a message that has a role and one text and nothing else, byte for byte. Nearly all of a long
// conversation is written in one. To read such a message key by key takes as long again as to find the end of its text.
type usual struct {
	begin   string // up to the text's first quote, which is its last byte
	end     string // behind the text's last quote
	content int    // where in begin the value of content starts
	role    Role
	hash    digest // of the value of role
}

// What of a message is written before its role and after its text, and between them.
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
	chatUsuals = append(usualWays(roleFirst, thenString, thenString, stringEnds),
		usualWays(roleFirst, thenPart("text"), thenPart("text"), partEnds)...)
	responsesUsuals = append(usualWays(typeFirst, thenPart("input_text"), thenPart("output_text"), partEnds),
		append(usualWays(roleFirst, thenPart("input_text"), thenPart("output_text"), partEnds),
			usualWays(roleFirst, thenString, thenString, stringEnds)...)...)
)

// usualWays are those of a user's and an assistant's message: as clients in most languages write JSON, without blanks, and as
// Python's do.
func usualWays(before, user, assistant, after string) []usual {
	var all []usual
	for _, write := range []func(string) string{
		strings.Clone, strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace,
	} {
		for _, role := range [...]struct{ value, then string }{{`"user"`, user}, {`"assistant"`, assistant}} {
			u := usual{begin: write(before + role.value + role.then), end: after, role: chatRole([]byte(role.value)), hash: xxh3.HashString128(role.value)}
			u.content = strings.Index(u.begin, write(`"content":`)) + len(write(`"content":`))
			all = append(all, u)
		}
	}
	return all
}

// usualMessage consumes a message that is written in one of ways, as key by key it would be. It consumes nothing of any
// other.
func (s *scanner) usualMessage(ways []usual) (Message, bool) {
	rest := s.b[s.i:]
	for i := range ways {
		u := &ways[i]
		if len(rest) < len(u.begin) || string(rest[:len(u.begin)]) != u.begin {
			continue
		}
		text := span{start: s.i + len(u.begin) - 1}
		if text.end = skimEnd(s.b, text.start); text.end < 0 {
			break
		}
		s.known = text
		end := text.end + len(u.end)
		if end > len(s.b) || string(s.b[text.end:end]) != u.end {
			break
		}
		content := link(digest{}, tagText, xxh3.Hash128(s.b[text.start:text.end]), digest{})
		content = link(content, tagEnd, digest{}, digest{})
		m := Message{
			Start: s.i, End: end, Role: u.role, Hash: link(digest{}, tagMessage, u.hash, content),
			contentStart: s.i + u.content, contentEnd: end - 1,
		}
		s.i = end
		return m, true
	}
	return Message{}, false
}
