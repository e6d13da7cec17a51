package recall

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/remora-proxy/remora/text"
)

// postings lists the turns that have a term, in ascending order: for each, the
// distance to the previous one as a varint, and one byte with the term's
// frequency.
type postings struct {
	buf   []byte
	last  uint32 // turn number + 1 of the last entry
	facts uint32 // live turns that are facts
	df    uint32 // live turns; entries of deleted turns stay in buf until a rebuild
}

// frequency packs how often a term occurs in a turn: in the user's statements
// (at most 7), in the user's questions (3) and in the assistant's text (7).
type frequency uint8

func newFrequency(tell, ask, assistant int) frequency {
	return frequency(min(tell, 7) | min(ask, 3)<<3 | min(assistant, 7)<<5)
}

const (
	userFrequency frequency = 1<<5 - 1
	assistantOnce frequency = 1 << 5
)

func (f frequency) tell() float32      { return float32(f & 7) }
func (f frequency) ask() float32       { return float32(f >> 3 & 3) }
func (f frequency) assistant() float32 { return float32(f >> 5) }
func (f frequency) all() float32       { return float32(f&7 + f>>3&3 + f>>5) }

func (p *postings) add(turn uint32, f frequency) {
	if d := turn + 1 - p.last; d < 0x80 { // the usual case
		p.buf = append(p.buf, byte(d), byte(f))
	} else {
		p.buf = append(binary.AppendUvarint(p.buf, uint64(d)), byte(f))
	}
	p.last = turn + 1
	p.df++
}

// documents returns the document frequency for idf. A fact repeats what its
// turn says. Counting both would make a word look more common the more is known
// about it, so this counts turns or facts, whichever are more.
func (p *postings) documents() float64 { return float64(max(p.df-p.facts, p.facts)) }

// next decodes the entry at the start of buf. last is the turn number + 1 of
// the previous entry.
func next(buf []byte, last uint32) (rest []byte, now uint32, f frequency) {
	if buf[0] < 0x80 { // most distances fit one byte
		return buf[2:], last + uint32(buf[0]), frequency(buf[1])
	}
	d, n := binary.Uvarint(buf)
	return buf[n+1:], last + uint32(d), frequency(buf[n])
}

// filterPostings appends to out, as turn<<8 | frequency, the postings of turns
// that are in the set.
func filterPostings(out []uint32, buf []byte, set bitset) []uint32 {
	n := ^uint32(0) // one before the first turn
	for i := 0; i+1 < len(buf); {
		d, tf := uint32(buf[i]), buf[i+1]
		i += 2
		if d >= 0x80 {
			v, size := binary.Uvarint(buf[i-2:])
			d = uint32(v)
			i += size - 1
			tf = buf[i-1]
		}
		if n += d; set.has(int32(n)) {
			out = append(out, n<<8|uint32(tf))
		}
	}
	return out
}

// postingLog collects the postings of an index that is being built and moves
// them to their lists in large batches. Appending each two-byte posting to its
// own list would be much slower.
type postingLog struct {
	chunks [][]uint64 // term<<32 | turn<<8 | frequency
	used   int        // of chunks
	gone   []goneTerm
	facts  bool // the log contains a fact
}

// goneTerm is a term of a deleted turn.
type goneTerm struct{ term, fact uint32 }

const (
	logChunk  = 1 << 14
	logChunks = 1 << 6 // at which it is moved to the lists; with what sorts it, that takes 12 MiB
)

// add records the terms of a turn.
func (l *postingLog) add(turn uint32, fact bool, list []termCount) {
	l.facts = l.facts || fact
	for len(list) > 0 {
		if l.used == 0 || len(l.chunks[l.used-1]) == logChunk {
			if l.used++; l.used > len(l.chunks) {
				l.chunks = append(l.chunks, make([]uint64, 0, logChunk))
			}
		}
		c := &l.chunks[l.used-1]
		n := min(len(list), logChunk-len(*c))
		to := (*c)[:len(*c)+n]
		for i, t := range list[:n] {
			to[len(*c)+i] = uint64(t.term)<<32 | uint64(turn)<<8 | uint64(newFrequency(int(t.tell), int(t.ask), int(t.asst)))
		}
		*c, list = to, list[n:]
	}
}

// bytes returns the approximate heap that the log uses.
func (l *postingLog) bytes() int64 { return 8 * logChunk * int64(l.used) }

// sorted returns turn<<8 | frequency of all postings by term, and where those
// of each term end. It empties the log.
func (l *postingLog) sorted(terms int) (entries, ends []uint32) {
	ends = make([]uint32, terms+1)
	n := 0
	for _, c := range l.chunks[:l.used] {
		n += len(c)
		for _, e := range c {
			ends[e>>32+1]++
		}
	}
	for i := range terms {
		ends[i+1] += ends[i]
	}
	entries = make([]uint32, n)
	for i, c := range l.chunks[:l.used] {
		for _, e := range c {
			at := &ends[e>>32]
			entries[*at] = uint32(e)
			*at++
		}
		l.chunks[i] = c[:0]
	}
	l.used = 0
	return entries, ends[:terms]
}

// listBuilder moves the postings of an index that is being built from its log
// to their lists.
type listBuilder struct{ *index }

