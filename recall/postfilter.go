package recall

import (
	"bytes"
	"math/bits"
	"unicode/utf8"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// What passed the gate must still be worth its line, because a model takes
// every line of a block seriously. Request.NoGate switches all of this off.

const (
	// floorShare is the minimum share of the best score that is worth a line.
	// docs/recall-figures.md has the measurements.
	floorShare = 0.25
	// smallFloor is that of a store of a few turns, where every word is rare.
	smallFloor = 0.5
	// newerFloor is that of newer turns than the best with a word of the query.
	newerFloor = 0.35
	// kindFloor is that of turns with a thing of a kind that a personal question
	// asks for: "who is in my family?"
	kindFloor = 0.2
	// neighbourFloor is the factor by which a turn that has its own answer and
	// no word of the query must exceed the floor.
	neighbourFloor = 2.4
	// maxEmpty is the maximum number of terms of a passage that may say
	// nothing, marks included.
	maxEmpty = 4
	// maxQuestion is the maximum number of terms of a question that is shown
	// with its answer. A longer question says enough itself, and showing such
	// answers leaves room for fewer other memories.
	maxQuestion = 16
	// maxAnswer is how much of an answer a line shows after its question, in
	// bytes.
	maxAnswer = 400
	// commandFloor is floorShare for commands.
	commandFloor = 0.5
)

// floors are the scores from which turns are worth a line.
type floors struct {
	usual, kind, newer float64
	least              float64 // of the three
	best               storage.Time
}

// floors returns the floors for a best turn with this score.
func (s *selection) floors(score float64, best int32) floors {
	share := s.ix.floorShare()
	if s.q.Command {
		share = commandFloor
	} else if s.unsure {
		share = max(share, unsureFloor)
	}
	f := floors{usual: share * score, kind: share * score, newer: share * score, best: s.ix.turns[best].time}
	if s.q.Personal == query.PersonalQuestion {
		f.kind = kindFloor * score
	}
	if !s.unsure && !s.q.Command {
		f.newer = newerFloor * score
	}
	f.least = min(f.usual, f.kind, f.newer)
	return f
}

// floor returns that of a turn. A list needs all things of a kind, and what is
// newer than the best may correct it.
func (s *selection) floor(f *floors, n int32) float64 {
	floor := f.usual
	if f.kind < floor && s.holdsKind(n) {
		floor = f.kind
	}
	if f.newer < floor && s.ix.turns[n].time > f.best && s.holdsWord(n) {
		floor = f.newer
	}
	return floor
}

// floorShare returns the minimum share of the best score that is worth a line.
func (ix ranker) floorShare() float64 {
	return smallFloor + (floorShare-smallFloor)*ix.fullness()
}

// onlyNeighbours reports whether nothing but its neighbours supports a turn,
// which says little about one that has its own answer. Vectors may support any
// turn.
func (s *selection) onlyNeighbours(n int32) bool {
	holds, known := s.scratch.holdings(n)
	return known && s.q.vector == nil && holds.user|holds.kin|holds.assistant == 0 && (s.ix.turns[n].asstLen > 0 || s.q.Command)
}

// holdsWord reports whether the user's words in a turn have a content word of
// the query.
func (s *selection) holdsWord(n int32) bool {
	holds, known := s.scratch.holdings(n)
	return known && holds.user&s.q.content != 0
}

// holdsKind reports whether the user's words in a turn have a thing of a kind
// that the query names.
func (s *selection) holdsKind(n int32) bool {
	holds, known := s.scratch.holdings(n)
	return known && holds.kin&s.q.kinds != 0
}

// onlyFigures reports whether the best turns have nothing of the query but
// figures and names of times, while it is about something else: "what is 19 in
// binary?"
func (s *selection) onlyFigures(top []hit) bool {
	if s.first || s.q.figures == 0 || s.q.content == 0 {
		return false
	}
	for _, h := range top[:min(len(top), coverTurns)] {
		holds, known := s.scratch.holdings(h.turn)
		if all := holds.user | holds.kin | holds.assistant; !known || all&^s.q.figures != 0 {
			return false
		}
	}
	return true
}

// shortQuestion reports whether the user asks something in few words, which
// alone tells a reader nothing.
func (t *turn) shortQuestion() bool {
	return t.traits&text.HasQuestion != 0 && t.userLen <= maxQuestion
}

// saysNothing reports whether a passage is only small talk: "yes", "thank you
// so much!".
func (ix ranker) saysNothing(h *head) bool {
	if h.terms > maxEmpty {
		return false
	}
	for at := 0; at < len(h.packed); {
		var id uint32
		if id, at = nextTerm(h.packed, at); id == text.MarkQuestion {
			return false
		} else if !text.IsMark(id) && query.RoleOf(string(ix.terms.raw(id)))&query.IsSocial == 0 {
			return false
		}
	}
	return true
}

// isSmallTalk reports whether a text is small talk in a script without spaces,
// whose terms don't reveal it.
func (s *selection) isSmallTalk(own *ownStrings) bool {
	said := s.scratch.text[own.text.from:own.text.to]
	return len(said) > 0 && said[0] >= utf8.RuneSelf && text.IsSmallTalk(said)
}

// isFiction reports whether a text is fiction or another's, while the query asks
// about the user.
func (s *selection) isFiction(own *ownStrings) bool {
	if !s.q.AboutUser || !s.q.Asks {
		return false
	}
	return s.isOthers(s.scratch.text[own.text.from:own.text.to])
}

// isOthers reports whether what a text says is not the user's own.
func (s *selection) isOthers(said []byte) bool {
	return s.q.IsFiction(said) || s.q.QuotesAnother(said)
}

// maxEchoTerms is the maximum number of terms of a repeated command, marks
// included.
const maxEchoTerms = 5

// echoes reports whether an answered turn of the user's has nothing but words
// of the query: the same was said before.
func (s *selection) echoes(n int32) bool {
	t := &s.ix.turns[n]
	if t.traits&text.HasQuestion != 0 || t.asstLen == 0 {
		return false
	}
	said := false
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		h := s.ix.head(i)
		if h.assistant {
			continue
		}
		if h.terms > maxEchoTerms { // marks included
			return false
		}
		for at := 0; at < len(h.packed); {
			var id uint32
			if id, at = nextTerm(h.packed, at); !text.IsMark(id) && s.q.termOf(id) < 0 {
				return false
			}
		}
		said = true
	}
	return said
}

