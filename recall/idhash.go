package recall

import (
	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// Hashes of ids. An id that is hex is hashed as the bytes that it is kept as, and one that ends in a dot and a number, as
// those of turns' memories do, as what stands before and the number: so the hashes of a record need no text.
//
// They are seeded, so that nobody can choose ids that meet in a table. An index has a seed of its own, which its snapshot, sealed
// like memories, holds together with the hashes and the tables.

// hasher hashes ids and names with an index's seed.
type hasher struct{ seed uint64 }

// hash is the hash of an id of a turn, a memory or a chain.
func (ix *hasher) hash(id string) uint64 { return hashID(ix.seed, id) }

func hashID[T string | []byte](seed uint64, id T) uint64 {
	if len(id) == 2*usualID { // a conversation of hundreds of turns has as many to look for
		var raw [usualID]byte
		odd := byte(0)
		for i := range raw {
			high, low := hexDigits[id[2*i]], hexDigits[id[2*i+1]]
			raw[i] = high<<4 | low
			odd |= high | low
		}
		if odd < 16 {
			return hashRaw(seed, raw[:], true)
		}
	}
	end, seq := cutSeq(id)
	var space [storage.MaxID]byte
	b := append(space[:0], id[:end]...)
	isHex := isHexText(b)
	if isHex {
		b = unhex(b)
	}
	h := hashRaw(seed, b, isHex)
	if seq >= 0 {
		h = hashSeq(h, seq)
	}
	return h
}

// usualID is the length of most ids, which are hex, in bytes.
const usualID = 16

// hexDigits are the values of the digits, 0xff for what is none.
var hexDigits = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()

// hexFactor tells the hash of an id that is hex from that of the id which is those bytes. It is not soleFactor, or a turn's key
// could be that of a memory by itself.
const hexFactor = 0xc2b2ae3d27d4eb4f

// hashRaw is the hash of an id, as it is packed, that ends in no number.
func hashRaw(seed uint64, raw []byte, isHex bool) uint64 {
	h := xxh3.HashSeed(raw, seed)
	if isHex {
		h *= hexFactor
	}
	return max(h, 1)
}

// hashSeq is the hash of the id of passage seq of what has the hash h.
func hashSeq(h uint64, seq int) uint64 {
	h += uint64(seq+1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return max(h^h>>32, 1)
}

// maxSeq bounds the numbers that are told apart in an id.
const maxSeq = 999_999_999

// cutSeq returns where an id's dot and number begin, and the number, or the id's end and -1 if it has none.
func cutSeq[T string | []byte](id T) (end, seq int) {
	at, unit := len(id), 1
	for at > 0 && query.IsDigit(id[at-1]) && unit <= maxSeq {
		at--
		seq += unit * int(id[at]-'0')
		unit *= 10
	}
	if at == len(id) || at < 2 || id[at-1] != '.' || id[at] == '0' && at+1 < len(id) {
		return len(id), -1
	}
	return at - 1, seq
}

// unhex turns lower-case hex into bytes, in place.
func unhex(b []byte) []byte {
	digit := func(c byte) byte { return c&15 + c>>6*9 }
	for i := range len(b) / 2 {
		b[i] = digit(b[2*i])<<4 | digit(b[2*i+1])
	}
	return b[:len(b)/2]
}

// hashOf is the hash of the memory's id.
func (ix *index) hashOf(d *identity) uint64 {
	if d.mark&markID == 0 && d.seq >= 0 && d.seq <= maxSeq && len(d.turn) > 0 {
		return hashSeq(hashRaw(ix.seed, d.turn, d.turnHex), d.seq)
	}
	var space [storage.MaxID]byte
	return hashID(ix.seed, d.appendID(space[:0]))
}
