package recall

import (
	"math"
	"slices"
)

// hit is a ranked turn.
type hit struct {
	turn    int32
	phrased bool // phrases were looked for
	score   float64
}

// scratch is what one query needs; it is pooled. All arrays are zero between queries.
type scratch struct {
	score   []float32 // by turn
	x       []float32 // by turn, of the concept at hand
	session []float32 // by conversation, of the concept at hand
	scored  []int32   // turns with a score
	touched []int32   // turns with an x
	talked  []int32   // conversations with a session
	order   []int
	costs   []int
	heap    []hit
	top     []float32
	norms   [256]float32 // of the user's text by its length, for the query at hand
}

func (s *scratch) grow(ix *index) {
	if n := len(ix.turns); len(s.score) < n {
		s.score = make([]float32, n+n/4)
		s.x = make([]float32, n+n/4)
	}
	if n := len(ix.convs); len(s.session) < n {
		s.session = make([]float32, n+n/4)
	}
	s.scored = s.scored[:0]
}

// idf is ln(1 + (n - df + 0.5) / (df + 0.5)).
func idf(n, df float64) float64 { return math.Log(1 + (n-df+0.5)/(df+0.5)) }

// lend is what a turn's user text is worth to another turn.
type lend struct{ tell, ask float32 }

func (l lend) of(tell, ask float32) float32 { return l.tell*tell + l.ask*ask }

// fieldWeights are the weights of the fields, for one query over one index.
type fieldWeights struct {
	k1                                     float32
	user, userAsk, assistant, session      float32
	userFlat, assistantFlat, sessionFlat   float32 // 1 - b
	userSlope, assistantSlope, sessSlope   float32 // b / mean length
	before1, before2, after1, after2, away lend
	norms                                  *[256]float32
}

// fieldWeights fills norms, which must live as long as what is returned.
func (ix *index) fieldWeights(q *query, w *Weights, norms *[256]float32) fieldWeights {
	f := fieldWeights{
		k1: float32(w.K1), user: float32(w.User), userAsk: float32(w.User * w.UserAsk), assistant: float32(w.Assistant),
		session: float32(w.Session), userFlat: float32(1 - w.UserB), assistantFlat: float32(1 - w.AssistantB), sessionFlat: float32(1 - w.SessionB),
		userSlope: slope(w.UserB, ix.userLen, ix.userTurns), assistantSlope: slope(w.AssistantB, ix.asstLen, ix.asstTurns),
		sessSlope: slope(w.SessionB, ix.userLen+ix.asstLen, int64(len(ix.convs))),
		before1:   lend{float32(w.Before1), float32(w.Before1Ask)}, before2: lend{float32(w.Before2), float32(w.Before2Ask)},
		after1: lend{float32(w.After1), float32(w.After1Ask)}, after2: lend{float32(w.After2), float32(w.After2Ask)},
		away: lend{float32(w.Away3), float32(w.Away3Ask)},
	}
	if q.intent&wantsAssistant != 0 {
		f.assistant *= float32(w.AssistantAsked)
	}
	if ix.live > len(norms) { // else it costs more than it saves
		for i := range norms {
			norms[i] = f.userNorm(uint16(i))
		}
		f.norms = norms
	}
	return f
}

// slope is b over the mean length.
func slope(b float64, sum, n int64) float32 {
	if sum <= 0 {
		return 0
	}
	return float32(b * float64(n) / float64(sum))
}

// userNorm is what the length of a user's text divides its frequencies by, as a factor.
func (f *fieldWeights) userNorm(length uint16) float32 {
	return 1 / (f.userFlat + f.userSlope*float32(length))
}

// own returns the length-normalised frequencies of a term in a turn's own fields, before their weights.
func (f *fieldWeights) own(t *turn, tf frequency) (tell, ask, assistant float32) {
	if tf >= assistantOnce {
		assistant = tf.assistant() / (f.assistantFlat + f.assistantSlope*float32(t.asstLen))
		if tf&userFrequency == 0 {
			return 0, 0, assistant
		}
	}
	var norm float32
	if f.norms != nil && t.userLen < 256 {
		norm = f.norms[t.userLen]
	} else {
		norm = f.userNorm(t.userLen)
	}
	return tf.tell() * norm, tf.ask() * norm, assistant
}

func (f *fieldWeights) sessionNorm(c *conv) float32 {
	return f.session / (f.sessionFlat + f.sessSlope*float32(c.len))
}

// mostSaturation bounds x / (K1 + x): every field at its most frequent, shortest and best.
func (f *fieldWeights) mostSaturation() float32 {
	const most = 2 // times that a term stands in a field, beyond which a turn is rare enough to be missed
	lent := float32(0)
	for _, l := range [...]lend{f.before1, f.before2, f.after1, f.after2, f.away, f.away} {
		lent += max(l.tell, l.ask)
	}
	x := most * (max(f.user, f.userAsk) + f.assistant + f.session + lent) / f.userFlat
	return x / (f.k1 + x)
}

