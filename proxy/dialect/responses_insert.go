package dialect

import (
	"fmt"
)

// Insert implements Dialect. String input becomes an array of two items. System
// needs no turn.
func (Responses) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if p == System {
		if raw := req.Body[req.systemStart:req.systemEnd]; len(raw) > 0 && raw[0] != '"' {
			return nil, fmt.Errorf("%w: instructions are not a string", ErrNoPlace)
		}
		return req.appendSystem("instructions", text)
	}
	if err := req.checkTurn(turn); err != nil {
		return nil, err
	}
	m := req.Messages[turn]
	switch {
	case p == InUser:
		return req.prependContent(turn, text)
	case p != BeforeUser:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	case req.Body[m.Start] == '"':
		head := append(req.reserve(1+quotedLen(text)+itemFrame), '[')
		head = append(appendItem(head, text), `,{"type":"message","role":"user","content":[{"type":"input_text","text":`...)
		return []Insertion{{At: m.Start, Text: head}, {At: m.End, Text: []byte(`}]}]`)}}, nil
	default:
		return []Insertion{{At: m.Start, Text: append(appendItem(req.reserve(quotedLen(text)+itemFrame), text), ',')}}, nil
	}
}

// appendItem appends a user message in the form that every server accepts.
func appendItem(b []byte, text string) []byte {
	b = append(b, `{"type":"message","role":"user","content":[`...)
	b = responsesParts.appendTextPart(b, text)
	return append(b, `]}`...)
}
