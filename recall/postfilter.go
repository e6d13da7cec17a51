package recall

import (
	"bytes"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// What passed the gate must still be worth its line, because a model takes
// every line of a block seriously. Request.NoGate switches all of this off.

const (
	// floorShare is the minimum share of the best score that is worth a line.
	// docs/recall-figures.md has the measurements.
	floorShare = 0.25
	// neighbourFloor is the factor by which a turn that has its own answer and
	// no word of the query must exceed the floor.
	neighbourFloor = 2.4
	// maxEmpty is the maximum number of terms of a passage that may say
	// nothing, marks included.
	maxEmpty = 4
	// maxQuestion is the maximum number of terms of a question that is shown
	// with its answer. A longer question says enough itself, and showing such
	// answers leaves room for fewer other memories.
	maxQuestion = 16
	// maxAnswer is how much of an answer a line shows after its question, in
	// bytes.
	maxAnswer = 400
	// commandFloor is floorShare for commands.
	commandFloor = 0.5
)

// onlyNeighbours reports whether nothing but its neighbours supports a turn,
// which says little about one that has its own answer. Vectors may support any
// turn.
func (s *selection) onlyNeighbours(n int32) bool {
	holds, known := s.scratch.holdings(n)
	return known && s.q.vector == nil && holds.user|holds.kin|holds.assistant == 0 && (s.ix.turns[n].asstLen > 0 || s.q.Command)
}

// shortQuestion reports whether the user asks something in few words, which
// alone tells a reader nothing.
func (t *turn) shortQuestion() bool {
	return t.traits&text.HasQuestion != 0 && t.userLen <= maxQuestion
}

// saysNothing reports whether a passage is only small talk: "yes", "thank you
// so much!".
func (ix ranker) saysNothing(h *head) bool {
	if h.terms > maxEmpty {
		return false
	}
	for at := 0; at < len(h.packed); {
		var id uint32
		if id, at = nextTerm(h.packed, at); id == text.MarkQuestion {
			return false
		} else if !text.IsMark(id) && query.RoleOf(string(ix.terms.raw(id)))&query.IsSocial == 0 {
			return false
		}
	}
	return true
}

// isSmallTalk reports whether a text is small talk in a script without spaces,
// whose terms don't reveal it.
func (s *selection) isSmallTalk(own *ownStrings) bool {
	said := s.scratch.text[own.text.from:own.text.to]
	return len(said) > 0 && said[0] >= utf8.RuneSelf && text.IsSmallTalk(said)
}

// isFiction reports whether a text is fiction, while the query asks about the
// user.
func (s *selection) isFiction(own *ownStrings) bool {
	return s.q.AboutUser && s.q.Asks && s.q.IsFiction(s.scratch.text[own.text.from:own.text.to])
}

// maxEchoTerms is the maximum number of terms of a repeated command, marks
// included.
const maxEchoTerms = 5

// echoes reports whether an answered turn of the user's has nothing but words
// of the query: the same was said before.
func (s *selection) echoes(n int32) bool {
	t := &s.ix.turns[n]
	if t.traits&text.HasQuestion != 0 || t.asstLen == 0 {
		return false
	}
	said := false
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		h := s.ix.head(i)
		if h.assistant {
			continue
		}
		if h.terms > maxEchoTerms { // marks included
			return false
		}
		for at := 0; at < len(h.packed); {
			var id uint32
			if id, at = nextTerm(h.packed, at); !text.IsMark(id) && s.q.termOf(id) < 0 {
				return false
			}
		}
		said = true
	}
	return said
}

// telling returns passage p of turn n, or if that says nothing the first one
// that does, or -1.
func (s *selection) telling(n, p int32) int32 {
	h := s.ix.head(p)
	if !s.ix.saysNothing(&h) {
		return p
	}
	t := &s.ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if h := s.ix.head(i); !s.ix.saysNothing(&h) && s.filter.shows(s.ix.index, t, i) {
			return i
		}
	}
	return -1
}

// answer adds the assistant's answer to the question that was taken last.
func (s *selection) answer(h hit) {
	t := &s.ix.turns[h.turn]
	last := len(s.res.Memories) - 1
	if t.asstLen == 0 || t.userLen > maxQuestion || len(s.res.Memories) == s.topK || s.res.Memories[last].Memory.Provenance.Role != storage.RoleUser {
		return
	}
	if t.traits&text.HasQuestion == 0 { // "recommend a hotel"
		text := s.taken[last].own.text
		lower := append(s.q.Lower[:0], s.scratch.text[text.from:text.to]...)
		for i, c := range lower {
			if c >= 'A' && c <= 'Z' {
				lower[i] |= 0x20
			}
		}
		if s.q.Lower = lower; query.ReadIntent(lower)&query.WantsAdvice == 0 {
			return
		}
	}
	best, held := int32(-1), -1.0
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if p := s.ix.head(i); p.assistant && !s.ix.saysNothing(&p) {
			if weight := s.coverage(h.turn, p.packed); weight > held && s.filter.shows(s.ix.index, t, i) {
				best, held = i, weight
			}
		}
	}
	if best >= 0 {
		if s.take(h, best, maxAnswer) == "" {
			s.taken[len(s.taken)-1].answers = true
		}
	}
}

// statement adds what the user said in a few words in the turn of an
// assistant's passage p. The assistant spoke about it ("Agreed. Here is the
// code"), and it is what counts.
func (s *selection) statement(h hit, p int32) bool {
	t := &s.ix.turns[h.turn]
	if head := s.ix.head(p); !head.assistant || t.traits&text.HasQuestion != 0 || t.userLen > maxQuestion || len(s.res.Memories)+1 >= s.topK {
		return false
	}
	for i := t.mem; i < p; i++ {
		if u := s.ix.head(i); !u.assistant && u.terms > maxEmpty && s.filter.shows(s.ix.index, t, i) {
			return s.take(h, i, maxAnswer) == ""
		}
	}
	return false
}

// cutAnswer cuts the text of a line at a blank, to at most limit bytes
// including the omission.
func (s *selection) cutAnswer(own *ownStrings, limit int) {
	if own.text.length() <= limit {
		return
	}
	if s.screened(own); own.text.length() <= limit {
		return
	}
	from := int(own.text.from)
	text := s.scratch.text[from : from+limit-len(omission)]
	if blank := bytes.LastIndexAny(text, " \n"); blank > len(text)/2 {
		text = text[:blank]
	}
	for len(text) > 0 && !utf8.RuneStart(s.scratch.text[from+len(text)]) { // not inside a character
		text = text[:len(text)-1]
	}
	s.scratch.text = append(s.scratch.text[:from+len(text)], omission...)
	own.text.to = int32(len(s.scratch.text))
}
