package recall

import (
	"cmp"
	"slices"
	"time"

	"github.com/remora-proxy/remora/text"
)

// "What did we do yesterday?" and "where were we?" ask for what was said then, whatever it was about. No word of theirs is looked for:
// "last week" stands in what was said at any time.

const (
	// maxLately bounds what the user said that is shown of such a time, unless the request asks for fewer.
	maxLately = 6
	// leastTold is the fewest terms of what tells something.
	leastTold = 4
)

// whenStems are stems of questions about a time, beside those of the words that say when.
var whenStems = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range [...]string{"day", "past", "may", "other", "st", "nd", "rd", "th", "decide", "agree", "chat"} {
		m[text.Stem(text.English, w)] = true
	}
	return m
}()

// lookingBack are words of questions about what was. "What should I do this week?" and "what do I have on Friday?" hold none.
var lookingBack = text.WordSet("did was were had happened")

// looksBack reports whether a question in lower case is about what was.
func looksBack(lower []byte) bool {
	var before []byte
	for rest := lower; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		if lookingBack[string(w)] || string(before) == "have" && (string(w) == "we" || string(w) == "i" || string(w) == "you") {
			return true
		}
		before = w
	}
	return false
}

// onlyWhen reports whether a question names days of the past, and nothing else that could be looked for.
func (q *query) onlyWhen(now time.Time) bool {
	if !q.asks || len(q.dates) == 0 || q.speaker != 0 {
		return false
	}
	if q.language != text.English {
		if only, telling := text.NamesOnlyTime(string(q.lower), q.language); only {
			today := text.DayOf(now.UTC())
			if telling || !slices.ContainsFunc(q.dates, func(d text.Days) bool { return d.To > today }) {
				return true
			}
		}
	}
	if !looksBack(q.lower) {
		return false
	}
	own := 0
	for _, t := range q.terms {
		if t.lent {
			continue
		}
		if own++; own > 6 || !text.IsTimeStem(t.stem) && !whenStems[t.stem] && t.standing&(isLight|ofRequest) == 0 && !isDigit(t.stem[0]) {
			return false
		}
	}
	return true
}

// during ranks what users said on the days that the query names, what tells most first.
func (ix *index) during(q *query, f *filter, s *scratch, most int) []hit {
	return ix.lately(f, s, most, func(t *turn) float64 {
		day := int64(t.time) / dayMillis
		if !slices.ContainsFunc(q.dates, func(d text.Days) bool { return day >= d.From && day < d.To }) {
			return 0
		}
		score := float64(min(t.userLen, 40))
		if t.opens() {
			score += 10
		}
		return score
	})
}

// latest ranks what was said last, in the newest conversation in which something was told, but the request's own.
func (ix *index) latest(f *filter, s *scratch, conv int32, most int) []hit {
	newest := int32(-1)
	for n := range ix.turns {
		if t := &ix.turns[n]; t.tells() && t.conv >= 0 && t.conv != conv && (newest < 0 || t.time >= ix.turns[newest].time) && f.pass(int32(n)) {
			newest = int32(n)
		}
	}
	if newest < 0 {
		return s.picked[:0]
	}
	in := ix.turns[newest].conv
	return ix.lately(f, s, most, func(t *turn) float64 {
		if t.conv != in {
			return 0
		}
		return max(float64(t.time), 1)
	})
}

// tells reports whether the user tells something in a turn that is alive.
func (t *turn) tells() bool {
	return t.flags&(turnDead|turnFact|turnResource) == 0 && t.userLen >= leastTold
}

// lately are the most turns that tell something and have the best marks, in the order in which they were said; a mark of 0 is none. Any
// number may have one ("what did we do this year?"), so no more than these are kept.
func (ix *index) lately(f *filter, s *scratch, most int, mark func(t *turn) float64) []hit {
	hits := s.picked[:0]
	for n := range ix.turns {
		t := &ix.turns[n]
		if !t.tells() {
			continue
		}
		score := mark(t)
		if score <= 0 || len(hits) == most && score <= hits[most-1].score || !f.pass(int32(n)) {
			continue
		}
		if len(hits) == most {
			hits = hits[:most-1]
		}
		at := len(hits)
		for at > 0 && hits[at-1].score < score {
			at--
		}
		hits = slices.Insert(hits, at, hit{turn: int32(n), score: score})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(ix.turns[a.turn].time, ix.turns[b.turn].time) })
	s.picked = hits
	return hits
}

// answers ranks what answers a question that no word does; not ok where the words are to be searched for.
func (ix *index) answers(q *query, f *filter, s *scratch, req *Request, topK int) (hits []hit, ok bool) {
	conv, known := ix.conversationOf(req.Conversation)
	if !known || req.Conversation == "" {
		conv = -2
	}
	switch {
	case q.self == selfNothing:
		return nil, true
	case q.self == selfLast:
		if conv >= 0 { // it is about what stands in the request
			return nil, false
		}
		return ix.latest(f, s, conv, min(topK, maxLately)), true
	case q.self != 0:
		hits = ix.profile(q, f, s)
		return hits, len(hits) > 0
	case !req.NoGate && q.onlyWhen(req.Now):
		return ix.during(q, f, s, min(topK, maxLately)), true
	}
	return nil, false
}
