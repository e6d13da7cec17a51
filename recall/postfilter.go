package recall

import (
	"bytes"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// What passed the gate must still be worth its line: a block is read by a model that takes every line of it for meant. With
// [Request.NoGate] none of this applies.

const (
	// floorShare is the least share of the best score that is worth a line. Measured: see docs/recall-figures.md.
	floorShare = 0.25
	// besideFloor is how many times as much a turn needs that holds its own answer and no word of the query.
	besideFloor = 2.4
	// maxEmpty is the most terms of what can say nothing, marks included.
	maxEmpty = 4
	// maxQuestion is the most terms of a question that is shown with its answer. A longer one tells something by itself, and with the
	// answers to such fewer other memories fit into a block: measured.
	maxQuestion = 16
	// maxAnswer is how much of an answer a line shows behind its question, in bytes.
	maxAnswer = 400
	// commandFloor is floorShare for commands.
	commandFloor = 0.5
)

// beside reports whether nothing speaks for a turn but its neighbours, which tell little of one that holds its own answer. Where
// vectors count they may speak for any.
func (s *selection) beside(n int32) bool {
	holds, known := s.scratch.holdings(n)
	return known && s.q.vector == nil && holds.user|holds.kin|holds.assistant == 0 && (s.ix.turns[n].asstLen > 0 || s.q.Command)
}

// shortQuestion reports whether the user asks something in few words: a question that tells a reader nothing by itself.
func (t *turn) shortQuestion() bool {
	return t.traits&text.HasQuestion != 0 && t.userLen <= maxQuestion
}

// saysNothing reports whether a passage is no more than small talk: "yes", "thank you so much!".
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

// idleWords reports whether a text is small talk in a script without spaces, whose terms do not tell.
func (s *selection) idleWords(own *ownStrings) bool {
	said := s.scratch.text[own.text.from:own.text.to]
	return len(said) > 0 && said[0] >= utf8.RuneSelf && text.IsSmallTalk(said)
}

// isFiction reports whether a text is fiction, while the query asks about the user.
func (s *selection) isFiction(own *ownStrings) bool {
	return s.q.OfUser && s.q.Asks && s.q.IsFiction(s.scratch.text[own.text.from:own.text.to])
}

// maxEchoTerms is the maximum number of terms of a repeated command, marks included.
const maxEchoTerms = 5

// echoes reports whether an answered turn of the user's has nothing but words of
// the query: the same was said before.
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
		if h.terms > maxEchoTerms { // with marks
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

// telling is passage p of turn n, or where that says nothing the first that does; -1 if none does.
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

// answer adds what the assistant answered to the question that was taken last: a question by itself tells a reader nothing.
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
			if weight := s.heldBy(h.turn, p.packed); weight > held && s.filter.shows(s.ix.index, t, i) {
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

// told adds what the user said in a few words in the turn of an assistant's passage p: the assistant spoke of it ("Agreed. Here is the
// code"), and it is what holds.
func (s *selection) told(h hit, p int32) bool {
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

// cutAnswer cuts the text of a line to at most limit bytes at a blank, omission included.
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
	for len(text) > 0 && !utf8.RuneStart(s.scratch.text[from+len(text)]) { // no character is cut through
		text = text[:len(text)-1]
	}
	s.scratch.text = append(s.scratch.text[:from+len(text)], omission...)
	own.text.to = int32(len(s.scratch.text))
}
