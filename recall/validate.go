package recall

import (
	"encoding/binary"
	"math/bits"

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
	// Four entries at a time, if all their distances take one byte, as most do.
	const (
		each = 0x0001000100010001
		low  = 0xff * each
		high = 0x80 * each
	)
	buf := p.buf
	for i := 0; i < len(buf); df++ {
		if i+8 <= len(buf) {
			w := binary.LittleEndian.Uint64(buf[i:]) & low
			if w&high == 0 && (w+(high-each))&high == high { // none is 0
				d := uint32(w * each >> 48)
				if d > turns-last {
					return 0, 0, false
				}
				last += d
				i += 8
				df += 3
				continue
			}
		}
		d := uint64(buf[i])
		i++
		if d >= 0x80 {
			n := 0
			if d, n = binary.Uvarint(buf[i-1:]); n <= 0 {
				return 0, 0, false
			}
			i += n - 1
		}
		if i >= len(buf) || d-1 >= uint64(turns-last) {
			return 0, 0, false
		}
		last += uint32(d)
		i++
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
// one is not below the limit. It takes eight bytes at a time if no term has
// more than two; terms are most of what must be validated in a blob.
func countTerms(b []byte, below int) int {
	const (
		each = 0x0101010101010101
		high = each << 7
	)
	if below <= 1<<7 {
		return countAll(b, below)
	}
	// A second byte counts 128s. With at most this many, the term is certainly
	// below the limit.
	limit := min(below>>7-1, 1<<7-1)
	bias := uint64(1<<7-1-limit) * each
	n, before, odd := 0, uint64(0), uint64(0)
	for rest := b; len(rest) > 0; {
		var w uint64
		if len(rest) >= 8 {
			w = binary.LittleEndian.Uint64(rest)
			n += 8
			rest = rest[8:]
		} else {
			for i, c := range rest {
				w |= uint64(c) << (8 * i)
			}
			n += len(rest)
			rest = nil
		}
		more := w & high           // bytes that another one follows
		second := more<<8 | before // bytes that follow another one
		before = more >> 56
		n -= bits.OnesCount64(more)
		odd |= more&second | ((w&(second>>7*0xff))+bias)&high
	}
	if odd != 0 || len(b) > 0 && b[len(b)-1] >= 0x80 {
		return countAll(b, below)
	}
	return n
}

// countAll is countTerms one term at a time.
func countAll(b []byte, below int) int {
	n, largest := 0, uint64(0)
	for i := 0; i < len(b); n++ {
		v := uint64(b[i])
		i++
		if v >= 0x80 {
			if i < len(b) && b[i] < 0x80 {
				v = v&0x7f | uint64(b[i])<<7
				i++
			} else {
				size := 0
				if v, size = binary.Uvarint(b[i-1:]); size <= 0 {
					return -1
				}
				i += size - 1
			}
		}
		largest = max(largest, v)
	}
	if largest >= uint64(below) {
		return -1
	}
	return n
}
