package dialect

import (
	"fmt"
	"slices"
)

// checkTurn returns an error unless message turn is a user message.
func (r *Request) checkTurn(turn int) error {
	if turn < 0 || turn >= len(r.Messages) || r.Messages[turn].Role != RoleUser {
		return fmt.Errorf("%w: message %d is not a user message", ErrNoPlace, turn)
	}
	return nil
}

// reserve returns an empty slice with capacity n, from Buffer if that has room.
func (r *Request) reserve(n int) []byte {
	used := len(r.Buffer)
	if cap(r.Buffer)-used < n {
		return make([]byte, 0, n)
	}
	r.Buffer = r.Buffer[:used+n]
	return r.Buffer[used : used : used+n]
}

// partFrame and itemFrame are upper bounds, in bytes, of the JSON around the
// text of a text part and around the parts of an item.
const (
	partFrame = 80 // including what turns a following string into a second part
	itemFrame = 96 + partFrame
)

// appendTextPart appends a text part without commas.
func (t partTypes) appendTextPart(b []byte, text string) []byte {
	if cap(b)-len(b) < len(text)+partFrame {
		b = slices.Grow(b, quotedLen(text)+partFrame)
	}
	b = append(b, '{')
	if t != geminiParts {
		b = append(b, `"type":`...)
		b = append(append(b, t.userText()...), ',')
	}
	b = append(b, `"text":"`...)
	b = appendQuoted(b, text)
	return append(b, `"}`...)
}

// prependContent inserts text in front of the content of message i.
func (r *Request) prependContent(i int, text string) ([]Insertion, error) {
	at := r.Messages[i].contentStart
	switch r.contentKind(i) {
	case '"':
		return []Insertion{{At: at + 1, Text: appendQuoted(nil, text+"\n\n")}}, nil
	case '[':
		part := r.parts.appendTextPart(nil, text)
		if !r.emptyContent(i) {
			part = append(part, ',')
		}
		return []Insertion{{At: at + 1, Text: part}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, i)
	}
}

// appendContent inserts text after the content of message i. An empty array is
// refused: two insertions into it, each valid alone, would lack the comma
// between them.
func (r *Request) appendContent(i int, text string) ([]Insertion, error) {
	at := r.Messages[i].contentEnd - 1
	switch kind := r.contentKind(i); {
	case kind == '"':
		return []Insertion{{At: at, Text: appendQuoted(nil, "\n\n"+text)}}, nil
	case kind == '[' && !r.emptyContent(i):
		return []Insertion{{At: at, Text: r.parts.appendTextPart([]byte{','}, text)}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, i)
	}
}

// appendSystem inserts text after the system prompt, which is the value of the
// body's key name.
func (r *Request) appendSystem(name, text string) ([]Insertion, error) {
	raw := r.Body[r.systemStart:r.systemEnd]
	switch {
	case len(raw) == 0:
		b := append([]byte{'"'}, name...)
		b = appendQuoted(append(b, `":"`...), text)
		return []Insertion{{At: r.firstKey, Text: append(b, `",`...)}}, nil
	case raw[0] == '"':
		return []Insertion{{At: r.systemEnd - 1, Text: appendQuoted(nil, "\n\n"+text)}}, nil
	case raw[0] == '[' && nonEmpty(raw):
		return []Insertion{{At: r.systemEnd - 1, Text: r.parts.appendTextPart([]byte{','}, text)}}, nil
	default:
		return nil, fmt.Errorf("%w: %s has no text", ErrNoPlace, name)
	}
}

// contentKind returns the first byte of the content of message i, 0 if it has
// none.
func (r *Request) contentKind(i int) byte {
	m := r.Messages[i]
	if m.contentStart == m.contentEnd {
		return 0
	}
	return r.Body[m.contentStart]
}

// emptyContent reports whether the content of message i, an array, has no
// elements.
func (r *Request) emptyContent(i int) bool {
	m := r.Messages[i]
	return !nonEmpty(r.Body[m.contentStart:m.contentEnd])
}
