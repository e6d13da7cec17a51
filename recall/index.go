package recall

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// index holds one scope's memories. What is ranked is the turn: the passages of one exchange together, or a single fact,
// resource or entry. What is returned is the best passage of a turn.
//
// Postings exist for a turn's own text only. What its neighbours, its conversation and its date add is found when a query
// runs, so adding a turn touches nothing but its own terms and the links of its conversation.
//
// The owner guards it: any number of readers or one writer.
type index struct {
	seed     maphash.Seed
	terms    map[string]uint32
	spelled  []string   // by term
	posts    []postings // by term
	turns    []turn     // removed ones stay as tombstones until a rebuild
	mems     []mem
	convs    []conv
	speakers map[string]uint16 // by name in lower case, numbered from 1
	names    map[string]uint16 // the stems of their names' words
	arena    arena
	shared   sharedStrings

	convOf map[string]int32
	byTurn map[uint64]int32 // hash of the turn's key
	byID   map[uint64]int32 // hash of the memory's id -> mems

	live, liveMems     int
	userLen, userTurns int64 // sums over live turns for the mean lengths
	asstLen, asstTurns int64
	termBytes          int64
	dead               int
	spoken             [languages]int // passages of the user by language
	omitted            int64          // memories left out because the scope is larger than its bound
}

// turn is the unit of ranking.
type turn struct {
	time       storage.Time
	key        uint64 // hash of the key under which it is replaced
	chain      uint64 // hash of the provenance chain, 0 if none
	conv       int32
	prev, next int32 // neighbours in the conversation, -1 at its ends
	mem        int32 // first passage
	count      uint16
	userLen    uint16
	asstLen    uint16
	speaker    uint16
	flags      flags
	traits     traits // of the user's text
}

// usualLanguage is what the user mostly writes.
func (ix *index) usualLanguage() language {
	best := langEnglish
	for l := langGerman; l < languages; l++ {
		if ix.spoken[l] > ix.spoken[best] {
			best = l
		}
	}
	return best
}

// alone reports whether the turn has no neighbours.
func (t *turn) alone() bool { return t.prev < 0 && t.next < 0 }

type flags uint8

const (
	turnDead     flags = 1 << iota
	turnFact           // a fact, curated or entry: no neighbours
	turnResource       // a passage of a document
	turnExpires        // at least one of its memories has an expiry
)

// mem is one passage.
type mem struct {
	rec       place
	turn      int32
	signature signature
	dead      bool
}

type conv struct {
	last  int32 // newest turn, -1 if none
	count int32
	len   int64 // terms of all live turns
}

func newIndex(seed maphash.Seed) *index {
	ix := &index{
		seed: seed, terms: map[string]uint32{}, speakers: map[string]uint16{}, names: map[string]uint16{}, convOf: map[string]int32{},
		byTurn: map[uint64]int32{}, byID: map[uint64]int32{},
	}
	ix.term(endOfStatement)
	ix.term(endOfQuestion)
	return ix
}

func (ix *index) hash(s string) uint64 {
	h := maphash.String(ix.seed, s)
	if h == 0 {
		return 1
	}
	return h
}

// passage is a memory ready to be indexed.
type passage struct {
	memory   *storage.Memory
	terms    []string
	traits   traits
	language language
}

// recallable reports whether a memory may ever be returned.
func recallable(m *storage.Memory) bool {
	return m.DeletedAt == 0 && m.ValidTo == 0 && m.SupersededBy == "" && m.Trust > 0 && m.Text != ""
}

// turnKey names the turn that a memory belongs to: passages of one exchange share it.
func turnKey(m *storage.Memory) string {
	if m.Kind == storage.KindEpisode && m.Provenance.Turn != "" {
		return "t" + m.Provenance.Turn
	}
	return "m" + m.ID
}

