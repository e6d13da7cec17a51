package recall

import (
	"math"
	"math/bits"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// ranker scores the turns of an index for a resolved query. It changes nothing
// in the index.
type ranker struct{ *index }

// hit is a ranked turn.
type hit struct {
	turn    int32
	phrased bool // phrases have been searched for
	score   float64
}

// scratch is the memory that one query needs. It is pooled; all arrays are zero
// between queries.
type scratch struct {
	sums        []float32 // by turn, from scoreOwnWords
	marks       []float32 // the same with their factors, in the order of found
	seeds       []int32   // returned by pickSeeds
	cells       []cell    // of the candidates in the order of their turns, then of those that only vectors found
	session     []float32 // by group, of the current concept; 0 is no group
	near        bitset    // turns whose text counts for a candidate; before there are any, the first ones of found
	marked      int       // how many of found are in near
	chosen      bitset    // candidates
	before      []int32   // number of candidates before each word of chosen
	met         bitset    // conversations of candidates
	entries     []uint32  // decoded postings of the query: turn << 8 | frequency; therefore at most maxTurns turns
	nearby      []uint32  // those of one word in turns that are near
	spans       []span    // of the words in entries
	found       []int32   // turns with a sum
	touched     []int32   // cells with an x
	ranked      []int32   // cells with a score, in the order in which they got it
	grouped     []int32   // groups with a session; for markCandidates, conversations
	order       []int
	costs       []int
	picked      []hit
	counts      [buckets]int32
	norms       norms
	normsOf     fieldWeights // of which norms were made
	factors     headerFactors
	constraints []constraintHit
	hits        []hit   // of the result
	taken       []taken // of the result
	text        []byte  // of the result
	matches     []match // in the current text
	alike       termTable
	read        []readStatement // for updates
	newer       []newer         // the same
}

// cell holds what is known about a candidate. It takes 40 bytes in one place;
// arrays by turn would take four cache lines.
type cell struct {
	turn       int32
	turnHeader turnHeader
	x          float32 // of the current concept
	score      float32 // before the factors
	holds      holdings
	group      int32   // the conversation whose text counts for it, numbered from one; 0 = none
	norm       float32 // of the group's length, 0 = none
	seed       bool    // returned by pickSeeds, so the filter passes it
	found      bool    // it has a score
}

// makeCells makes the cells of the candidates. alone means that they are the
// seeds.
func (s *scratch) makeCells(ix ranker, seeds []int32, alone bool, f *fieldWeights) {
	chosen, before := s.chosen, s.before[:len(s.chosen)]
	n := 0
	for i, word := range chosen {
		before[i] = int32(n)
		n += bits.OnesCount64(word)
	}
	if cap(s.cells) < n {
		s.cells = make([]cell, n+n/4)
	}
	cells, k := s.cells[:n], 0
	conv, group, norm := int32(-1), int32(0), float32(0)
	for i, word := range chosen {
		for ; word != 0; word &= word - 1 {
			n := int32(i<<6 | bits.TrailingZeros64(word))
			c := &cells[k]
			k++
			*c = cell{}
			c.turn, c.turnHeader, c.seed = n, ix.headers[n], alone
			if c.turnHeader.alone() {
				continue
			}
			if of := ix.turns[n].conv; of != conv { // mostly the same as for the previous turn
				conv, group, norm = of, 0, 0
				if f.session > 0 && ix.isGroup(conv) {
					group, norm = conv+1, f.sessionNorm(&ix.convs.list[conv])
				}
			}
			c.group, c.norm = group, norm
		}
	}
	s.cells, s.ranked = cells, s.ranked[:0]
	if !alone {
		for _, n := range seeds {
			cells[s.place(n)].seed = true
		}
	}
}

// place returns the position of a candidate's cell.
func (s *scratch) place(n int32) int32 {
	return s.before[n>>6] + int32(bits.OnesCount64(s.chosen[n>>6]&(1<<(n&63)-1)))
}

// holdings returns what was recorded of a turn. It is not ok if the turn is not
// a candidate.
func (s *scratch) holdings(n int32) (h holdings, ok bool) {
	if !s.chosen.has(n) {
		return h, false
	}
	return s.cells[s.place(n)].holds, true
}

// holdings records which concepts of the query a turn's own texts have, one bit
// each. Of the user's text only the terms themselves count. kin has the
// concepts of which the text has a related word.
type holdings struct{ user, kin, assistant uint32 }

const beyond uint32 = 1 << 30 // all concepts from the 31st on

// bits returns the bit of the concept three times: for the term itself, for a
// related word, and for either. One of the first two is 0.
func (s *span) bits() (itself, kin, bit uint32) {
	bit = 1 << min(s.concept, 30)
	if s.itself {
		return bit, 0, bit
	}
	return 0, bit, bit
}

// add records a word by its bits.
func (h *holdings) add(tf frequency, itself, kin, bit uint32) {
	h.user |= itself * tf.byUser()
	h.kin |= kin * tf.byUser()
	h.assistant |= bit * tf.byAssistant()
}

// onlyAssistant reports whether the assistant's text may have a concept that
// the user's does not.
func (h holdings) onlyAssistant() bool {
	return h.assistant&^h.user != 0 || h.assistant&beyond != 0
}

// neighbours reports whether the user's text has two terms that are adjacent in
// the query.
func (h holdings) neighbours() bool {
	return h.user&(h.user>>1) != 0 || h.user&beyond != 0
}

// span is the part of entries that belongs to one word.
type span struct {
	concept  int
	term     uint32
	share    float32
	from, to int
	itself   bool // the term, not a related word
	late     bool // decoded once the candidates are known
}

type bitset []uint64

func (b bitset) has(n int32) bool { return b[n>>6]&(1<<(n&63)) != 0 }
func (b bitset) set(n int32)      { b[n>>6] |= 1 << (n & 63) }

func (b *bitset) grow(n int) {
	if words := n/64 + 1; len(*b) < words {
		*b = make(bitset, words+words/4)
	}
}

func (s *scratch) grow(ix *index) {
	if n := len(ix.turns); len(s.sums) < n {
		s.sums = make([]float32, n+n/4)
	}
	if n := len(ix.convs.list) + 1; len(s.session) < n {
		s.session = make([]float32, n+n/4)
	}
	s.near.grow(len(ix.turns))
	s.chosen.grow(len(ix.turns))
	if len(s.before) < len(s.chosen) {
		s.before = make([]int32, len(s.chosen))
	}
	s.met.grow(len(ix.convs.list))
	s.entries, s.spans, s.found = s.entries[:0], s.spans[:0], s.found[:0]
}

// clear forgets the candidates, and the records that taken refers to.
func (s *scratch) clear() {
	clear(s.taken)
	s.hits, s.taken, s.read = s.hits[:0], s.taken[:0], s.read[:0]
	if cap(s.alike.slots) > keptTerms {
		s.alike.slots = nil
	}
	clear(s.chosen)
}

// idf returns ln(1 + (n - df + 0.5) / (df + 0.5)).
func idf(n, df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }

// lend is the weight of a turn's user text for another turn.
type lend struct{ tell, ask float32 }

func (l lend) of(tell, ask float32) float32 { return l.tell*tell + l.ask*ask }

// fieldWeights are the weights of the fields for one query over one index.
type fieldWeights struct {
	k1                                     float32
	user, userAsk, assistant, session      float32
	userFlat, assistantFlat, sessionFlat   float32 // 1 - b
	userSlope, assistantSlope, sessSlope   float32 // b / mean length
	before1, before2, after1, after2, away lend
	answered                               float32 // before1.ask of a turn that has its own answer
}

func (ix ranker) fieldWeights(q *resolvedQuery, w *Weights) fieldWeights {
	f := fieldWeights{
		k1: float32(w.K1), user: float32(w.User), userAsk: float32(w.User * w.UserAsk), assistant: float32(w.Assistant),
		session: float32(w.Session), userFlat: float32(1 - w.UserB), assistantFlat: float32(1 - w.AssistantB), sessionFlat: float32(1 - w.SessionB),
		userSlope: slope(w.UserB, ix.userLen, ix.userTurns), assistantSlope: slope(w.AssistantB, ix.asstLen, ix.asstTurns),
		sessSlope: slope(w.SessionB, ix.userLen+ix.asstLen, int64(len(ix.convs.list))),
		before1:   lend{float32(w.Before1), float32(w.Before1Ask)}, before2: lend{float32(w.Before2), float32(w.Before2Ask)},
		after1: lend{float32(w.After1), float32(w.After1Ask)}, after2: lend{float32(w.After2), float32(w.After2Ask)},
		away: lend{float32(w.Away3), float32(w.Away3Ask)}, answered: float32(w.Before1Answered),
	}
	if q.Intent&query.WantsAssistant != 0 {
		f.assistant *= float32(w.AssistantAsked)
	}
	return f
}

// toNext returns the weight of a turn for the next one. If the turn itself has
// no answer, the next one likely answers it.
func (f *fieldWeights) toNext(t *turn) lend {
	if t.asstLen > 0 {
		return lend{f.before1.tell, f.answered}
	}
	return f.before1
}

// slope returns b over the mean length.
func slope(b float64, sum, n int64) float32 {
	if sum <= 0 {
		return 0
	}
	return float32(b * float64(n) / float64(sum))
}

// userNorm and assistantNorm return the factor by which a text's length scales
// its frequencies.
func (f *fieldWeights) userNorm(length uint16) float32 {
	return 1 / (f.userFlat + f.userSlope*float32(length))
}

func (f *fieldWeights) assistantNorm(length uint16) float32 {
	return 1 / (f.assistantFlat + f.assistantSlope*float32(length))
}

// own returns the length-normalised frequencies of a term in a turn's own
// fields, before their weights.
func (f *fieldWeights) own(t *turn, tf frequency) (tell, ask, assistant float32) {
	if tf >= assistantOnce {
		assistant = tf.assistant() * f.assistantNorm(t.asstLen)
		if tf&userFrequency == 0 {
			return 0, 0, assistant
		}
	}
	norm := f.userNorm(t.userLen)
	return tf.tell() * norm, tf.ask() * norm, assistant
}

func (f *fieldWeights) sessionNorm(c *conv) float32 {
	return f.session / (f.sessionFlat + f.sessSlope*float32(c.len))
}

// aloneNorm is sessionNorm for a turn that is its whole conversation.
func (f *fieldWeights) aloneNorm(length int) float32 {
	return f.session / (f.sessionFlat + f.sessSlope*float32(length))
}

// maxGroup is the maximum length, in turns, of a conversation whose whole text
// counts for its turns. In a longer one it says nothing.
const maxGroup = 64

// isGroup reports whether the text of conversation c counts for its turns.
func (ix ranker) isGroup(c int32) bool { return c >= 0 && ix.convs.list[c].count <= maxGroup }

// rank scores exactly the turns that the query touches most, directly or
// through a neighbour, and leaves them in s.cells. It returns how many turns
// have words of the query themselves.
func (ix ranker) rank(q *resolvedQuery, w *Weights, s *scratch, k int, f *filter) (considered int) {
	s.grow(ix.index)
	if q.inHeader() {
		s.factors.fill(ix.index, q, w)
	}
	fw := ix.fieldWeights(q, w)
	considered = ix.scoreOwnWords(q, w, &fw, s, k)
	seeds := ix.pickSeeds(q, w, s, k, f)
	alone := ix.markCandidates(seeds, s)
	s.makeCells(ix, seeds, alone, &fw)
	ix.scoreWithNeighbours(q, &fw, s)
	clear(s.near)
	return considered
}

// nearby returns the postings of a word in turns near candidates. They are
// valid until the next call.
func (ix ranker) nearby(word *span, s *scratch) []uint32 {
	if word.late {
		from := len(s.entries)
		s.entries = filterPostings(s.entries, ix.posts[word.term].buf, s.near)
		return s.entries[from:]
	}
	all := s.entries[word.from:word.to]
	if cap(s.nearby) < len(all) {
		s.nearby = make([]uint32, len(all)+len(all)/4)
	}
	out, near := s.nearby[:len(all)], s.near
	k := 0
	for _, e := range all {
		out[k] = e
		k += int(near[e>>14] >> (e >> 8 & 63) & 1) // mostly 0, but unpredictable, so no branch
	}
	return out[:k]
}

// factors multiplies what does not depend on a term. With parts, it appends
// each factor other than 1.
func (ix ranker) factors(t *turn, q *resolvedQuery, w *Weights, parts *[]Part) float64 {
	product := 1.0
	times := func(name string, v float64) {
		product *= v
		if parts != nil && v != 1 {
			*parts = append(*parts, Part{Name: name, Value: v})
		}
	}
	if q.speaker != 0 && t.speaker == q.speaker {
		times(PartSpeaker, w.Speaker)
	}
	if t.traits&text.FirstPerson != 0 {
		times(PartFirstPerson, q.personFactor(w))
	}
	if q.project != 0 && t.conv >= 0 && ix.convs.list[t.conv].project == q.project {
		times(PartProject, w.Project)
	}
	if t.opens() {
		times(PartOpening, w.Opening)
	}
	if q.Intent&query.WantsAdvice != 0 && t.traits&text.HasPreference != 0 {
		times(PartWish, w.Wish)
	}
	if q.Intent&query.WantsTime != 0 && t.traits&text.HasTime != 0 {
		times(PartTimeAnswer, w.TimeAnswer)
	}
	if q.Intent&query.WantsNumber != 0 && t.traits&text.HasNumber != 0 {
		times(PartNumberAnswer, w.NumberAnswer)
	}
	if q.Intent&query.WantsName != 0 && t.traits&text.HasName != 0 {
		times(PartNameAnswer, w.NameAnswer)
	}
	if len(q.Dates) > 0 {
		near := 0.0
		for _, d := range q.Dates {
			near = max(near, nearness(d, t.time))
		}
		times(PartDate, 1+w.Date*near)
	}
	return product
}

// personFactor returns the factor of turns in the first person.
func (q *resolvedQuery) personFactor(w *Weights) float64 {
	if q.Intent&query.FirstPerson != 0 {
		return w.FirstPersonBoth
	}
	return w.FirstPerson
}

// maxFactor returns an upper bound of factors for any turn.
func (q *resolvedQuery) maxFactor(w *Weights) float64 {
	bound := max(1, w.FirstPerson, w.FirstPersonBoth) * max(1, w.Opening)
	if q.speaker != 0 {
		bound *= max(1, w.Speaker)
	}
	if q.Intent&query.WantsAdvice != 0 {
		bound *= max(1, w.Wish)
	}
	if q.project != 0 {
		bound *= max(1, w.Project)
	}
	if q.Intent&query.WantsTime != 0 {
		bound *= max(1, w.TimeAnswer)
	}
	if q.Intent&query.WantsNumber != 0 {
		bound *= max(1, w.NumberAnswer)
	}
	if q.Intent&query.WantsName != 0 {
		bound *= max(1, w.NameAnswer)
	}
	if len(q.Dates) > 0 {
		bound *= 1 + w.Date
	}
	return bound
}

const dayMillis = 24 * 60 * 60 * 1000

// nearness returns how well a memory's time fits days: 1 inside, less for the
// week after, because people mention things some days later, and a little for
// the days before, because they announce them.
func nearness(d text.Days, t storage.Time) float64 {
	day := int64(t) / dayMillis
	switch {
	case day >= d.From && day < d.To:
		return 1
	case day >= d.To && day < d.To+7:
		return 1 - float64(day-d.To+1)/10
	case day < d.From && day >= d.From-3:
		return 0.3
	}
	return 0
}
