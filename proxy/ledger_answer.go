package proxy

import (
	"bytes"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// answerMark is what is known of the answer to a turn: who begins two conversations alike and goes on with both is told apart by it.
// It is not stored: after a restart the newest counts.
type answerMark struct {
	call string // the id of the first tool call, "" = none is known
	text uint64 // a hash of the text, 0 = none is known
}

// answerOf is the mark of a reply.
func answerOf(r dialect.Reply) answerMark {
	if r.Call != "" {
		return answerMark{call: r.Call}
	}
	return answerMark{text: textMark(r.Text)}
}

// textMark is 0 for no text. Clients may trim an answer.
func textMark(text string) uint64 {
	if text = strings.TrimSpace(text); text == "" {
		return 0
	}
	return xxh3.HashString(text)
}

// callWithin is how many messages after a turn its first call is looked for: Responses has items of reasoning before it.
const callWithin = 3

// fits says how well what stands behind turn i of req is that answer: 1 where it is, -1 where it is another, 0 where nobody knows.
// It reads a text, and so is for the few turns that were sent in several ways.
func (m answerMark) fits(req *dialect.Request, i int) int {
	fits := false
	switch last := min(i+callWithin, len(req.Messages)-1); {
	case m.call != "":
		fits = bytes.Contains(req.Body[req.Messages[i+1].Start:req.Messages[last].End], []byte(m.call))
	case m.text != 0:
		fits = textMark(req.Text(i+1)) == m.text
	default:
		return 0
	}
	if fits {
		return 1
	}
	return -1
}

// noteAnswer notes what was answered to the turn at h, of the conversation conv.
func (l *ledger) noteAnswer(s *scopeLedger, h chainHash, conv string, m answerMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at(h)
	if e == nil {
		return
	}
	for _, v := range e.variants {
		if v.conv == conv && v.next == (chainHash{}) {
			v.answer = m
		}
	}
}
