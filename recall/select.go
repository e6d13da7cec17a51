package recall

import (
	"bytes"
	"context"
	"slices"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// candidatesPerMemory is how many turns are considered for every memory asked
// for, because duplicates and the budget exclude some. phrasesPerMemory is how
// many of them are searched for phrases.
const (
	candidatesPerMemory = 4
	phrasesPerMemory    = 2
	// keptText is the maximum memory for texts that is kept for the next
	// request, in bytes.
	keptText = 128 << 10
)

// selection fills a result from ranked turns.
type selection struct {
	ix      ranker
	scope   storage.Scope
	q       *resolvedQuery
	filter  *filter
	topK    int
	into    []Scored
	budget  int     // of the request, bytes
	room    int     // what remains of it if no text is longer than minExcerpt
	gate    float64 // from the configuration
	weights *Weights
	explain bool
	maxCut  int // limit of the candidates that are reported as not returned
	lines   bool
	screen  func(string) string // of the request
	gated   bool                // leave out what is not worth a line
	unsure  bool                // only a lower bar than the gate was reached
	first   bool                // no words were searched for: the first passage of a turn is shown
	words   *text.Analyzer
	res     Result
	scratch *scratch
	hits    []hit   // of res.Memories
	taken   []taken // of res.Memories
}

// ranking is the turns from which a result is made, best first.
type ranking struct {
	ix   ranker
	hits []hit
	keep int // how many hits count
}

// fill applies the gate and takes turns, best first.
func (s *selection) fill(ctx context.Context, r *ranking, gate float64) {
	top := r.hits
	var chosen [coverTurns]int32
	held := 0.0
	for i := range top[:min(len(top), coverTurns)] {
		var h float64
		if s.first {
			chosen[i] = s.opening(top[i].turn)
			continue
		}
		chosen[i], h = s.passage(top[i].turn, true)
		held = max(held, h)
	}
	s.res.Relevance = 1
	if !s.first {
		s.res.Relevance = relevance(s.q, s.ix.matched(top, s.q, s.weights), held)
	}
	if gate > 0 && s.onlyFigures(top) {
		s.res.Relevance = 0
	}
	vectorsOnly := false
	if v := s.q.vector; v != nil && !s.first {
		s.res.Relevance, vectorsOnly = v.relevance(s.q, top, s.gate)
		vectorsOnly = vectorsOnly && gate > 0
	}
	if gate > 0 {
		if s.unsure = s.res.Relevance < gate; s.unsure {
			s.topK = min(s.topK, maxUnsure)
		}
		if len(s.taken) == 0 { // constraints say enough
			gate = s.ix.bar(s.q, gate)
		}
	}
	if s.res.Relevance < gate {
		s.res.Gated = min(len(top), r.keep)
		for i := 0; s.explain && i < min(len(top), s.maxCut); i++ {
			s.cut(s.ix.turns[top[i].turn].mem, top[i], CutGate)
		}
		return
	}
	s.gated = gate > 0
	var f floors
	if s.gated && !vectorsOnly {
		f = s.floors(s.ix.matched(top, s.q, s.weights), top[0].turn)
	}
	before := len(s.res.Memories)
	for i := 0; i < min(len(top), r.keep); i++ {
		h := top[i]
		floor := s.floor(&f, h.turn)
		if h.score < f.least && !s.explain {
			return
		}
		onlyNeighbours := !s.first && s.onlyNeighbours(h.turn)
		if h.score < floor || onlyNeighbours && s.gated && s.q.Command || onlyNeighbours && (h.score < floor*neighbourFloor || s.gated && s.ix.turns[h.turn].shortQuestion()) {
			if s.explain {
				s.cut(s.ix.turns[h.turn].mem, h, CutFloor)
			}
			continue
		}
		if len(s.res.Memories) >= s.topK && (!s.explain || len(s.res.Cut) >= s.maxCut) || i%16 == 15 && ctx.Err() != nil {
			return
		}
		if vectorsOnly && !s.q.vector.isOutlier(h.turn) { // nothing supports it
			if s.explain {
				s.cut(s.ix.turns[h.turn].mem, h, CutGate)
			}
			continue
		}
		var p int32
		switch {
		case i < coverTurns:
			p = chosen[i]
		case s.first:
			p = s.opening(h.turn)
		default:
			p, _ = s.passage(h.turn, false)
		}
		why := CutVisible
		if p >= 0 && s.gated {
			if p = s.telling(h.turn, p); p >= 0 && s.q.Command && s.echoes(h.turn) {
				p = -1
			}
			if p < 0 {
				why = CutEmpty
			}
		}
		if p >= 0 {
			limit := 0
			if s.gated && s.statement(h, p) {
				limit = maxAnswer
			}
			why = s.take(h, p, limit)
		}
		if why == CutEmpty && f.least > 0 && !s.q.Command && len(s.res.Memories) == before && i+1 < len(top) { // the best says nothing
			f = s.floors(top[i+1].score, top[i+1].turn)
		}
		switch {
		case why != "" && s.explain:
			s.cut(max(p, s.ix.turns[h.turn].mem), h, why)
		case why == "" && s.gated && !onlyNeighbours:
			s.answer(h)
		}
	}
}

// take adds a passage, of whose text a line shows at most limit bytes (0 =
// all), or returns why not.
func (s *selection) take(h hit, p int32, limit int) Reason {
	if len(s.res.Memories) >= s.topK { // which may have become less since constraints were taken
		return CutTopK
	}
	p = s.whole(p)
	at := len(s.taken)
	s.taken = slices.Grow(s.taken, 1)[:at+1] // in place, because these are large; what follows the end is zero
	found := &s.taken[at]
	found.head, found.mem = s.ix.head(p), p
	why := CutDuplicate
	if !s.ix.duplicate(s.taken[:at], found, &s.scratch.alike) {
		why = s.add(h, p, found, limit)
	}
	if why != "" {
		*found = taken{}
		s.taken = s.taken[:at]
	}
	return why
}

// add adds passage p to the result, if the budget allows it. Its strings stay
// in s.scratch.text until all are there, and the ids of lines in s.q.ids.
func (s *selection) add(h hit, p int32, found *taken, limit int) Reason {
	if s.res.Memories == nil {
		if s.res.Memories = s.into[:0]; cap(s.into) < s.topK {
			s.res.Memories = make([]Scored, 0, s.topK)
		}
		s.scratch.text, s.q.ids = s.scratch.text[:0], s.q.ids[:0]
	}
	n := len(s.res.Memories)
	m := &s.res.Memories[:n+1][n]
	*m = Scored{}
	before, ids := s.scratch.text, s.q.ids
	if s.lines {
		s.scratch.text, s.q.ids, found.own = s.ix.unpackLine(&found.rest, s.ix.mems[p].turn, &m.Memory, before, ids)
		if limit > 0 {
			s.cutAnswer(&found.own, limit)
		}
	} else {
		s.scratch.text, found.own = s.ix.unpackMemory(&found.rest, s.ix.mems[p].turn, s.scope, &m.Memory, before)
	}
	refuse := func(why Reason) Reason {
		s.scratch.text, s.q.ids = s.scratch.text[:len(before)], s.q.ids[:len(ids)]
		return why
	}
	if s.repeats(&m.Memory, &found.own) {
		return refuse(CutDuplicate)
	}
	if s.gated && (s.isSmallTalk(&found.own) || m.Memory.Provenance.Role != storage.RoleAssistant && s.isFiction(&found.own)) {
		return refuse(CutEmpty)
	}
	least := overhead(&m.Memory) + min(found.own.text.length(), minExcerpt)
	if least > s.room {
		return refuse(CutBudget)
	}
	s.room -= least
	m.Score = h.score
	s.res.Memories = s.res.Memories[:n+1]
	s.hits = append(s.hits, h)
	return ""
}

// finish gives the memories of the result their strings, as parts of one
// string.
func (s *selection) finish() {
	if len(s.res.Memories) == 0 {
		return
	}
	all, ids := string(s.scratch.text), string(s.q.ids)
	for i := range s.res.Memories {
		m, own := &s.res.Memories[i].Memory, &s.taken[i].own
		if s.lines {
			m.ID, m.Text = own.id.of(ids), own.text.of(all)
		} else {
			own.giveTo(m, all)
		}
	}
	if cap(s.scratch.text) > keptText {
		s.scratch.text = nil
	}
}

// repeats reports whether m is a fact whose words are in a passage of its turn
// that was taken or that the request has, or whether m is such a passage of a
// fact that was taken.
func (s *selection) repeats(m *storage.Memory, own *ownStrings) bool {
	if own.turn.from == own.turn.to || m.Provenance.Role == storage.RoleAssistant {
		return false
	}
	all := s.scratch.text
	if s.lines {
		all = s.q.ids
	}
	turn := func(o *ownStrings) []byte { return all[o.turn.from:o.turn.to] }
	if m.Kind == storage.KindFact && s.isVisible(turn(own)) {
		return true
	}
	for i := range s.res.Memories {
		o := &s.res.Memories[i].Memory
		if o.Kind != m.Kind && o.Provenance.Role != storage.RoleAssistant && bytes.Equal(turn(&s.taken[i].own), turn(own)) {
			return true
		}
	}
	return false
}

// isVisible reports whether a block in the request has a passage of the user's
// of this turn.
func (s *selection) isVisible(turn []byte) bool {
	if len(s.filter.visible) == 0 {
		return false
	}
	n, ok := s.ix.turnByKey(hashID(s.ix.seed, turn))
	if !ok {
		return false
	}
	t := &s.ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if h := s.ix.head(i); !h.assistant && s.filter.seen(s.ix.index, i) {
			return true
		}
	}
	return false
}

