package recall

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/text"
)

// Constraints are statements such as "I'm allergic to peanuts" that a request
// must respect, whatever the gate says of its words. The package query says
// which areas a request is about; here their words are looked up.

const (
	// maxConstraints limits such lines in a block.
	maxConstraints = 3
	// maxPerWord limits the turns that are taken for one word, the newest;
	// maxExamined those that are examined for it, and maxPostingsRead those
	// whose postings are read.
	maxPerWord      = 8
	maxExamined     = 64
	maxPostingsRead = 4096
	// maxToldTerms is the maximum length of a user's turn that is taken as such
	// a statement, and maxMarkedTerms that of a fact with a mark, in terms. In
	// a long one the words belong to different things.
	maxToldTerms   = 24
	maxMarkedTerms = 16
	// constraintAge is the age at which a statement counts half as much as one
	// of today.
	constraintAge = 2 * profileAge
	// constraintFloor is the minimum weight of a ConstraintTold statement: an
	// allergy does not pass.
	constraintFloor = 0.7
)

// constraintHit is a turn with a word of a constraint.
type constraintHit struct {
	hit
	word uint32
}

// constraints returns the turns with constraints on the request, the most
// important first.
func (ix finder) constraints(q *resolvedQuery, f *filter, s *scratch) []constraintHit {
	if q.speaker != 0 || q.SmallTalk {
		return nil
	}
	areas := q.ConstraintAreas()
	if areas == 0 {
		return nil
	}
	found := s.constraints[:0]
	for area, words := range query.Constraints() {
		if areas>>area&1 == 0 {
			continue
		}
		from := len(found)
		for _, w := range words {
			if w.Language > text.English && ix.spoken[w.Language] == 0 {
				continue
			}
			id, ok := ix.terms.find(w.Stem)
			if !ok || ix.posts[id].df == 0 {
				continue
			}
			found = ix.addConstraints(found, from, constraintSearch{id, w.Kind, area == 0, w.Whole}, q, f, s)
		}
	}
	slices.SortStableFunc(found, func(a, b constraintHit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.turn, a.turn))
	})
	s.constraints = found
	return found
}

// constraintSearch is a word of constraints that is searched for.
type constraintSearch struct {
	id   uint32
	kind query.ConstraintKind
	kin  bool   // for ConstraintShared: words related to the request's count too
	of   string // the word that the text must have, if id is a part of it
}

// addConstraints appends the turns that have a word, or raises the score of
// those that were found already.
func (ix finder) addConstraints(found []constraintHit, from int, w constraintSearch, q *resolvedQuery, f *filter, s *scratch) []constraintHit {
	turns := s.entries[:0]
	for buf, now := ix.posts[w.id].buf, uint32(0); len(buf) > 0; {
		var tf frequency
		if buf, now, tf = next(buf, now); tf.tell() > 0 {
			if len(turns) == 2*maxPostingsRead {
				turns = turns[:copy(turns, turns[maxPostingsRead:])]
			}
			turns = append(turns, now-1)
		}
	}
	s.entries = turns[:0]
	taken, looked := 0, 0
	for i := len(turns) - 1; i >= max(0, len(turns)-maxPostingsRead) && taken < maxPerWord && looked < maxExamined; i-- {
		n := int32(turns[i])
		t := &ix.turns[n]
		if w.kind != query.ConstraintTold && !t.mayHold() || t.flags&(turnDead|turnResource) != 0 || !f.pass(n) {
			continue
		}
		looked++
		if at := slices.IndexFunc(found[from:], func(h constraintHit) bool { return h.turn == n }); at >= 0 {
			found[from+at].score += 0.5
			taken++
			continue
		}
		if w.of != "" && !bytes.Contains(ix.lowerText(t.mem, s), []byte(w.of)) {
			continue
		}
		score, aged := 1.0, agedBy(f.now, t.time, constraintAge)
		switch w.kind {
		case query.ConstraintTold:
			aged = max(aged, constraintFloor)
			if score += 2; t.flags&turnFact == 0 && (t.userLen > maxToldTerms || t.traits&text.FirstPerson == 0 && !query.AboutSpeaker(ix.lowerText(t.mem, s))) {
				continue
			}
		case query.ConstraintFact: // or what is none yet
			if t.flags&turnFact == 0 && t.traits&text.HasPreference == 0 && !query.IsLasting(ix.lowerText(t.mem, s)) {
				continue
			}
		case query.ConstraintMarked:
			if t.userLen > maxMarkedTerms || !query.IsLasting(ix.lowerText(t.mem, s)) {
				continue
			}
		case query.ConstraintShared:
			if t.flags&turnFact == 0 && t.traits&text.HasPreference == 0 || !ix.sharesWord(n, q, w) {
				continue
			}
		}
		if t.flags&turnFact != 0 {
			score++
		}
		found = append(found, constraintHit{hit{turn: n, score: score * aged}, w.id})
		taken++
	}
	return found
}

// mayHold reports whether a turn may say something permanent: it is a fact, or
// the user's own in a few words.
func (t *turn) mayHold() bool {
	return t.flags&turnFact != 0 || t.traits&(text.HasPreference|text.FirstPerson) != 0 && t.userLen <= maxToldTerms
}

// lowerText returns the text of passage i in lower case. It is valid until the
// next call.
func (ix finder) lowerText(i int32, s *scratch) []byte {
	s.text = ix.appendText(s.text[:0], i)
	return bytes.ToLower(s.text)
}

// sharesWord reports whether turn n has a content word of the query other than
// the one that was searched for.
func (ix finder) sharesWord(n int32, q *resolvedQuery, sought constraintSearch) bool {
	t := &ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		packed := ix.head(i).packed
		for _, t := range q.terms {
			if t.Borrowed || t.Role&(query.IsLight|query.OfRequest|query.OfArea) != 0 {
				continue
			}
			for _, w := range t.words {
				if w.id != sought.id && (sought.kin || w.how == "") && findTerm(packed, w.id) >= 0 {
					return true
				}
			}
		}
	}
	return false
}

// takeConstraints takes constraints before all else.
func (s *selection) takeConstraints(hits []constraintHit) {
	limit := min(maxConstraints, max(s.topK/2, 1)) // leave room for what the words find
	for _, h := range hits {
		if len(s.taken) == limit {
			return
		}
		t := &s.ix.turns[h.turn]
		for i := t.mem; i < t.mem+int32(t.count); i++ {
			if p := s.ix.head(i); !p.assistant && !(t.flags&turnFact == 0 && s.q.IsFiction(s.ix.appendText(nil, i))) && findTerm(p.packed, h.word) >= 0 && s.filter.shows(s.ix.index, t, i) {
				if s.take(h.hit, i, 0) == "" {
					s.taken[len(s.taken)-1].constraint = true
				}
				break
			}
		}
	}
}
