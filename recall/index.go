package recall

import (
	"cmp"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// index holds the memories of one scope. The unit of ranking is the turn: the
// passages of one exchange, or a single fact, resource or entry. What is
// returned is the best passage of a turn.
//
// Postings exist for a turn's own text only. The evidence of its neighbours,
// its conversation and its date is added when a query runs, so adding a turn
// changes only its own terms and the links of its conversation.
//
// The owner guards it: any number of readers or one writer.
type index struct {
	hasher
	records
	terms    names        // the marks come first
	posts    []postings   // by term
	turns    []turn       // deleted turns stay as tombstones until a rebuild
	headers  []turnHeader // of turns
	convs    conversations
	speakers map[string]uint16 // by name in lower case, numbered from 1
	names    map[string]uint16 // the same by the stems of the words in their names
	words    *text.Analyzer    // reads texts
	work     *workspace
	plain    int64 // bytes of text before the coder learns
	building bool  // from records: the coder learns at the end, and postings go to the log
	log      postingLog
	later    bool // built from records: loader.codeTexts codes its texts afterwards

	byTurn table    // by turn.key
	byID   table    // by the hash of a memory's id
	ids    []uint64 // these hashes, while the index is built

	live, liveMems     int
	private            bool  // a turn had turnPrivate since the index was made
	quoted             bool  // the same of turnQuoted
	unwanted           bool  // the same of turnUnwanted
	liveFacts          int   // among the live turns
	userLen, userTurns int64 // sums over live turns, for mean lengths
	asstLen, asstTurns int64
	postBytes          int64
	dead               int
	spoken             [text.NumLanguages]int // passages of the user by language
	omitted            int64                  // memories left out because the scope exceeds its limit
}

// turn is the unit of ranking.
type turn struct {
	time       storage.Time
	key        uint64 // hash of the key under which it is replaced
	chain      uint32 // hash of the provenance chain, 0 if none
	conv       int32
	prev, next int32 // neighbours in the conversation, -1 at its ends
	mem        int32 // first passage
	count      uint16
	userLen    uint16
	asstLen    uint16
	speaker    uint16
	lives      uint16 // day until which none of its memories expires: see lastDay
	flags      flags
	traits     text.Traits // of the user's text
}

// usualLanguage returns the language that the user mostly writes.
func (ix *index) usualLanguage() text.Language {
	best := text.English
	for l := text.German; l < text.NumLanguages; l++ {
		if ix.spoken[l] > ix.spoken[best] {
			best = l
		}
	}
	return best
}

// opens reports whether the turn is the first of its conversation.
func (t *turn) opens() bool { return t.prev < 0 && t.flags&turnFact == 0 }

// fact returns 1 if the turn is a fact, otherwise 0.
func (t *turn) fact() uint32 { return uint32(t.flags & turnFact / turnFact) }

// alone reports whether the turn has no neighbours.
func (t *turn) alone() bool { return t.prev < 0 && t.next < 0 }

type flags uint8

const (
	turnDead     flags = 1 << iota
	turnFact           // a fact: no neighbours
	turnResource       // a passage of a document
	turnExpires        // at least one of its memories expires
	turnSpoken         // a passage of the user's, followed by at most one of the assistant's
	turnPrivate        // at least one of its memories has storage.PrivateTag
	turnUnwanted       // at least one of its memories has a tag that begins with storage.UnwantedTag
	turnQuoted         // at least one of its memories has storage.QuotedTag or storage.RolePlayTag
)

// lastDay returns the last whole day before a time, in days since the epoch.
func lastDay(at storage.Time) uint16 { return uint16(min(max(at/dayMillis, 0), 1<<16-1)) }

// mem is one passage.
type mem struct {
	rec  place
	turn int32
}

type conv struct {
	last  int32 // newest turn, -1 if none
	count int32
	len   int64 // terms of all live turns
	// project is the hash of the project of the newest turn that names one, or
	// 0.
	project uint32
}

// conversations numbers the conversations of an index.
type conversations struct {
	names names // packed
	list  []conv
}

func newIndex(seed uint64, words *text.Analyzer) *index {
	ix := &index{hasher: hasher{seed}, words: words, speakers: map[string]uint16{}, names: map[string]uint16{}}
	ix.shapeOf = map[shape]uint32{}
	ix.terms.seed, ix.convs.names.seed = seed, seed
	ix.term(text.EndOfStatement)
	ix.term(text.EndOfQuestion)
	return ix
}

// workspace holds buffers of put for the next call.
type workspace struct {
	counts termCounts
	pack   packer
	coded  []byte
	hashes termHashes
	// conversation is that of the last turn, and usually that of the next.
	conversation struct {
		id     string
		number int32
	}
}

// small reports whether the workspace is worth keeping. One that a very long
// turn or a large scope has grown is not.
func (w *workspace) small() bool {
	terms, bytes := max(cap(w.counts.list), cap(w.counts.slots)/2), max(cap(w.pack.b), cap(w.coded))
	return terms <= maxWorkTerms && bytes <= maxWorkBytes
}

const (
	maxWorkTerms = 4096
	maxWorkBytes = 64 << 10
)

func (ix *index) space() *workspace {
	if ix.work == nil {
		ix.work = &workspace{}
	}
	return ix.work
}

// passage is a memory ready to be indexed.
type passage struct {
	memory   *storage.Memory
	terms    []string
	numbers  []uint32 // term numbers instead of terms, while the index is built
	traits   text.Traits
	language text.Language
	print    uint64 // fingerprint, if snapshots are kept
}

// recallable reports whether a memory may ever be returned. Files that an agent
// curates and keyed values are read by their names alone.
func recallable(m *storage.Memory) bool {
	return m.DeletedAt == 0 && m.ValidTo == 0 && m.SupersededBy == "" && m.Trust > 0 && m.Text != "" &&
		m.Kind != storage.KindCurated && m.Kind != storage.KindEntry
}

// turnKey returns the name of the turn that a memory belongs to. The passages
// of one exchange share it.
func turnKey(m *storage.Memory) turnName {
	if m.Kind == storage.KindEpisode && m.Provenance.Turn != "" {
		return turnName{id: m.Provenance.Turn}
	}
	return turnName{id: m.ID, sole: true}
}

type turnName struct {
	id   string
	sole bool // a memory that is a turn of its own
}

// put replaces the turn of ps, which share a turn key, by ps.
func (ix *index) put(ps []passage) {
	first := ps[0].memory
	key := ix.turnHash(first)
	if old, ok := ix.turnByKey(key); ok {
		ix.remove(old)
	}
	for i := range ps { // a memory may move between turns
		if m, ok := ix.memoryOf(ps[i].memory.ID); ok {
			ix.removeMemory(m)
		}
	}
	slices.SortStableFunc(ps, func(a, b passage) int {
		return cmp.Compare(a.memory.Provenance.Seq, b.memory.Provenance.Seq)
	})
	first = ps[0].memory
	n := int32(len(ix.turns))
	t := turn{
		time: first.EventTime, key: key, mem: int32(len(ix.mems)), count: uint16(min(len(ps), 1<<16-1)),
		conv: ix.conversation(first.Conversation), prev: -1, next: -1, chain: ix.chainHash(first.Provenance.Chain),
	}
	if p := projectOf(first.Tags); p != 0 && t.conv >= 0 {
		ix.convs.list[t.conv].project = p
	}
	switch first.Kind {
	case storage.KindEpisode:
	case storage.KindResource:
		t.flags |= turnResource
	default:
		t.flags |= turnFact
	}
	counts, pack := &ix.space().counts, &ix.work.pack
	terms := 0
	for i := range ps {
		terms += len(ps[i].terms) + len(ps[i].numbers)
	}
	counts.reset(terms)
	var userLen, asstLen int
	spoken := t.count <= 2
	for i := range ps[:t.count] {
		p := &ps[i]
		pack.b = pack.b[:0]
		asst := p.memory.Provenance.Role == storage.RoleAssistant
		spoken = spoken && asst == (i > 0)
		ids := p.numbers
		var sig signature
		if ids != nil {
			sig = ix.work.hashes.sign(ix, ids)
		} else {
			ids, sig = counts.number(ix, p.terms), sign(p.terms)
		}
		length := counts.passage(ids, asst)
		if asst {
			ids = counts.once
			asstLen += length
		} else {
			userLen += length
			t.traits |= p.traits
			ix.spoken[p.language]++
			if t.speaker == 0 {
				t.speaker = ix.speaker(p.memory.Provenance.Speaker)
			}
		}
		if slices.Contains(p.memory.Tags, storage.PrivateTag) {
			t.flags |= turnPrivate
			ix.private = true
		}
		if slices.ContainsFunc(p.memory.Tags, storage.SpeaksOfOthers) {
			t.flags |= turnQuoted
			ix.quoted = true
		}
		if hasUnwantedTag(p.memory) {
			t.flags |= turnUnwanted
			ix.unwanted = true
		}
		if p.memory.ExpiresAt != 0 {
			if day := lastDay(p.memory.ExpiresAt); t.flags&turnExpires == 0 || day < t.lives {
				t.lives = day
			}
			t.flags |= turnExpires
		}
		ix.packPassage(pack, &t, first, p.memory, ids, asst, sig)
		ix.mems = append(ix.mems, mem{rec: ix.arena.add(pack.b), turn: n})
		ix.liveMems++
		if ix.coder == nil {
			ix.plain += int64(len(p.memory.Text))
		}
	}
	if spoken {
		t.flags |= turnSpoken
	}
	t.userLen, t.asstLen = uint16(min(userLen, 1<<16-1)), uint16(min(asstLen, 1<<16-1))
	if ix.building {
		ix.log.add(uint32(n), t.fact() > 0, counts.list)
	} else {
		ix.post(uint32(n), t.fact(), counts.list)
	}
	ix.turns = append(ix.turns, t)
	ix.headers = append(ix.headers, t.turnHeader())
	ix.byTurn.add(key, uint32(n), ix.keyOf)
	for i := range ps[:t.count] {
		id := ix.hash(ps[i].memory.ID)
		if ix.building {
			ix.ids = append(ix.ids, id)
		}
		ix.byID.add(id, uint32(t.mem)+uint32(i), ix.idHash)
	}
	ix.live++
	ix.liveFacts += int(t.fact())
	ix.count(&t, +1)
	if t.conv >= 0 && t.flags&turnFact == 0 {
		ix.link(n)
	}
	if ix.plain >= ix.learnsAt() {
		ix.learnOfEnough()
	}
	if ix.building && ix.log.used == logChunks {
		(listBuilder{ix}).spreadLog()
	}
}

// post adds a turn to the postings of its terms.
func (ix *index) post(turn, fact uint32, list []termCount) {
	for _, c := range list {
		p := &ix.posts[c.term]
		before := cap(p.buf)
		p.add(turn, newFrequency(int(c.tell), int(c.ask), int(c.asst)))
		p.facts += fact
		ix.postBytes += int64(cap(p.buf) - before)
	}
}

func (ix *hasher) chainHash(chain string) uint32 {
	if chain == "" {
		return 0
	}
	return chainHash(ix.hash(chain))
}

func chainHash(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// count adds a turn to the sums for mean lengths, or removes it.
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
		ix.convs.list[t.conv].len += sign * (int64(t.userLen) + int64(t.asstLen))
	}
}