// spread moves entries to the lists, which have room for them.
func (ix listBuilder) spread(entries, ends []uint32) {
	from := uint32(0)
	for i, end := range ends {
		p := &ix.posts[i]
		added := entries[from:end]
		from = end
		if p.extend(added); ix.log.facts {
			for _, e := range added {
				p.facts += ix.turns[e>>8].fact()
			}
		}
	}
	for _, g := range ix.log.gone {
		ix.posts[g.term].df--
		ix.posts[g.term].facts -= g.fact
	}
	ix.log.gone = ix.log.gone[:0]
}

// spreadLog empties the log while the index is being built.
func (ix listBuilder) spreadLog() {
	entries, ends := ix.log.sorted(len(ix.posts))
	from := uint32(0)
	for i, end := range ends {
		p := &ix.posts[i]
		before := cap(p.buf)
		p.buf = slices.Grow(p.buf, p.room(entries[from:end]))
		ix.postBytes += int64(cap(p.buf) - before)
		from = end
	}
	ix.spread(entries, ends)
}

// compactLists empties the log for the last time, and trims the lists.
func (ix listBuilder) compactLists() {
	entries, ends := ix.log.sorted(len(ix.posts))
	rooms := make([]int, len(ends))
	total, from := 0, uint32(0)
	for i, end := range ends {
		rooms[i] = roomy(len(ix.posts[i].buf) + ix.posts[i].room(entries[from:end]))
		total += rooms[i]
		from = end
	}
	all := make([]byte, total)
	for i, room := range rooms {
		p := &ix.posts[i]
		n := copy(all, p.buf)
		p.buf, all = all[:n:room], all[room:]
	}
	ix.spread(entries, ends)
	ix.postBytes, ix.log = int64(total), postingLog{}
}

// room returns how many bytes further postings take.
func (p *postings) room(entries []uint32) (n int) {
	last := p.last
	for _, e := range entries {
		if d := e>>8 + 1 - last; d < 0x80 {
			n += 2
		} else {
			n += uvarintLen(uint64(d)) + 1
		}
		last = e>>8 + 1
	}
	return n
}

// extend appends postings for which there is room.
func (p *postings) extend(entries []uint32) {
	buf, last := p.buf, p.last
	for _, e := range entries {
		if d := e>>8 + 1 - last; d < 0x80 { // the usual case
			buf = append(buf, byte(d), byte(e))
		} else {
			buf = append(binary.AppendUvarint(buf, uint64(d)), byte(e))
		}
		last = e>>8 + 1
	}
	p.buf, p.last = buf, last
	p.df += uint32(len(entries))
}

// termCounts counts the terms of one turn.
type termCounts struct {
	list  []termCount
	slots []uint32 // hash table: position in list + 1; at most half full, a power of two
	ids   []uint32 // of the current passage
	once  []uint32 // of the current passage, if it is the assistant's: each once, without marks
	nth   uint16   // passage of the turn
}

const (
	minSlots      = 128
	maxFirstSlots = 2048
)

// reset empties c for likely at most so many terms, and keeps its memory.
func (c *termCounts) reset(terms int) {
	c.list, c.nth = c.list[:0], 0
	slots := min(max(1<<bits.Len(uint(2*terms)), minSlots), maxFirstSlots)
	c.slots = cleared(c.slots, slots)
}

// cleared returns n zeros, in the memory of s if it suffices.
func cleared(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

type termCount struct {
	term            uint32
	tell, ask, asst uint16
	last            uint16 // the last passage of the assistant's that has it
}

// number returns the numbers of terms, valid until the next passage.
func (c *termCounts) number(ix *index, terms []string) []uint32 {
	c.ids = c.ids[:0]
	for _, s := range terms {
		c.ids = append(c.ids, ix.term(s))
	}
	return c.ids
}

// passage counts the terms of one passage and returns how many there are,
// without marks.
func (c *termCounts) passage(ids []uint32, asst bool) (n int) {
	c.once = c.once[:0]
	c.nth++
	for i := 0; i < len(ids); {
		end := i
		for end < len(ids) && !text.IsMark(ids[end]) {
			end++
		}
		asked := end < len(ids) && ids[end] == text.MarkQuestion
		for _, id := range ids[i:end] {
			t := c.of(id)
			switch {
			case asst:
				if t.asst++; t.last != c.nth {
					t.last = c.nth
					c.once = append(c.once, id)
				}
			case asked:
				t.ask++
			default:
				t.tell++
			}
		}
		n += end - i
		i = end + 1
	}
	return n
}

// of returns the count of a term, valid until the next call.
func (c *termCounts) of(term uint32) *termCount {
	at := c.slot(term)
	if n := c.slots[at]; n > 0 {
		return &c.list[n-1]
	}
	c.list = append(c.list, termCount{term: term})
	c.slots[at] = uint32(len(c.list))
	if 2*len(c.list) > len(c.slots) {
		c.slots = cleared(c.slots, 2*len(c.slots))
		for i := range c.list {
			c.slots[c.slot(c.list[i].term)] = uint32(i + 1)
		}
	}
	return &c.list[len(c.list)-1]
}

// slot returns the position of a term, or the empty one where it would go.
func (c *termCounts) slot(term uint32) uint32 {
	mask := uint32(len(c.slots) - 1)
	i := uint32(uint64(term)*0x9e3779b97f4a7c15>>32) & mask
	for c.slots[i] > 0 && c.list[c.slots[i]-1].term != term {
		i = (i + 1) & mask
	}
	return i
}
