package dialect

import (
	"fmt"
)

// Insert implements Dialect. The block becomes a text block in the turn's
// message, right before that message's last block that is not a tool result.
// There it follows the tool results, which must come first, and every cache
// mark except one on the last block, so that no cached prefix is shortened; and
// the place does not depend on the marks. String content becomes an array of
// two text blocks, as the server would make of it.
func (Messages) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if p == System {
		return req.appendSystem("system", text)
	}
	if err := req.checkTurn(turn); err != nil {
		return nil, err
	}
	m := req.Messages[turn]
	kind := req.contentKind(turn)
	switch {
	case p != BeforeUser && p != InUser:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	case p == InUser && kind == '"':
		return req.prependContent(turn, text)
	case kind == '"':
		block := append(req.reserve(1+quotedLen(text)+partFrame), '[')
		block = append(req.parts.appendTextPart(block, text), `,{"type":"text","text":`...)
		return []Insertion{{At: m.contentStart, Text: block}, {At: m.contentEnd, Text: []byte(`}]`)}}, nil
	case kind == '[':
		at := req.lastBlock(turn)
		if at < 0 {
			return nil, fmt.Errorf("%w: message %d is empty", ErrNoPlace, turn)
		}
		return []Insertion{{At: at, Text: append(req.parts.appendTextPart(req.reserve(quotedLen(text)+partFrame), text), ',')}}, nil
	default:
		return nil, fmt.Errorf("%w: message %d has no text content", ErrNoPlace, turn)
	}
}

// lastBlock returns the offset of the last block of message i that is not a
// tool result and stands behind a compaction, -1 if there is none.
func (r *Request) lastBlock(i int) int {
	m, at := r.Messages[i], -1
	s := scanner{b: r.Body, i: m.contentStart, unchecked: true}
	for range s.elements {
		start := s.i
		switch typ := s.blockType(); string(s.b[typ.start:typ.end]) {
		case `"tool_result"`:
		case `"compaction"`:
			at = -1 // nothing stands before it
		default:
			at = start
		}
	}
	return at
}

// blockType consumes a block and returns the value of its type.
func (s *scanner) blockType() (typ span) {
	if s.peek() != '{' {
		s.skip()
		return typ
	}
	for k := range s.members {
		if v := s.skip(); string(s.b[k.start:k.end]) == "type" {
			typ = v
		}
	}
	return typ
}