// put makes ps, which share a turn key, the whole truth about their turn.
func (ix *index) put(ps []passage) {
	key := ix.hash(turnKey(ps[0].memory))
	if old, ok := ix.byTurn[key]; ok {
		ix.remove(old)
	}
	for i := range ps { // a memory may move between turns
		if m, ok := ix.byID[ix.hash(ps[i].memory.ID)]; ok {
			ix.removeMemory(m)
		}
	}
	slices.SortStableFunc(ps, func(a, b passage) int {
		return cmp.Compare(a.memory.Provenance.Seq, b.memory.Provenance.Seq)
	})
	n := int32(len(ix.turns))
	first := ps[0].memory
	t := turn{
		time: first.EventTime, key: key, mem: int32(len(ix.mems)), count: uint16(min(len(ps), 1<<16-1)),
		conv: -1, prev: -1, next: -1,
	}
	if c := first.Provenance.Chain; c != "" {
		t.chain = ix.hash(c)
	}
	switch first.Kind {
	case storage.KindEpisode:
		t.conv = ix.conversation(first.Conversation)
	case storage.KindResource:
		t.flags |= turnResource
		t.conv = ix.conversation(first.Conversation)
	default:
		t.flags |= turnFact
		t.conv = ix.conversation(first.Conversation)
	}
	var counts termCounts
	var pack packer
	var userLen, asstLen int
	for i := range ps[:t.count] {
		p := &ps[i]
		pack.b = pack.b[:0]
		asst := p.memory.Provenance.Role == storage.RoleAssistant
		head := uint64(len(p.terms)) << 1
		if asst {
			head |= 1
		}
		pack.uint(head)
		n := counts.passage(ix, p.terms, asst, &pack)
		if asst {
			asstLen += n
		} else {
			userLen += n
			t.traits |= p.traits
			ix.spoken[p.language]++
			if t.speaker == 0 {
				t.speaker = ix.speaker(p.memory.Provenance.Speaker)
			}
		}
		if p.memory.ExpiresAt != 0 {
			t.flags |= turnExpires
		}
		ix.packMemory(&pack, p.memory)
		ix.byID[ix.hash(p.memory.ID)] = int32(len(ix.mems))
		ix.mems = append(ix.mems, mem{rec: ix.arena.add(pack.b), turn: int32(len(ix.turns)), signature: sign(p.terms)})
		ix.liveMems++
	}
	t.userLen, t.asstLen = uint16(min(userLen, 1<<16-1)), uint16(min(asstLen, 1<<16-1))
	for _, c := range counts.list {
		p := &ix.posts[c.term]
		before := cap(p.buf)
		p.add(uint32(n), newFrequency(int(c.tell), int(c.ask), int(c.asst)))
		ix.termBytes += int64(cap(p.buf) - before)
	}
	ix.turns = append(ix.turns, t)
	ix.byTurn[key] = n
	ix.live++
	ix.count(&t, +1)
	if t.conv >= 0 && t.flags&turnFact == 0 {
		ix.link(n)
	}
}

// count adds a turn to the sums behind the mean lengths, or takes it out.
func (ix *index) count(t *turn, sign int64) {
	if t.userLen > 0 {
		ix.userLen += sign * int64(t.userLen)
		ix.userTurns += sign
	}
	if t.asstLen > 0 {
		ix.asstLen += sign * int64(t.asstLen)
		ix.asstTurns += sign
	}
	if t.conv >= 0 && t.flags&turnFact == 0 {
		ix.convs[t.conv].len += sign * (int64(t.userLen) + int64(t.asstLen))
	}
}

// link puts turn n in its place in the conversation: after all that are not newer. Turns come nearly in order, so the
// walk from the end is short.
func (ix *index) link(n int32) {
	t := &ix.turns[n]
	c := &ix.convs[t.conv]
	after := c.last
	next := int32(-1)
	for after >= 0 && ix.turns[after].time > t.time {
		next, after = after, ix.turns[after].prev
	}
	t.prev, t.next = after, next
	if after >= 0 {
		ix.turns[after].next = n
	}
	if next >= 0 {
		ix.turns[next].prev = n
	} else {
		c.last = n
	}
	c.count++
}

func (ix *index) unlink(n int32) {
	t := &ix.turns[n]
	if t.conv < 0 || t.flags&turnFact != 0 {
		return
	}
	c := &ix.convs[t.conv]
	if t.prev >= 0 {
		ix.turns[t.prev].next = t.next
	}
	if t.next >= 0 {
		ix.turns[t.next].prev = t.prev
	} else {
		c.last = t.prev
	}
	t.prev, t.next = -1, -1
	c.count--
}

