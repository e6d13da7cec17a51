package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
	"github.com/remora-proxy/remora/text/updates"
)

// A statement is outdated once the user has said something that changes it:
// "the deadline moved to Friday". People rarely repeat the words of the first
// statement, so the second one may not be among the results at all. After the
// selection each statement of the user is compared with newer ones that share
// its rarest words; the newest that changes it goes before it, and the older is
// tagged.

const (
	// maxUpdateTerms limits the terms of a passage whose postings are read, its
	// rarest, and maxUpdatePostings the postings that are read for one request.
	// Beyond them, older statements stay unmarked.
	maxUpdateTerms    = 4
	maxUpdatePostings = 4096
	// maxUpdates limits the statements that are read for one passage,
	// maxUpdateReads those for one request, and maxNewer those among which they
	// are chosen, the newest.
	maxUpdates     = 3
	maxUpdateReads = 24
	maxNewer       = 64
	// maxSoleTerms is the maximum length of a statement that shares one term.
	maxSoleTerms = 16
	// minOverlap is the share of the shorter statement's terms that both must
	// have. It is half of what decides, as a passage may have other sentences.
	minOverlap = 0.15
	// maxClassTurns is how many of the newest turns are looked at for a
	// statement of the same class, and maxClassTerms the maximum length of such
	// statements.
	maxClassTurns = 1024
	maxClassTerms = 24
	// maxStandingTerms is the maximum length of a statement of no class that
	// may be one: "I'm at Meta now".
	maxStandingTerms = 3
	// rareTerm is the share of the idf of an unknown term that a term must have
	// for its postings to be read.
	rareTerm = 0.55
)

// updater finds what changes the statements that were taken.
type updater struct {
	*selection
	usual    text.Language
	postings int // that may still be read
}

// newer is a turn that may change a statement.
type newer struct {
	turn   int32
	shared int // terms that it shares
	weight float64
}

// readStatement is a passage that was read for updates.
type readStatement struct {
	mem int32
	updates.Statement
}

// update takes what changes the statements that were taken, and tags these.
func (s *selection) update() {
	if len(s.taken) == 0 || s.ix.live < 2 {
		return
	}
	u := updater{selection: s, usual: s.ix.usualLanguage(), postings: maxUpdatePostings}
	defer func() { // the space is kept for the next request
		for i := range s.scratch.read {
			s.scratch.read[i].Forget()
		}
	}()
	for i := 0; i < len(s.taken); i++ {
		if u.isStatement(&s.taken[i]) {
			i = u.update(i, u.sharing(s.taken[i].mem))
		}
	}
	for i := 0; i < len(s.taken); i++ { // afterwards, since it may read many
		if u.isStatement(&s.taken[i]) {
			i = u.update(i, u.ofClass(s.taken[i].mem))
		}
	}
}

// isStatement reports whether a passage is what a person said.
func (u *updater) isStatement(t *taken) bool {
	n := &u.ix.turns[u.ix.mems[t.mem].turn]
	return !t.assistant && n.flags&turnResource == 0 && !n.shortQuestion()
}

// update takes the newest of the turns found that changes the statement at i,
// and returns where that statement is then.
func (u *updater) update(i int, found []newer) int {
	if len(found) == 0 {
		return i
	}
	var old *updates.Statement
	best := int32(-1)
	for _, f := range found {
		if p := u.said(f.turn); p >= 0 && (f.shared == 0 || u.overlap(u.taken[i].mem, p)) && (best < 0 || u.ix.turns[f.turn].time > u.ix.turns[u.ix.mems[best].turn].time) {
			if old == nil {
				old = u.read(u.taken[i].mem)
			}
			if n := u.read(p); n != nil && old != nil && n.Updates(old, u.weigh) && !u.isOthersPassage(p) {
				best = p
			}
		}
	}
	if best < 0 {
		return i
	}
	i, both := u.takeBefore(best, i)
	if !both {
		return i
	}
	m := &u.res.Memories[i].Memory
	switch {
	case slices.Contains(m.Tags, storage.OutdatedTag):
	case !u.lines:
		m.Tags = append(slices.Clone(m.Tags), storage.OutdatedTag)
	case len(m.Tags) == 0:
		m.Tags = lineTags[1]
	default:
		m.Tags = lineTags[3]
	}
	return i
}

