package recall

import (
	"context"

	"github.com/remora-proxy/remora/recall/query"
)

// Names of the parts of a score. Those with a term and PartVector are addends,
// the others are factors, except for those that are the only part.
const (
	PartUser         = "user"
	PartAssistant    = "assistant"
	PartBefore1      = "before1"
	PartBefore2      = "before2"
	PartAfter1       = "after1"
	PartAfter2       = "after2"
	PartAway3        = "away3"
	PartSession      = "session"
	PartPhrase       = "phrase"
	PartVector       = "vector"
	PartDate         = "date"
	PartSpeaker      = "speaker"
	PartProject      = "project"
	PartFirstPerson  = "firstPerson"
	PartOpening      = "opening"
	PartWish         = "wish"
	PartTimeAnswer   = "timeAnswer"
	PartNumberAnswer = "numberAnswer"
	PartNameAnswer   = "nameAnswer"
	PartUpdate       = "update"     // it changes what the next memory says: the only part
	PartConstraint   = "constraint" // it is a constraint, shown whatever its words: the only part
)

// explainLeftOut adds to an explained result what would have been in it but for
// Request.NoPrivate, Request.Allow and what is unwanted. It costs a second
// search, and adds nothing if the time does not suffice for it.
func (e *searcher) explainLeftOut(ctx context.Context, ix *index, req *Request, like *likeness, res *Result) {
	open := *req
	open.NoPrivate, open.Allow, open.Explain, open.Cuts, open.Lines, open.Into = false, nil, false, false, false, nil
	open.Unwanted = true
	all, err := e.search(ctx, ix, &open, like)
	if err != nil {
		return
	}
	f := filter{ix: ix, noPrivate: req.NoPrivate, allow: req.Allow}
	if ix.unwanted && !req.Unwanted {
		f.asked = query.AskedWords(e.analyzer, req.words())
	}
	for i := range all.Memories {
		m := &all.Memories[i]
		n, ok := ix.memoryOf(m.Memory.ID)
		if !ok || len(res.Cut) >= MaxTopK {
			continue
		}
		switch t := &ix.turns[ix.mems[n].turn]; {
		case f.forbids(t):
			res.Cut = append(res.Cut, Cut{ID: m.Memory.ID, Score: m.Score, Reason: CutPolicy})
		case f.isUnwanted(t):
			res.Cut = append(res.Cut, Cut{ID: m.Memory.ID, Score: m.Score, Reason: CutUnwanted})
		}
	}
}

// explain takes the score of one turn apart. A concept's addend is divided
// among its fields in proportion to what each adds to x, so that all addends
// sum to the score before the factors. It costs a walk over the postings per
// field.
func (ix ranker) explain(h hit, q *resolvedQuery, w *Weights) []Part {
	n := h.turn
	f := ix.fieldWeights(q, w)
	var parts []Part
	t := &ix.turns[n]
	for k := range q.terms {
		qt := &q.terms[k]
		type field struct {
			name, term string
			x          float32
		}
		var fields []field
		var x, session float32
		for _, word := range qt.words {
			term := qt.Stem
			if word.how != "" {
				term += " (" + word.how + ": " + ix.spelled(word.id) + ")"
			}
			add := func(name string, v float32) {
				if v > 0 {
					fields = append(fields, field{name, term, v * word.share})
					x += v * word.share
				}
			}
			lent := func(name string, from int32, l lend) {
				if from >= 0 {
					tell, ask, _ := f.own(&ix.turns[from], ix.frequency(from, word.id))
					add(name, l.of(tell, ask))
				}
			}
			tell, ask, assistant := f.own(t, ix.frequency(n, word.id))
			add(PartUser, f.user*tell+f.userAsk*ask)
			add(PartAssistant, f.assistant*assistant)
			if !t.alone() {
				b1, b2, b3 := ix.neighbours(n, func(t *turn) int32 { return t.prev })
				if b1 >= 0 {
					lent(PartBefore1, b1, f.toNext(&ix.turns[b1]))
				}
				lent(PartBefore2, b2, f.before2)
				lent(PartAway3, b3, f.away)
				a1, a2, a3 := ix.neighbours(n, func(t *turn) int32 { return t.next })
				lent(PartAfter1, a1, f.after1)
				lent(PartAfter2, a2, f.after2)
				lent(PartAway3, a3, f.away)
			}
			if t.conv >= 0 && f.session > 0 {
				switch {
				case t.alone():
					session += word.share * ix.frequency(n, word.id).all() * f.aloneNorm(int(t.userLen)+int(t.asstLen))
				case !ix.isGroup(t.conv):
				default:
					session += word.share * ix.sessionFrequency(t.conv, word.id) * f.sessionNorm(&ix.convs.list[t.conv])
				}
			}
		}
		if x > 0 && session > 0 {
			fields = append(fields, field{PartSession, qt.Stem, session})
			x += session
		}
		for _, p := range fields {
			parts = append(parts, Part{Name: p.name, Term: p.term, Value: qt.idf * qt.Weight * float64(p.x/(f.k1+x))})
		}
	}
	if h.phrased {
		ix.phrase(n, q, w, &parts)
	}
	if v := q.vector.addend(n, q); v > 0 {
		parts = append(parts, Part{Name: PartVector, Value: v})
	}
	ix.factors(t, q, w, &parts)
	return parts
}

// neighbours are the turns at a distance of one, two and three, -1 where there
// is none.
func (ix ranker) neighbours(n int32, step func(*turn) int32) (one, two, three int32) {
	two, three = -1, -1
	if one = step(&ix.turns[n]); one >= 0 {
		if two = step(&ix.turns[one]); two >= 0 {
			three = step(&ix.turns[two])
		}
	}
	return one, two, three
}

// frequency returns how often a term occurs in a turn.
func (ix ranker) frequency(n int32, term uint32) frequency {
	var now uint32
	var tf frequency
	for buf := ix.posts[term].buf; len(buf) > 0; {
		buf, now, tf = next(buf, now)
		if int32(now-1) >= n {
			if int32(now-1) == n {
				return tf
			}
			return 0
		}
	}
	return 0
}

func (ix ranker) sessionFrequency(c int32, term uint32) float32 {
	var sum float32
	var now uint32
	var tf frequency
	for buf := ix.posts[term].buf; len(buf) > 0; {
		buf, now, tf = next(buf, now)
		if t := &ix.turns[now-1]; t.conv == c && t.flags&(turnDead|turnFact) == 0 {
			sum += tf.all()
		}
	}
	return sum
}
