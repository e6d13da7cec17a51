package recall

import (
	"encoding/binary"

	"github.com/remora-proxy/remora/storage"
)

// validator checks an index that was read from a snapshot.
type validator struct{ *index }

// validPostings reports whether postings can be read to their end and match
// their counts.
func (ix validator) validPostings(p *postings) bool {
	last, df, ok := p.count(uint32(len(ix.turns)))
	if !ok || last != p.last || df != p.df {
		return false
	}
	facts := uint32(0)
	for buf, now := p.buf, uint32(0); ix.liveFacts > 0 && len(buf) > 0; {
		buf, now, _ = next(buf, now)
		facts += ix.turns[now-1].fact()
	}
	return facts == p.facts
}

// count reads postings of so many turns to the end. It returns the last turn
// and how many there are.
func (p *postings) count(turns uint32) (last, df uint32, ok bool) {
	for buf := p.buf; len(buf) > 0; df++ {
		d, n := binary.Uvarint(buf)
		if n <= 0 || n >= len(buf) || d-1 >= uint64(turns-last) { // 0 wraps around
			return 0, 0, false
		}
		last += uint32(d)
		buf = buf[n+1:]
	}
	return last, df, true
}

// validTurn reports whether the records of a turn can be read to their ends and
// match what the turn says of them.
func (ix validator) validTurn(n int32) bool {
	t := &ix.turns[n]
	spoken := t.count <= 2
	for m := t.mem; m < t.mem+int32(t.count); m++ {
		asst, ok := ix.validPassage(m, t)
		if !ok {
			return false
		}
		spoken = spoken && asst == (m > t.mem)
	}
	return spoken == (t.flags&turnSpoken != 0)
}

// validPassage reports whether the record of a passage can be read to its end,
// and whether it is the assistant's.
func (ix validator) validPassage(i int32, t *turn) (assistant, ok bool) {
	rec := ix.mems[i].rec
	if int(rec>>chunkBits) >= len(ix.arena.chunks) || int(rec&(maxChunk-1)) >= len(ix.arena.chunks[rec>>chunkBits]) {
		return false, false
	}
	h := ix.head(i)
	if h.rest.failed || countTerms(h.packed, len(ix.posts)) != h.terms {
		return false, false
	}
	u := h.rest
	if len(u.b) == 0 || u.b[0]&markAsFirst != 0 && i == t.mem {
		return false, false
	}
	d := ix.identity(&u, ix.mems[i].turn)
	named := d.mark&markID != 0 || len(d.turn) > 0
	return h.assistant, !u.failed && named && d.length() <= storage.MaxID
}

// countTerms returns how many terms are in b, or -1 if they can't be read or
// one is not below the limit.
func countTerms(b []byte, below int) int {
	n := 0
	for len(b) > 0 {
		v, size := binary.Uvarint(b)
		if size <= 0 || v >= uint64(below) {
			return -1
		}
		b = b[size:]
		n++
	}
	return n
}
