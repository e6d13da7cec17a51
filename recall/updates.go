package recall

import (
	"cmp"
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
	// rarest; maxUpdateTurns how many turns a term may have, and
	// maxUpdatePostings the postings that are read for one request. Beyond
	// them, older statements stay unmarked.
	maxUpdateTerms    = 4
	maxUpdateTurns    = 512
	maxUpdatePostings = 4096
	// maxUpdates limits the statements that are read for one passage,
	// maxUpdateReads those for one request, and maxNewer those among which they
	// are chosen, the newest.
	maxUpdates     = 4
	maxUpdateReads = 32
	maxNewer       = 64
	// maxClassTurns is how many of the newest turns are looked at for a
	// statement of the same class, and maxClassTerms the maximum length of such
	// statements.
	maxClassTurns = 1024
	maxClassTerms = 24
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
	for i := 0; i < len(s.taken); i++ {
		if u.isStatement(&s.taken[i]) {
			i = u.update(i)
		}
	}
}

// isStatement reports whether a passage is what a person said.
func (u *updater) isStatement(t *taken) bool {
	n := &u.ix.turns[u.ix.mems[t.mem].turn]
	return !t.assistant && n.flags&turnResource == 0 && !n.shortQuestion()
}

// update takes what changes the statement at i, and returns where that
// statement is then.
func (u *updater) update(i int) int {
	o := u.taken[i].mem
	var space [maxNewer]newer
	found := u.sharing(o, space[:0])
	var old *updates.Statement
	if t := &u.ix.turns[u.ix.mems[o].turn]; t.userLen <= maxClassTerms {
		if old = u.read(o); old != nil && old.Class() != 0 {
			found = u.ofClass(t, found)
		}
	}
	if len(found) == 0 {
		return i
	}
	if old == nil {
		if old = u.read(o); old == nil {
			return i
		}
	}
	best := int32(-1)
	for _, f := range found {
		if p := u.said(f.turn); p >= 0 && (best < 0 || u.ix.turns[f.turn].time > u.ix.turns[u.ix.mems[best].turn].time) {
			if n := u.read(p); n != nil && n.Updates(old, u.weigh) {
				best = p
			}
		}
	}
	if best < 0 {
		return i
	}
	i = u.takeBefore(best, i)
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

// sharing appends the newer turns that say that something has changed and share
// rare terms with passage o, those with most first.
func (u *updater) sharing(o int32, found []newer) []newer {
	at := u.ix.turns[u.ix.mems[o].turn].time
	var terms [maxUpdateTerms]uint32
	n := 0
	packed := u.ix.head(o).packed
	for at := 0; at < len(packed); {
		var id uint32
		if id, at = nextTerm(packed, at); text.IsMark(id) || slices.Contains(terms[:n], id) {
			continue
		}
		df := u.ix.posts[id].df
		if df < 2 || df > maxUpdateTurns || query.IsDigit(u.ix.terms.raw(id)[0]) {
			continue
		}
		k := n
		for k > 0 && u.ix.posts[terms[k-1]].df > df {
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
			if tf.tell() == 0 || t.time <= at || t.traits&text.StatesChange == 0 || t.flags&(turnDead|turnResource) != 0 {
				continue
			}
			if k := slices.IndexFunc(found, func(f newer) bool { return f.turn == turn }); k >= 0 {
				found[k].weight += weight
			} else {
				if len(found) == maxNewer { // the first is the oldest
					found = found[:copy(found, found[1:])]
				}
				found = append(found, newer{turn, weight})
			}
		}
	}
	slices.SortFunc(found, func(a, b newer) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.turn, a.turn))
	})
	return found[:min(len(found), maxUpdates)]
}

// ofClass appends the newest turns after t that say in a few words that
// something has changed.
func (u *updater) ofClass(t *turn, found []newer) []newer {
	n := int32(len(u.ix.turns)) - 1
	for limit := n - maxClassTurns; n >= 0 && n > limit && len(found) < maxUpdateReads; n-- {
		of := &u.ix.turns[n]
		if of.time > t.time && of.traits&text.StatesChange != 0 && of.flags&(turnDead|turnResource) == 0 && of.userLen <= maxClassTerms &&
			!slices.ContainsFunc(found, func(f newer) bool { return f.turn == n }) {
			found = append(found, newer{turn: n})
		}
	}
	return found
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
// returns where the latter is then. If there is no room p replaces the last
// memory, or the one at i.
func (u *updater) takeBefore(p int32, i int) int {
	j := u.takenAt(p)
	if j >= 0 && j < i {
		return i
	}
	if j < 0 {
		h := hit{turn: u.ix.mems[p].turn, score: u.hits[i].score}
		why := u.take(h, p, maxAnswer)
		if last := len(u.taken) - 1; (why == CutTopK || why == CutBudget) && last > i {
			u.untake()
			why = u.take(h, p, maxAnswer)
		}
		if why != "" {
			return i
		}
		j = len(u.taken) - 1
		u.taken[j].updates = true
	} else if j+1 < len(u.taken) && u.taken[j+1].answers {
		return i
	}
	rotate(u.taken[i : j+1])
	rotate(u.hits[i : j+1])
	rotate(u.res.Memories[i : j+1])
	return i + 1
}

// rotate moves the last element to the front.
func rotate[T any](list []T) {
	last := list[len(list)-1]
	copy(list[1:], list)
	list[0] = last
}

// untake takes the last memory back.
func (s *selection) untake() {
	last := len(s.taken) - 1
	m := &s.res.Memories[last]
	s.room += overhead(&m.Memory) + min(s.taken[last].own.text.length(), minExcerpt)
	s.cut(s.taken[last].mem, s.hits[last], CutTopK)
	s.taken[last] = taken{}
	s.taken, s.hits, s.res.Memories = s.taken[:last], s.hits[:last], s.res.Memories[:last]
}
