package proxy

import (
	"bytes"
	"slices"
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

// answerOf is the mark of a reply, of which it keeps nothing alive.
func answerOf(r dialect.Reply) answerMark {
	if r.Call != "" {
		return answerMark{call: strings.Clone(r.Call)}
	}
	return answerMark{text: textMark(r.Text)}
}

// textMark is 0 for no text. Clients may trim an answer, and set its parts apart in other ways.
func textMark(text string) uint64 {
	if text = strings.Join(strings.Fields(text), ""); text == "" {
		return 0
	}
	return xxh3.HashString(text)
}

// answerWithin is how many messages after a turn its answer is looked for: Responses has items of reasoning before it.
const answerWithin = 3

// fits says how well what stands behind turn i of req is that answer: 1 where it is, -1 where it is another, 0 where nobody knows.
// It reads a text, and so is for the few turns that were sent in several ways.
func (m answerMark) fits(req *dialect.Request, i int) int {
	fits := false
	switch last := min(i+answerWithin, len(req.Messages)-1); {
	case m.call != "":
		fits = bytes.Contains(req.Body[req.Messages[i+1].Start:req.Messages[last].End], []byte(m.call))
	case m.text != 0:
		fits = textMark(req.Answer(i+1, last)) == m.text
	default:
		return 0
	}
	if fits {
		return 1
	}
	return -1
}

// rank is how likely it is that what stands behind turn i of req goes on with v: its own answer is certain, and what no upstream has
// accepted nobody can go on with.
func (v *variant) rank(req *dialect.Request, i int) (rank int) {
	fits := v.answer.fits(req, i)
	switch {
	case fits > 0:
		return 4
	case v.taken:
		rank = 2
	}
	if fits == 0 {
		rank++
	}
	return rank
}

// noteAnswer notes what was answered to the turn at h, sent as v.
func (l *ledger) noteAnswer(s *scopeLedger, h chainHash, v *variant, m answerMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at(h); e != nil && slices.Contains(e.variants, v) {
		before := v.size()
		v.answer = m
		l.charge(s, v.size()-before)
	}
}

// hasAnswer says whether the turn at h is known to have been answered in words.
func (l *ledger) hasAnswer(s *scopeLedger, h chainHash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at(h)
	return e != nil && slices.ContainsFunc(e.variants, func(v *variant) bool { return v.answer.text != 0 })
}