// sharing returns the newer turns that say that something has changed and share
// rare terms with passage o, those with most first. They are valid until the
// next search.
func (u *updater) sharing(o int32) []newer {
	found := u.scratch.newer[:0]
	of := &u.ix.turns[u.ix.mems[o].turn]
	at := of.time
	var terms [maxUpdateTerms]uint32
	n, rare := 0, u.rare()
	packed := u.ix.head(o).packed
	for at := 0; at < len(packed); {
		var id uint32
		if id, at = nextTerm(packed, at); text.IsMark(id) || slices.Contains(terms[:n], id) {
			continue
		}
		df := u.ix.posts[id].documents() // a fact repeats what its turn says
		if df < 2 || df > rare || query.IsDigit(u.ix.terms.raw(id)[0]) {
			continue
		}
		k := n
		for k > 0 && u.ix.posts[terms[k-1]].documents() > df {
			k--
		}
		if k < maxUpdateTerms {
			n = min(n+1, maxUpdateTerms)
			copy(terms[k+1:n], terms[k:n-1])
			terms[k] = id
		}
	}
	for _, id := range terms[:n] {
		post := &u.ix.posts[id]
		if u.postings -= len(post.buf) / 2; u.postings < 0 {
			break
		}
		weight := idf(float64(u.ix.live), post.documents())
		for buf, now := post.buf, uint32(0); len(buf) > 0; {
			var tf frequency
			buf, now, tf = next(buf, now)
			turn := int32(now - 1)
			t := &u.ix.turns[turn]
			if tf.tell() == 0 || t.time <= at || t.traits&text.StatesChange == 0 || !t.mayChange(of) {
				continue
			}
			if k := slices.IndexFunc(found, func(f newer) bool { return f.turn == turn }); k >= 0 {
				found[k].weight += weight
				found[k].shared++
			} else {
				if len(found) == maxNewer { // the first is the oldest
					found = found[:copy(found, found[1:])]
				}
				found = append(found, newer{turn, 1, weight})
			}
		}
	}
	found = slices.DeleteFunc(found, func(f newer) bool { return f.shared < 2 && u.ix.turns[f.turn].userLen > maxSoleTerms })
	slices.SortFunc(found, func(a, b newer) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.turn, a.turn))
	})
	u.scratch.newer = found
	return found[:min(len(found), maxUpdates)]
}

// rare returns how many turns a rare term may have at most.
func (u *updater) rare() float64 {
	all := float64(u.ix.live) + unseen
	return all / math.Pow(all/1.5, rareTerm)
}

// ofClass returns the newest turns that say in a few words that something has
// changed, if passage o is of a class of which later statements change earlier
// ones without a word in common. They are valid until the next search.
func (u *updater) ofClass(o int32) []newer {
	t := &u.ix.turns[u.ix.mems[o].turn]
	if t.userLen > maxClassTerms || t.traits&text.StatesClass == 0 {
		return nil
	}
	if old := u.read(o); old == nil || old.Class() == 0 {
		return nil
	}
	found := u.scratch.newer[:0]
	n := int32(len(u.ix.turns)) - 1
	for limit := n - maxClassTurns; n >= 0 && n > limit && len(found) < maxUpdateReads; n-- {
		of := &u.ix.turns[n]
		if of.time > t.time && of.traits&text.StatesChange != 0 && (of.traits&text.StatesClass != 0 || of.userLen <= maxStandingTerms) && of.userLen <= maxClassTerms && of.mayChange(t) {
			found = append(found, newer{turn: n})
		}
	}
	u.scratch.newer = found
	return found
}

// mayChange reports whether what a turn says may change what another one says.
// What is quoted or part of a role play changes only such.
func (t *turn) mayChange(o *turn) bool {
	return t.flags&(turnDead|turnResource) == 0 && t.speaker == o.speaker && t.flags&^o.flags&turnQuoted == 0
}

// isOthersPassage reports whether a passage is fiction or another's, whether or
// not the query asks about the user.
func (u *updater) isOthersPassage(mem int32) bool {
	if u.ix.turns[u.ix.mems[mem].turn].flags&turnFact != 0 {
		return false
	}
	from := len(u.scratch.text)
	b := u.ix.appendText(u.scratch.text, mem)
	u.scratch.text = b[:from]
	return u.isOthers(b[from:])
}

// said returns the first passage of the user's in a turn that may be shown or
// was taken, or -1.
func (u *updater) said(n int32) int32 {
	t := &u.ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if !u.ix.head(i).assistant {
			if u.takenAt(i) >= 0 || u.filter.pass(n) && u.filter.shows(u.ix.index, t, i) {
				return i
			}
			return -1
		}
	}
	return -1
}