// remove makes a turn a tombstone.
func (ix *index) remove(n int32) {
	t := &ix.turns[n]
	if t.flags&turnDead != 0 {
		return
	}
	ix.unlink(n)
	ix.count(t, -1)
	t.flags |= turnDead
	delete(ix.byTurn, t.key)
	var counts termCounts
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		m := &ix.mems[i]
		if m.dead {
			continue
		}
		m.dead = true
		ix.liveMems--
		u := unpacker{ix.arena.from(m.rec)}
		ix.readTerms(&u, func(id uint32) {
			if !isMark(id) {
				counts.of(id)
			}
		})
		id, _, _ := unpackID(&u)
		delete(ix.byID, ix.hash(id))
	}
	for _, c := range counts.list {
		ix.posts[c.term].df--
	}
	ix.live--
	ix.dead++
}

// removeMemory takes one passage out of its turn. The passages that remain become a new turn in the same place.
func (ix *index) removeMemory(i int32) {
	n := ix.mems[i].turn
	t := ix.turns[n]
	var rest []passage
	for j := t.mem; j < t.mem+int32(t.count); j++ {
		if j != i && !ix.mems[j].dead {
			rest = append(rest, ix.passage(j, t.traits))
		}
	}
	ix.remove(n)
	if len(rest) > 0 {
		ix.put(rest)
	}
}

// passage reads back what put was given, but for the traits, which are the turn's.
func (ix *index) passage(i int32, of traits) passage {
	u := unpacker{ix.arena.from(ix.mems[i].rec)}
	var p passage
	ix.readTerms(&u, func(id uint32) { p.terms = append(p.terms, ix.spelled[id]) })
	m := ix.unpackMemory(&u, storage.Scope{})
	p.memory = &m
	p.traits = of
	return p
}

// readTerms reads the terms at the head of a record; what follows is the memory.
func (ix *index) readTerms(u *unpacker, f func(id uint32)) (assistant bool) {
	n, assistant := u.head()
	for range n {
		f(u.term())
	}
	return assistant
}

// expires is when a passage expires, 0 for never.
func (ix *index) expires(i int32) storage.Time {
	u := unpacker{ix.arena.from(ix.mems[i].rec)}
	u.skipTerms()
	unpackID(&u)
	_, at := unpackTimes(&u)
	return at
}

func (ix *index) memory(i int32, scope storage.Scope) storage.Memory {
	u := unpacker{ix.arena.from(ix.mems[i].rec)}
	u.skipTerms()
	return ix.unpackMemory(&u, scope)
}

func (ix *index) term(s string) uint32 {
	if id, ok := ix.terms[s]; ok {
		return id
	}
	id := uint32(len(ix.posts))
	s = strings.Clone(s)
	ix.terms[s] = id
	ix.spelled = append(ix.spelled, s)
	ix.posts = append(ix.posts, postings{})
	ix.termBytes += int64(len(s)) + termOverhead
	return id
}

func (ix *index) conversation(id string) int32 {
	if id == "" {
		return -1
	}
	if c, ok := ix.convOf[id]; ok {
		return c
	}
	c := int32(len(ix.convs))
	ix.convOf[strings.Clone(id)] = c
	ix.convs = append(ix.convs, conv{last: -1})
	return c
}

// speaker numbers a name, and notes its words so that a query which uses one names the speaker.
func (ix *index) speaker(name string) uint16 {
	name = strings.ToLower(name)
	if name == "" || len(name) > maxWord || name == string(storage.RoleUser) || name == string(storage.RoleAssistant) {
		return 0
	}
	if n, ok := ix.speakers[name]; ok {
		return n
	}
	if len(ix.speakers) >= 1<<16-1 {
		return 0
	}
	n := uint16(len(ix.speakers) + 1)
	ix.speakers[strings.Clone(name)] = n
	for _, w := range strings.Fields(name) {
		if w = stem(w); ix.names[w] == 0 && !stopWords[w] {
			ix.names[strings.Clone(w)] = n
		}
	}
	return n
}