// kthScore is the k-th best of the scores so far.
func (s *scratch) kthScore(k int) float64 {
	top := s.top[:0]
	for _, n := range s.scored {
		v := s.score[n]
		if len(top) == k && v <= top[0] {
			continue
		}
		if len(top) < k {
			top = append(top, v)
			for i := len(top) - 1; i > 0 && top[i] < top[(i-1)/2]; i = (i - 1) / 2 {
				top[i], top[(i-1)/2] = top[(i-1)/2], top[i]
			}
			continue
		}
		top[0] = v
		for i := 0; ; {
			c := 2*i + 1
			if c >= k {
				break
			}
			if c+1 < k && top[c+1] < top[c] {
				c++
			}
			if top[c] >= top[i] {
				break
			}
			top[c], top[i] = top[i], top[c]
			i = c
		}
	}
	s.top = top
	return float64(top[0])
}

// maxCandidates: once so many turns have a score, the remaining terms, which are the commonest, only add to those. (The
// "continue" strategy of Moffat and Zobel, Self-indexing inverted files, 1996.) Smaller scopes are ranked exactly.
const maxCandidates = 1000

// cheapestFirst orders the terms by how many postings they cost, which puts the rarest first.
func (ix *index) cheapestFirst(q *query, s *scratch) []int {
	s.order = s.order[:0]
	s.costs = s.costs[:0]
	for i, t := range q.terms {
		cost := 0
		for _, w := range t.words {
			cost += len(ix.posts[w.id].buf)
		}
		s.order = append(s.order, i)
		s.costs = append(s.costs, cost)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return s.costs[a] - s.costs[b] })
	return s.order
}

// aloneNorm is sessionNorm for a turn that is the whole conversation.
func (f *fieldWeights) aloneNorm(t *turn) float32 {
	return f.session / (f.sessionFlat + f.sessSlope*float32(int(t.userLen)+int(t.asstLen)))
}

// rank scores the turns that the query touches, directly or through a neighbour: they are in s.scored, their scores
// before the factors in s.score, which best clears.
func (ix *index) rank(q *query, w *Weights, s *scratch, k int) {
	s.grow(ix)
	f := ix.fieldWeights(q, w, &s.norms)
	order := ix.cheapestFirst(q, s)
	rest := 0.0 // what the terms still to come can add to a turn, at most
	for _, i := range order {
		rest += q.terms[i].idf * q.terms[i].weight
	}
	rest *= float64(f.mostSaturation()) * q.maxFactor(w)
	for _, i := range order {
		qt := &q.terms[i]
		s.touched, s.talked = s.touched[:0], s.talked[:0]
		qt.narrow = len(s.scored) > maxCandidates || len(s.scored) >= k && rest < s.kthScore(k)
		for _, word := range qt.words {
			if qt.narrow {
				ix.gatherNarrow(word, &f, s)
			} else {
				ix.gather(word, &f, s)
			}
		}
		rest -= qt.idf * qt.weight * float64(f.mostSaturation()) * q.maxFactor(w)
		weight := float32(qt.idf * qt.weight)
		for _, n := range s.touched {
			x := s.x[n]
			s.x[n] = 0
			if t := &ix.turns[n]; !t.alone() && s.session[t.conv] > 0 {
				x += s.session[t.conv] * f.sessionNorm(&ix.convs[t.conv])
			}
			if s.score[n] == 0 {
				s.scored = append(s.scored, n)
			}
			s.score[n] += weight * x / (f.k1 + x)
		}
		for _, c := range s.talked {
			s.session[c] = 0
		}
	}
}

// gather adds one word's evidence to s.x, and to s.session.
func (ix *index) gather(word queryWord, f *fieldWeights, s *scratch) {
	var now uint32
	var tf frequency
	for buf := ix.posts[word.id].buf; len(buf) > 0; {
		buf, now, tf = next(buf, now)
		n := int32(now - 1)
		t := &ix.turns[n]
		if t.flags&turnDead != 0 {
			continue
		}
		tell, ask, assistant := f.own(t, tf)
		tell *= word.share
		ask *= word.share
		own := f.user*tell + f.userAsk*ask + f.assistant*word.share*assistant
		if t.alone() { // its text is all of its conversation's
			if t.conv >= 0 {
				own += word.share * tf.all() * f.aloneNorm(t)
			}
			s.add(n, own)
			continue
		}
		s.add(n, own)
		if f.session > 0 {
			if s.session[t.conv] == 0 {
				s.talked = append(s.talked, t.conv)
			}
			s.session[t.conv] += word.share * tf.all()
		}
		if tell+ask == 0 {
			continue
		}
		if m := t.next; m >= 0 { // to the turn after, this one is the one before
			s.add(m, f.before1.of(tell, ask))
			if m = ix.turns[m].next; m >= 0 {
				s.add(m, f.before2.of(tell, ask))
				if m = ix.turns[m].next; m >= 0 {
					s.add(m, f.away.of(tell, ask))
				}
			}
		}
		if m := t.prev; m >= 0 {
			s.add(m, f.after1.of(tell, ask))
			if m = ix.turns[m].prev; m >= 0 {
				s.add(m, f.after2.of(tell, ask))
				if m = ix.turns[m].prev; m >= 0 {
					s.add(m, f.away.of(tell, ask))
				}
			}
		}
	}
}