// telling returns passage p of turn n, or if that says nothing the first one
// that does, or -1.
func (s *selection) telling(n, p int32) int32 {
	h := s.ix.head(p)
	if !s.ix.saysNothing(&h) {
		return p
	}
	t := &s.ix.turns[n]
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if h := s.ix.head(i); !s.ix.saysNothing(&h) && s.filter.shows(s.ix.index, t, i) {
			return i
		}
	}
	return -1
}

// answer adds the assistant's answer to the question that was taken last.
func (s *selection) answer(h hit) {
	t := &s.ix.turns[h.turn]
	last := len(s.res.Memories) - 1
	if t.asstLen == 0 || t.userLen > maxQuestion || len(s.res.Memories) == s.topK || s.res.Memories[last].Memory.Provenance.Role != storage.RoleUser {
		return
	}
	if t.traits&text.HasQuestion == 0 { // "recommend a hotel"
		text := s.taken[last].own.text
		lower := append(s.q.Lower[:0], s.scratch.text[text.from:text.to]...)
		for i, c := range lower {
			if c >= 'A' && c <= 'Z' {
				lower[i] |= 0x20
			}
		}
		if s.q.Lower = lower; query.ReadIntent(lower)&query.WantsAdvice == 0 {
			return
		}
	}
	best, held := int32(-1), -1.0
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if p := s.ix.head(i); p.assistant && !s.ix.saysNothing(&p) {
			if weight := s.q.coverage(p.packed); weight > held && s.filter.shows(s.ix.index, t, i) {
				best, held = i, weight
			}
		}
	}
	if best >= 0 {
		if s.take(h, best, maxAnswer) == "" {
			s.taken[len(s.taken)-1].answers = true
		}
	}
}

