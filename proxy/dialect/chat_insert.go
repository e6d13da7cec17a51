package dialect

import (
	"fmt"
	"slices"
)

// Insert implements Dialect.
func (Chat) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if turn < 0 || turn >= len(req.Messages) || req.Messages[turn].Role != RoleUser {
		return nil, fmt.Errorf("%w: message %d is not a user message", ErrNoPlace, turn)
	}
	switch p {
	case BeforeUser:
		at := req.Messages[turn].Start
		return []Insertion{{at, req.chatMessageText("user", text)}}, nil
	case InUser:
		return req.prependContent(turn, text)
	case System:
		last := req.lastSystem()
		if last < 0 {
			// The array's first message starts right after the bracket and its whitespace.
			return []Insertion{{req.Messages[0].Start, req.chatMessageText("system", text)}}, nil
		}
		return req.appendContent(last, text)
	default:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	}
}

// chatMessageText is a whole message and the comma after it.
func (r *Request) chatMessageText(role, text string) []byte {
	const before, between, after = `{"role":"`, `","content":"`, `"},`
	b := r.room(len(before) + len(role) + len(between) + quotedLen(text) + len(after))
	b = append(append(append(b, before...), role...), between...)
	return append(appendQuoted(b, text), after...)
}

// room is empty, with room for n bytes.
func (r *Request) room(n int) []byte {
	used := len(r.Room)
	if cap(r.Room)-used < n {
		return make([]byte, 0, n)
	}
	r.Room = r.Room[:used+n]
	return r.Room[used : used : used+n]
}

// partFrame and itemFrame are room for what is written around a text part's text and around an item's, in bytes.
const (
	partFrame = 80 // and what makes a second part of what follows
	itemFrame = 96 + partFrame
)

// textPart is a text part without commas.
func (t partTypes) textPart(b []byte, text string) []byte {
	if cap(b)-len(b) < len(text)+partFrame {
		b = slices.Grow(b, quotedLen(text)+partFrame)
	}
	b = append(b, `{"type":`...)
	b = append(b, t.name()...)
	b = append(b, `,"text":"`...)
	b = appendQuoted(b, text)
	return append(b, `"}`...)
}

// prependContent puts text in front of the content of message i.
func (r *Request) prependContent(i int, text string) ([]Insertion, error) {
	at := r.Messages[i].contentStart
	switch r.contentKind(i) {
	case '"':
		return []Insertion{{at + 1, appendQuoted(nil, text+"\n\n")}}, nil
	case '[':
		part := r.parts.textPart(nil, text)
		if !r.emptyContent(i) {
			part = append(part, ',')
		}
		return []Insertion{{at + 1, part}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, i)
	}
}

// appendContent puts text after the content of message i. An empty array is refused: two insertions into it, each right
// for itself, would lack the comma between them.
func (r *Request) appendContent(i int, text string) ([]Insertion, error) {
	at := r.Messages[i].contentEnd - 1
	switch kind := r.contentKind(i); {
	case kind == '"':
		return []Insertion{{at, appendQuoted(nil, "\n\n"+text)}}, nil
	case kind == '[' && !r.emptyContent(i):
		return []Insertion{{at, r.parts.textPart([]byte{','}, text)}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, i)
	}
}

// contentKind is the first byte of the content of message i, 0 where there is none.
func (r *Request) contentKind(i int) byte {
	m := r.Messages[i]
	if m.contentStart == m.contentEnd {
		return 0
	}
	return r.Body[m.contentStart]
}

// emptyContent says whether the content of message i, an array, has no elements.
func (r *Request) emptyContent(i int) bool {
	m := r.Messages[i]
	return !holdsSomething(r.Body[m.contentStart:m.contentEnd])
}

// lastSystem is the last message of the system messages that the conversation starts with, -1 if it starts with another.
func (r *Request) lastSystem() int {
	last := -1
	for i, m := range r.Messages {
		if m.Role != RoleSystem {
			break
		}
		last = i
	}
	return last
}