func (s *selection) cut(p int32, h hit, why Reason) {
	if len(s.res.Cut) < s.maxCut {
		s.res.Cut = append(s.res.Cut, Cut{ID: string(s.ix.appendID(nil, p)), Score: h.score, Reason: why})
	}
}

// opening returns the first passage of a turn that may be shown, or -1.
func (s *selection) opening(n int32) int32 {
	t := &s.ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if s.filter.shows(s.ix.index, t, i) {
			return i
		}
	}
	return -1
}

// passage returns the passage of a turn with the most of the query, and its
// weight, or -1 if none may be shown. If equal, the user's words come first.
// Without weigh, nothing is read if there is no choice.
func (s *selection) passage(n int32, weigh bool) (best int32, held float64) {
	t := &s.ix.turns[n]
	best, held = -1, -1.0
	hidden := false
	noted, known := s.scratch.holdings(n)
	if t.flags&turnSpoken != 0 && known && (t.count == 1 || !noted.onlyAssistant()) && s.filter.shows(s.ix.index, t, t.mem) {
		if !weigh { // the assistant's does not have more
			return t.mem, 0
		}
		if held, ok := s.q.userCoverage(noted); ok {
			return t.mem, held
		}
	}
	if t.count == 1 && !weigh {
		if s.filter.shows(s.ix.index, t, t.mem) {
			best = t.mem
		}
		return best, 0
	}
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		h := s.ix.head(i)
		if h.assistant && best >= 0 && t.count == 2 && known && !noted.onlyAssistant() {
			continue // it does not have more than the user's
		}
		weight := s.q.coverage(h.packed)
		if h.assistant {
			weight *= 0.999
		}
		if weight <= held {
			continue
		}
		if s.filter.shows(s.ix.index, t, i) {
			best, held = i, weight
		} else {
			hidden = true
		}
	}
	if hidden && held == 0 { // the rest of the turn has nothing of the query
		return -1, 0
	}
	return best, max(held, 0)
}
