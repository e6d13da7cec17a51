package dialect

import "fmt"

// Insert implements Dialect. The block becomes a text part in the turn's
// content, right before that content's last part that is no result of a
// function: two contents of the user in a row would be something else.
func (Gemini) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if p == System {
		return req.appendInstruction(text)
	}
	if err := req.checkTurn(turn); err != nil {
		return nil, err
	}
	if p != BeforeUser && p != InUser {
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	}
	m := req.Messages[turn]
	if req.contentKind(turn) != '[' {
		return nil, fmt.Errorf("%w: content %d has no parts", ErrNoPlace, turn)
	}
	at := -1
	s := scanner{b: req.Body, i: m.contentStart, unchecked: true}
	for range s.elements {
		start := s.i
		if !s.geminiPart().result {
			at = start
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("%w: content %d is empty", ErrNoPlace, turn)
	}
	return []Insertion{{At: at, Text: append(req.parts.appendTextPart(req.reserve(quotedLen(text)+partFrame), text), ',')}}, nil
}

// appendInstruction inserts text as the last part of the system instruction.
func (r *Request) appendInstruction(text string) ([]Insertion, error) {
	part := r.parts.appendTextPart(nil, text)
	if r.systemEnd == r.systemStart {
		return []Insertion{{At: r.firstKey, Text: fmt.Appendf(nil, `"systemInstruction":{"parts":[%s]},`, part)}}, nil
	}
	if raw := r.Body[r.systemStart:r.systemEnd]; raw[0] == '[' && nonEmpty(raw) {
		return []Insertion{{At: r.systemEnd - 1, Text: append([]byte{','}, part...)}}, nil
	}
	return nil, fmt.Errorf("%w: the system instruction has no parts", ErrNoPlace)
}