// overlap reports whether two passages have enough terms in common to be read.
func (u *updater) overlap(o, n int32) bool {
	both, a, b := &u.scratch.alike, u.ix.head(o).packed, u.ix.head(n).packed
	both.clear(len(a) + len(b)) // a term takes at least one byte
	ofA, _ := both.add(a, 1)
	ofB, same := both.add(b, 2)
	return float64(same) >= minOverlap*float64(min(ofA, ofB))
}

func (u *updater) takenAt(mem int32) int {
	return slices.IndexFunc(u.taken, func(t taken) bool { return t.mem == mem })
}

// read reads a passage once, nil if enough were read for this request.
func (u *updater) read(mem int32) *updates.Statement {
	all := u.scratch.read
	for i := range all {
		if all[i].mem == mem {
			return &all[i].Statement
		}
	}
	n := len(all)
	if n == maxUpdateReads {
		return nil
	}
	if cap(all) == 0 {
		all = make([]readStatement, 0, maxUpdateReads) // in place: pointers to them are kept
	}
	all = all[:n+1]
	u.scratch.read = all
	from := len(u.scratch.text)
	b := u.ix.appendText(u.scratch.text, mem)
	all[n].mem = mem
	all[n].Read(u.words, string(b[from:]), u.usual)
	u.scratch.text = b[:from]
	return &all[n].Statement
}

// weigh returns the idf of a term, as the gate has it: in a small index what
// two statements have in common is not frequent.
func (u *updater) weigh(term string) float64 {
	df := 1.0
	if id, ok := u.ix.terms.find(term); ok {
		df = u.ix.posts[id].documents()
	}
	return idf(float64(u.ix.live)+unseen, df)
}

// takeBefore takes passage p before the one at i, or moves it there, and
// returns where the latter is then, and whether both are in the result. If
// there is no room p replaces the last memory, or else the one at i.
func (u *updater) takeBefore(p int32, i int) (int, bool) {
	j := u.takenAt(p)
	if j >= 0 && j < i {
		return i, true
	}
	if j < 0 {
		h := hit{turn: u.ix.mems[p].turn, score: u.hits[i].score}
		why := u.take(h, p, maxAnswer)
		if last := len(u.taken) - 1; last > i && noRoom(why) {
			why = u.replace(last, h, p)
		}
		both := why == ""
		if noRoom(why) && (i+1 == len(u.taken) || !u.taken[i+1].answers) {
			why = u.replace(i, h, p)
		}
		if why != "" { // unless the result has it in other words
			return i, why == CutDuplicate && slices.ContainsFunc(u.taken, func(t taken) bool {
				return u.ix.mems[t.mem].turn == h.turn || u.ix.turns[u.ix.mems[t.mem].turn].time == u.ix.turns[h.turn].time
			})
		}
		j = len(u.taken) - 1
		u.taken[j].updates = true
		if !both {
			u.moveTo(i, j)
			return i, false
		}
	} else if j+1 < len(u.taken) && u.taken[j+1].answers {
		return i, true
	}
	u.moveTo(i, j)
	return i + 1, true
}

func noRoom(why Reason) bool { return why == CutTopK || why == CutBudget }

// moveTo moves memory j to i, which is not behind it.
func (s *selection) moveTo(i, j int) {
	rotate(s.taken[i : j+1])
	rotate(s.hits[i : j+1])
	rotate(s.res.Memories[i : j+1])
}

// rotate moves the last element to the front.
func rotate[T any](list []T) {
	last := list[len(list)-1]
	copy(list[1:], list)
	list[0] = last
}

// replace takes passage p in the place of memory i, or returns why not. A
// constraint stays.
func (s *selection) replace(i int, h hit, p int32) Reason {
	if s.taken[i].constraint {
		return CutTopK
	}
	for range len(s.taken) - 1 - i { // to the end
		s.moveTo(i, len(s.taken)-1)
	}
	last := len(s.taken) - 1
	old, oldHit, m, cuts := s.taken[last], s.hits[last], s.res.Memories[last], len(s.res.Cut)
	least := overhead(&m.Memory) + min(old.own.text.length(), minExcerpt)
	s.room += least
	s.cut(old.mem, oldHit, CutTopK)
	s.taken[last] = taken{}
	s.taken, s.hits, s.res.Memories = s.taken[:last], s.hits[:last], s.res.Memories[:last]
	why := s.take(h, p, maxAnswer)
	if why != "" {
		s.room -= least
		s.res.Cut = s.res.Cut[:cuts]
		s.taken, s.hits, s.res.Memories = append(s.taken, old), append(s.hits, oldHit), append(s.res.Memories, m)
		s.moveTo(i, last)
	}
	return why
}
