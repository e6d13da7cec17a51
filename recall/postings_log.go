package recall

import (
	"encoding/binary"
	"slices"
)

// postingLog keeps the postings of an index that is built as they come, and puts them into their lists many at a time: each list would
// have to be found and to grow, for a posting of two bytes.
type postingLog struct {
	chunks [][]uint64 // term<<32 | turn<<8 | frequency
	used   int        // of chunks
	gone   []goneTerm
	facts  bool // a turn is one
}

// goneTerm is a term of a turn that was removed.
type goneTerm struct{ term, fact uint32 }

const (
	logChunk  = 1 << 14
	logChunks = 1 << 6 // then it is put into the lists; with what sorts them they take 12 MiB
)

// add notes the terms of a turn.
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

// bytes is the heap that it takes, about.
func (l *postingLog) bytes() int64 { return 8 * logChunk * int64(l.used) }

// sorted returns turn<<8 | frequency of all postings, by term, and where those of each term end; it empties the log.
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

// spread puts what the log has into the lists, which have room for it.
func (ix *index) spread(entries, ends []uint32) {
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

// spreadLog empties the log while the index is built.
func (ix *index) spreadLog() {
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

// compactLists empties the log for good, and makes the lists no larger than they must be.
func (ix *index) compactLists() {
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

// room is how many bytes further postings take.
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

// extend adds postings for which there is room.
func (p *postings) extend(entries []uint32) {
	buf, last := p.buf, p.last
	for _, e := range entries {
		if d := e>>8 + 1 - last; d < 0x80 { // as most
			buf = append(buf, byte(d), byte(e))
		} else {
			buf = append(binary.AppendUvarint(buf, uint64(d)), byte(e))
		}
		last = e>>8 + 1
	}
	p.buf, p.last = buf, last
	p.df += uint32(len(entries))
}