// statement adds what the user said in a few words in the turn of an
// assistant's passage p. The assistant spoke about it ("Agreed. Here is the
// code"), and it is what counts.
func (s *selection) statement(h hit, p int32) bool {
	t := &s.ix.turns[h.turn]
	if head := s.ix.head(p); !head.assistant || t.traits&text.HasQuestion != 0 || t.userLen > maxQuestion || len(s.res.Memories)+1 >= s.topK {
		return false
	}
	for i := t.mem; i < p; i++ {
		if u := s.ix.head(i); !u.assistant && u.terms > maxEmpty && s.filter.shows(s.ix.index, t, i) {
			return s.take(h, i, maxAnswer) == ""
		}
	}
	return false
}

// cutAnswer cuts the text of a line at a blank, to at most limit bytes
// including the omission.
func (s *selection) cutAnswer(own *ownStrings, limit int) {
	if own.text.length() <= limit {
		return
	}
	if s.screened(own); own.text.length() <= limit {
		return
	}
	from := int(own.text.from)
	text := s.scratch.text[from : from+limit-len(omission)]
	if blank := bytes.LastIndexAny(text, " \n"); blank > len(text)/2 {
		text = text[:blank]
	}
	for len(text) > 0 && !utf8.RuneStart(s.scratch.text[from+len(text)]) { // not inside a character
		text = text[:len(text)-1]
	}
	s.scratch.text = append(s.scratch.text[:from+len(text)], omission...)
	own.text.to = int32(len(s.scratch.text))
}

// maxWhole is the maximum length of a message that is shown instead of a fact
// made of it, in bytes.
const maxWhole = 300

// whole returns the passage to show for passage p: for a fact that quotes a
// part of a short message, the message, which says what the part is about.
func (s *selection) whole(p int32) int32 {
	if !s.gated || s.ix.turns[s.ix.mems[p].turn].flags&turnFact == 0 {
		return p
	}
	u := s.ix.head(p).rest
	d := s.ix.identity(&u, s.ix.mems[p].turn)
	n, ok := s.ix.turnByKey(hashID(s.ix.seed, appendRaw(nil, d.turn, d.turnHex)))
	if !ok || u.skipDetails(d.mark) != 0 { // outdated or private
		return p
	}
	t := &s.ix.turns[n]
	if t.flags&(turnDead|turnFact|turnResource|turnPrivate|turnUnwanted) != 0 || !s.filter.pass(n) {
		return p
	}
	fact := bytes.Trim(bytes.TrimSpace(s.ix.appendText(nil, p)), `"`)
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		if s.ix.head(i).assistant || !s.filter.shows(s.ix.index, t, i) {
			continue
		}
		if said := s.ix.appendText(nil, i); len(said) <= maxWhole && bytes.Contains(said, fact) && s.ix.tagged(i) == 0 {
			return i
		}
	}
	return p
}

// tagged returns the index in lineTags of the tags of passage i.
func (ix ranker) tagged(i int32) int {
	u := ix.head(i).rest
	d := ix.identity(&u, ix.mems[i].turn)
	return u.skipDetails(d.mark)
}

// signature has four small minhashes of a passage's distinct terms. Of two
// passages that share nine tenths of their terms, at least two agree except in
// 4 of 1,000 cases; of two that share little, hardly ever.
type signature [4]uint8

func sign(terms []string) signature {
	low := noMinhash
	for _, t := range terms {
		low.take(minhashOf(t))
	}
	return low.signature()
}

// minhash has four hashes of a term, or the minima of those of many terms.
type minhash [4]uint32

var noMinhash = minhash{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}

func minhashOf[T string | []byte](term T) (m minhash) {
	h := uint64(14695981039346656037) // FNV-1a
	for i := 0; i < len(term); i++ {
		h = (h ^ uint64(term[i])) * 1099511628211
	}
	for k := range m {
		h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
		m[k] = uint32(h >> 32)
	}
	return m
}

