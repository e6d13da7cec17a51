package dialect

import (
	"fmt"
)

// Insert implements Dialect.
func (Chat) Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error) {
	if err := req.checkTurn(turn); err != nil {
		return nil, err
	}
	switch p {
	case BeforeUser:
		return []Insertion{{At: req.Messages[turn].Start, Text: req.chatText("user", text)}}, nil
	case InUser:
		return req.prependContent(turn, text)
	case System:
		last := req.lastSystem()
		if last < 0 {
			return []Insertion{{At: req.Messages[0].Start, Text: req.chatText("system", text)}}, nil
		}
		return req.appendContent(last, text)
	default:
		return nil, fmt.Errorf("%w: unknown placement %d", ErrNoPlace, p)
	}
}

// chatText returns a message and the comma after it.
func (r *Request) chatText(role, text string) []byte {
	const before, between, after = `{"role":"`, `","content":"`, `"},`
	b := r.reserve(len(before) + len(role) + len(between) + quotedLen(text) + len(after))
	b = append(append(append(b, before...), role...), between...)
	return append(appendQuoted(b, text), after...)
}

// lastSystem returns the index of the last of the leading system messages, -1
// if there are none.
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
