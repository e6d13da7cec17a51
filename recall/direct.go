package recall

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Some questions share no word with what answers them: "what do you know about
// me?", "what did we do yesterday?", "where were we?" They are answered
// directly, by facts or by time.

// finder finds turns that are shown without their words having been ranked. It
// changes nothing in the index.
type finder struct{ *index }

const (
	// maxRecent limits the turns that are shown for a question about a time,
	// unless the request asks for fewer.
	maxRecent = 6
	// minTellingTerms is the minimum number of terms of a turn that says
	// something.
	minTellingTerms = 4
)

// saidOn returns what the user said on the days that the query names, in order.
func (ix finder) saidOn(q *resolvedQuery, f *filter, s *scratch, limit int) []hit {
	return ix.bestInOrder(f, s, limit, func(t *turn) float64 {
		day := int64(t.time) / dayMillis
		if !slices.ContainsFunc(q.Dates, func(d text.Days) bool { return day >= d.From && day < d.To }) {
			return 0
		}
		score := float64(min(t.userLen, 40))
		if t.opens() {
			score += 10
		}
		return score
	})
}

// lastConversation returns what the user said last in the newest conversation
// other than the request's own.
func (ix finder) lastConversation(f *filter, s *scratch, conv int32, limit int) []hit {
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
	return ix.bestInOrder(f, s, limit, func(t *turn) float64 {
		if t.conv != in {
			return 0
		}
		return max(float64(t.time), 1)
	})
}

// tells reports whether a live turn has enough words of the user to say
// something.
func (t *turn) tells() bool {
	return t.flags&(turnDead|turnFact|turnResource) == 0 && t.userLen >= minTellingTerms
}