func (m *minhash) take(o minhash) {
	for k := range m {
		m[k] = min(m[k], o[k])
	}
}

func (m *minhash) signature() (s signature) {
	for k, v := range m {
		s[k] = uint8(v ^ v>>8 ^ v>>16 ^ v>>24)
	}
	return s
}

// termHashes caches the hashes of an index's terms, by number, while it is
// built.
type termHashes []minhash

// sign is the function sign for terms by number.
func (t *termHashes) sign(ix *index, ids []uint32) signature {
	for n := len(*t); n < ix.terms.len(); n++ {
		*t = append(*t, minhashOf(ix.terms.raw(uint32(n))))
	}
	low := noMinhash
	for _, id := range ids {
		low.take((*t)[id])
	}
	return low.signature()
}

func (s signature) like(o signature) bool {
	same := 0
	for k := range s {
		if s[k] == o[k] {
			same++
		}
	}
	return same >= 2
}

// taken is a passage in the result.
type taken struct {
	head
	mem   int32
	own   ownStrings
	limit int // of its text, if all together are too long
	// answers means that the previous passage is the question, which was taken
	// for the query.
	answers    bool
	constraint bool // it is a constraint, shown whatever its words
	updates    bool // it changes what the next one says
}

// duplicate reports whether a passage says the same as one that was taken
// before.
func (ix ranker) duplicate(before []taken, h *taken, both *termTable) bool {
	for i := range before {
		t := &before[i]
		if !h.signature.like(t.signature) {
			continue
		}
		if len(h.packed) > 0 && bytes.Equal(h.packed, t.packed) {
			return true
		}
		if ix.alike(h, t, both) {
			return true
		}
	}
	return false
}

// alike reports near duplicates: nine tenths of the distinct terms are shared
// (Jaccard), and none of the others is a number, because texts that differ in a
// number say different things. Texts without terms are never alike.
func (ix ranker) alike(a, b *taken, both *termTable) bool {
	both.clear(len(a.packed) + len(b.packed)) // a term takes at least one byte
	ofA, _ := both.add(a.packed, 1)
	ofB, same := both.add(b.packed, 2)
	if ofA == 0 || ofB == 0 || same*10 < (ofA+ofB-same)*9 {
		return false
	}
	for _, slot := range both.slots {
		if in := slot & 3; (in == 1 || in == 2) && query.IsDigit(ix.terms.raw(slot >> 2)[0]) {
			return false
		}
	}
	return true
}

// termTable is a hash table of the terms of two passages: term<<2 | which
// passages have it (1 and 2). 0 is an empty slot, because the term 0 is a mark.
type termTable struct {
	slots []uint32 // a power of two
	shift int      // of a hash, to get a slot
}

// keptTerms is the size of the largest table that is kept for the next request.
const keptTerms = 1 << 14

// clear makes room for at most limit terms, and one more.
func (t *termTable) clear(limit int) {
	size := bits.Len(uint(limit))
	if t.slots, t.shift = t.slots[:min(1<<size, cap(t.slots))], 32-size; len(t.slots) < 1<<size {
		t.slots = make([]uint32, 1<<size)
		return
	}
	clear(t.slots)
}

// add adds the terms of a passage. It returns how many there are, and how many
// were there before.
func (t *termTable) add(packed []byte, which uint32) (distinct, before int) {
	for at := 0; at < len(packed); {
		var id uint32
		id, at = nextTerm(packed, at)
		if text.IsMark(id) {
			continue
		}
		i := id * 0x9e3779b1 >> t.shift
		for t.slots[i] != 0 && t.slots[i]>>2 != id {
			i = (i + 1) & uint32(len(t.slots)-1)
		}
		if had := t.slots[i] & 3; had&which == 0 {
			distinct++
			if had != 0 {
				before++
			}
			t.slots[i] = id<<2 | had | which
		}
	}
	return distinct, before
}