// gatherNarrow is gather for turns that have a score already, without the conversation's text.
func (ix *index) gatherNarrow(word queryWord, f *fieldWeights, s *scratch) {
	score := s.score
	var now uint32
	var tf frequency
	for buf := ix.posts[word.id].buf; len(buf) > 0; {
		buf, now, tf = next(buf, now)
		n := int32(now - 1)
		// Neighbours mostly have the numbers around; a block without a candidate is passed over without a look at the turn.
		if n >= 3 && int(n)+4 <= len(score) {
			if b := score[n-3 : n+4 : n+4]; b[0]+b[1]+b[2]+b[3]+b[4]+b[5]+b[6] == 0 {
				continue
			}
		}
		t := &ix.turns[n]
		if t.flags&turnDead != 0 {
			continue
		}
		tell, ask, assistant := f.own(t, tf)
		tell *= word.share
		ask *= word.share
		if score[n] != 0 {
			own := f.user*tell + f.userAsk*ask + f.assistant*word.share*assistant
			if t.alone() && t.conv >= 0 {
				own += word.share * tf.all() * f.aloneNorm(t)
			}
			s.add(n, own)
		}
		if tell+ask == 0 || t.alone() {
			continue
		}
		if m := t.next; m >= 0 {
			if score[m] != 0 {
				s.add(m, f.before1.of(tell, ask))
			}
			if m = ix.turns[m].next; m >= 0 {
				if score[m] != 0 {
					s.add(m, f.before2.of(tell, ask))
				}
				if m = ix.turns[m].next; m >= 0 && score[m] != 0 {
					s.add(m, f.away.of(tell, ask))
				}
			}
		}
		if m := t.prev; m >= 0 {
			if score[m] != 0 {
				s.add(m, f.after1.of(tell, ask))
			}
			if m = ix.turns[m].prev; m >= 0 {
				if score[m] != 0 {
					s.add(m, f.after2.of(tell, ask))
				}
				if m = ix.turns[m].prev; m >= 0 && score[m] != 0 {
					s.add(m, f.away.of(tell, ask))
				}
			}
		}
	}
}

func (s *scratch) add(n int32, v float32) {
	if s.x[n] == 0 {
		if v == 0 {
			return
		}
		s.touched = append(s.touched, n)
	}
	s.x[n] += v
}

// factors multiplies what does not depend on a term. With parts, it notes each factor that is not 1.
func (ix *index) factors(t *turn, q *query, w *Weights, parts *[]Part) float64 {
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
	if t.traits&firstPerson != 0 {
		if q.intent&fromSpeaker != 0 {
			times(PartFirstPerson, w.FirstPersonBoth)
		} else {
			times(PartFirstPerson, w.FirstPerson)
		}
	}
	if t.prev < 0 && t.flags&turnFact == 0 {
		times(PartOpening, w.Opening)
	}
	if q.intent&wantsTime != 0 && t.traits&hasTime != 0 {
		times(PartTimeAnswer, w.TimeAnswer)
	}
	if q.intent&wantsNumber != 0 && t.traits&hasNumber != 0 {
		times(PartNumberAnswer, w.NumberAnswer)
	}
	if q.intent&wantsName != 0 && t.traits&hasName != 0 {
		times(PartNameAnswer, w.NameAnswer)
	}
	if len(q.dates) > 0 {
		near := 0.0
		for _, d := range q.dates {
			near = max(near, d.near(t.time))
		}
		times(PartDate, 1+w.Date*near)
	}
	return product
}

// maxFactor bounds factors from above for any turn.
func (q *query) maxFactor(w *Weights) float64 {
	bound := max(1, w.FirstPerson, w.FirstPersonBoth) * max(1, w.Opening)
	if q.speaker != 0 {
		bound *= max(1, w.Speaker)
	}
	if q.intent&wantsTime != 0 {
		bound *= max(1, w.TimeAnswer)
	}
	if q.intent&wantsNumber != 0 {
		bound *= max(1, w.NumberAnswer)
	}
	if q.intent&wantsName != 0 {
		bound *= max(1, w.NameAnswer)
	}
	if len(q.dates) > 0 {
		bound *= 1 + w.Date
	}
	return bound
}