// bestInOrder returns the limit turns that say something and have the best
// scores above 0, in the order in which they were said. Any number may qualify
// ("what did we do this year?"), so only these are kept.
func (ix finder) bestInOrder(f *filter, s *scratch, limit int, score func(t *turn) float64) []hit {
	hits := s.picked[:0]
	for n := range ix.turns {
		t := &ix.turns[n]
		if !t.tells() {
			continue
		}
		score := score(t)
		if score <= 0 || len(hits) == limit && score <= hits[limit-1].score || !f.pass(int32(n)) {
			continue
		}
		if len(hits) == limit {
			hits = hits[:limit-1]
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

// direct ranks what answers a question without its words being searched for. It
// is not ok if they must be.
func (ix finder) direct(q *resolvedQuery, f *filter, s *scratch, req *Request, topK int) (hits []hit, ok bool) {
	conv, known := ix.convs.find(req.Conversation)
	if !known || req.Conversation == "" {
		conv = -2
	}
	switch {
	case q.Profile == query.ProfileNothing:
		return nil, true
	case q.Profile == query.ProfileLast:
		if conv >= 0 { // the request itself shows it
			return nil, false
		}
		return ix.lastConversation(f, s, conv, min(topK, maxRecent)), true
	case q.Profile != 0:
		hits = ix.profile(q, f, s)
		return hits, len(hits) > 0
	case !req.NoGate && q.speaker == 0 && q.OnlyTime(req.Now):
		return ix.saidOn(q, f, s, min(topK, maxRecent)), true
	}
	return nil, false
}

// maxProfile limits the facts that are examined, and maxSaid the turns if no
// fact answers; both take the newest.
const (
	maxProfile = 1024
	maxSaid    = 256
	// maxAgeRead limits the bytes that the slow expression for ages reads for
	// one request.
	maxAgeRead = 32 << 10
)

// profileAge is the age at which a fact counts half as much as one of today.
const profileAge = 180 * dayMillis

// agedBy returns the weight of something said at a time, where weights halve
// every half.
func agedBy(now, at, half storage.Time) float64 {
	return math.Exp2(-float64(max(now-at, 0)) / float64(half))
}

// profile ranks the facts that answer a profile question, or for a name or an
// age what else the user said. If there are none, the words are searched for.
func (ix finder) profile(q *resolvedQuery, f *filter, s *scratch) []hit {
	s.picked = s.picked[:0]
	if ix.profileOf(turnFact, maxProfile, q, f, s); len(s.picked) == 0 && q.Profile != query.ProfileAll {
		ix.profileOf(0, maxSaid, q, f, s)
	}
	slices.SortStableFunc(s.picked, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return s.picked
}

// profileOf examines the newest limit facts, or with kind 0 the newest turns,
// and appends those that answer to s.picked.
func (ix finder) profileOf(kind flags, limit int, q *resolvedQuery, f *filter, s *scratch) {
	looked, read := 0, 0
	for n := int32(len(ix.turns)) - 1; n >= 0 && looked < limit && read < maxAgeRead; n-- {
		t := &ix.turns[n]
		if t.flags&(turnFact|turnDead|turnResource) != kind || kind == 0 && t.userLen == 0 || !f.pass(n) {
			continue
		}
		looked++
		s.text = ix.appendText(s.text[:0], t.mem)
		score := 0.5
		switch said := string(s.text); {
		case q.Profile == query.ProfileAge:
			score = 0
			if lower := strings.ToLower(query.HeadAndTail(said)); query.MayGiveAge(lower) {
				if read += len(lower); query.GivesAge(lower) {
					score = 1
				}
			}
		case query.GivesName(said):
			score = 4
		case q.Profile == query.ProfileName:
			score = 0
		case t.traits&(text.FirstPerson|text.HasPreference) != 0:
			score = 1
		}
		if score > 0 {
			s.picked = append(s.picked, hit{turn: n, score: score * agedBy(f.now, t.time, profileAge)})
		}
	}
}

// appendText appends the text of passage i.
func (ix *records) appendText(b []byte, i int32) []byte {
	u := ix.head(i).rest
	skipToText(&u)
	return ix.unpackText(&u, b)
}

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
	// unspacedTerms is by how much terms are more in a script without spaces.
	unspacedTerms = 4
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
			first, _ := utf8.DecodeRuneInString(w.Stem)
			found = ix.addConstraints(found, from, constraintSearch{id, w.Kind, area == 0, text.Spaceless(first), w.Whole}, q, f, s)
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
	id       uint32
	kind     query.ConstraintKind
	kin      bool   // for ConstraintShared: words related to the request's count too
	unspaced bool   // it is of a script without spaces
	of       string // the word that the text must have, if id is a part of it
}

// longest returns the maximum number of terms of a text, where limit is that of
// one with spaces.
func (w *constraintSearch) longest(limit uint16) uint16 {
	if w.unspaced {
		return unspacedTerms * limit
	}
	return limit
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
		if w.kind != query.ConstraintTold && w.kind != query.ConstraintStyle && !t.mayHold(w.unspaced) || t.flags&(turnDead|turnResource) != 0 || !f.pass(n) {
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
			if score += 2; t.flags&turnFact == 0 && (t.userLen > w.longest(maxToldTerms) || t.traits&text.FirstPerson == 0 && !query.AboutSpeaker(ix.lowerText(t.mem, s))) {
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
		case query.ConstraintStyle:
			if t.traits&text.HasQuestion != 0 || t.userLen > w.longest(maxToldTerms) || !query.IsStyle(ix.lowerText(t.mem, s)) {
				continue
			}
		case query.ConstraintShared:
			if t.flags&turnFact == 0 && t.traits&text.HasPreference == 0 && !w.unspaced || !ix.sharesWord(n, q, w) {
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
func (t *turn) mayHold(unspaced bool) bool {
	return t.flags&turnFact != 0 || unspaced && t.userLen <= unspacedTerms*maxToldTerms || t.traits&(text.HasPreference|text.FirstPerson) != 0 && t.userLen <= maxToldTerms
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
				if w.id != sought.id && (sought.kin || w.how == "") && hasTerm(packed, w.id) {
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
			if p := s.ix.head(i); !p.assistant && !(t.flags&turnFact == 0 && s.isOthers(s.ix.appendText(nil, i))) && hasTerm(p.packed, h.word) && s.filter.shows(s.ix.index, t, i) {
				if s.take(h.hit, i, 0) == "" {
					s.taken[len(s.taken)-1].constraint = true
				}
				break
			}
		}
	}
}