// link inserts turn n into its conversation, after all turns that are not
// newer. Turns arrive nearly in order, so the walk from the end is short.
func (ix *index) link(n int32) {
	t := &ix.turns[n]
	c := &ix.convs.list[t.conv]
	after := c.last
	next := int32(-1)
	for after >= 0 && ix.turns[after].time > t.time {
		next, after = after, ix.turns[after].prev
	}
	t.prev, t.next = after, next
	ix.headers[n] = t.turnHeader()
	if after >= 0 {
		ix.turns[after].next = n
		ix.headers[after] = ix.turns[after].turnHeader()
	}
	if next >= 0 {
		ix.turns[next].prev = n
		ix.headers[next] = ix.turns[next].turnHeader()
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
	c := &ix.convs.list[t.conv]
	if t.prev >= 0 {
		ix.turns[t.prev].next = t.next
		ix.headers[t.prev] = ix.turns[t.prev].turnHeader()
	}
	if t.next >= 0 {
		ix.turns[t.next].prev = t.prev
		ix.headers[t.next] = ix.turns[t.next].turnHeader()
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
	ix.headers[n] = t.turnHeader()
	ix.byTurn.remove(t.key, uint32(n))
	counts := &ix.space().counts // which put does not use yet
	counts.reset(0)
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		ix.liveMems--
		h := ix.head(i)
		for at := 0; at < len(h.packed); {
			var id uint32
			if id, at = nextTerm(h.packed, at); !text.IsMark(id) {
				counts.of(id)
			}
		}
		ix.byID.remove(ix.idHash(uint32(i)), uint32(i))
	}
	for _, c := range counts.list {
		if ix.building {
			ix.log.gone = append(ix.log.gone, goneTerm{c.term, t.fact()})
			continue
		}
		ix.posts[c.term].df--
		ix.posts[c.term].facts -= t.fact()
	}
	ix.live--
	ix.liveFacts -= int(t.fact())
	ix.dead++
}

// removeMemory removes one passage from its turn. The remaining passages become
// a new turn in the same position.
func (ix *index) removeMemory(i int32) {
	n := ix.mems[i].turn
	t := ix.turns[n]
	var rest []passage
	for j := t.mem; j < t.mem+int32(t.count); j++ {
		if j != i {
			rest = append(rest, ix.passage(j, t.traits))
		}
	}
	ix.remove(n)
	if len(rest) > 0 {
		ix.put(rest)
	}
}

// passage returns what put was given, except the traits, which are the turn's.
func (ix *index) passage(i int32, of text.Traits) passage {
	h, m := ix.head(i), ix.memory(i, storage.Scope{})
	p := passage{memory: &m, traits: of}
	if h.assistant {
		var a text.Analysis
		ix.words.Analyze(m.Text, text.English, &a)
		p.terms = a.Terms
		return p
	}
	p.terms = make([]string, 0, h.terms)
	for at := 0; at < len(h.packed); {
		var id uint32
		id, at = nextTerm(h.packed, at)
		p.terms = append(p.terms, ix.spelled(id))
	}
	return p
}

func (ix *index) spelled(id uint32) string { return string(ix.terms.raw(id)) }

func (ix *index) term(s string) uint32 {
	id, fresh := ix.terms.number(s)
	if fresh {
		ix.posts = append(ix.posts, postings{})
	}
	return id
}

// speaker returns the number of a name. It records the name's words, so that a
// query with one of them names the speaker.
func (ix *index) speaker(name string) uint16 {
	name = strings.ToLower(name)
	if name == "" || len(name) > text.MaxWord || name == string(storage.RoleUser) || name == string(storage.RoleAssistant) {
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
		if w = text.Stem(text.English, w); ix.names[w] == 0 && !text.IsStop(text.English, w) {
			ix.names[strings.Clone(w)] = n
		}
	}
	return n
}
