package recall

import (
	"bytes"
	"encoding/hex"
	"hash/fnv"
	"io"
	"strings"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/zeebo/xxh3"
)

// turnHash returns the hash of the key of a memory's turn.
func (ix *hasher) turnHash(m *storage.Memory) uint64 {
	key := turnKey(m)
	if key.sole {
		return ix.soleHash(key.id)
	}
	return ix.hash(key.id)
}

func (ix *hasher) soleHash(id string) uint64 { return ix.hash(id) * soleFactor }

// soleFactor separates the key of a memory that is a turn of its own from that
// of a turn with the same name.
const soleFactor = 0x9e3779b97f4a7c15

func (ix *index) turnByKey(key uint64) (int32, bool) {
	n, ok := ix.byTurn.find(key, func(n uint32) bool { return ix.turns[n].key == key })
	return int32(n), ok
}

func (ix *index) keyOf(n uint32) uint64 { return ix.turns[n].key }

// memoryOf returns the number of a memory by its id.
func (ix *index) memoryOf(id string) (int32, bool) {
	var space [storage.MaxID]byte
	i, ok := ix.byID.find(ix.hash(id), func(i uint32) bool { return string(ix.appendID(space[:0], int32(i))) == id })
	return int32(i), ok
}

// memoryOfBytes is memoryOf for an id in bytes.
func (ix *index) memoryOfBytes(id []byte) (int32, bool) {
	var space [storage.MaxID]byte
	i, ok := ix.byID.find(hashID(ix.seed, id), func(i uint32) bool { return bytes.Equal(ix.appendID(space[:0], int32(i)), id) })
	return int32(i), ok
}

// memoryByHash returns the number of a memory by the hash of its id.
func (ix *index) memoryByHash(hash uint64) (int32, bool) {
	i, ok := ix.byID.find(hash, func(i uint32) bool { return ix.idHash(i) == hash })
	return int32(i), ok
}

func (ix *index) idHash(i uint32) uint64 {
	if int(i) < len(ix.ids) {
		return ix.ids[i]
	}
	u := ix.head(int32(i)).rest
	d := ix.identity(&u, ix.mems[i].turn)
	return ix.hashOf(&d)
}

func (ix *index) conversation(id string) int32 {
	if id == "" {
		return -1
	}
	last := &ix.space().conversation
	if last.id != id {
		c, fresh := ix.convs.names.number(packName(id))
		if fresh {
			ix.convs.list = append(ix.convs.list, conv{last: -1})
		}
		last.id, last.number = id, int32(c)
	}
	return last.number
}

// is reports whether id names conversation number.
func (c *conversations) is(id string, number int32) bool {
	if id == "" {
		return number < 0
	}
	n, ok := c.find(id)
	return ok && n == number
}

// projectOf returns the hash of the project that tags name, or 0.
func projectOf(tags []string) uint32 {
	for _, t := range tags {
		if name, ok := strings.CutPrefix(t, storage.ProjectTag); ok {
			return projectHash(name)
		}
	}
	return 0
}

func projectHash(name string) uint32 {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, name)
	return max(h.Sum32(), 1)
}

// find returns the number of a conversation.
func (c *conversations) find(id string) (int32, bool) {
	n, ok := c.names.find(packName(id))
	return int32(n), ok
}

// packName returns the stored form of a conversation's name: a 1 and the bytes
// of hex digits, or a 0 and the name.
func packName(id string) string {
	if !isHex(id) {
		return "\x00" + id
	}
	b, _ := hex.AppendDecode([]byte{1}, []byte(id))
	return string(b)
}

// Hashes of ids. An id in hex is hashed as its bytes. An id that ends in a dot
// and a number, as those of a turn's memories do, is hashed as the part before
// the dot combined with the number. So the hashes of a record need no text.
//
// Hashes are seeded, so that nobody can choose ids that collide. Each index has
// its own seed, which its snapshot stores, sealed like memories, together with
// the hashes and tables.

// hasher hashes ids and names with an index's seed.
type hasher struct{ seed uint64 }

// hash returns the hash of the id of a turn, a memory or a chain.
func (ix *hasher) hash(id string) uint64 { return hashID(ix.seed, id) }

func hashID[T string | []byte](seed uint64, id T) uint64 {
	if len(id) == 2*usualID { // rebuilding long conversations looks up hundreds of these
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

// hexDigits holds the values of the hex digits, and 0xff for all other bytes.
var hexDigits = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()

// hexFactor separates the hash of an id in hex from that of an id with the same
// bytes. It differs from soleFactor, so that a turn's key cannot equal that of
// a single memory.
const hexFactor = 0xc2b2ae3d27d4eb4f

// hashRaw returns the hash of a packed id without a number.
func hashRaw(seed uint64, raw []byte, isHex bool) uint64 {
	h := xxh3.HashSeed(raw, seed)
	if isHex {
		h *= hexFactor
	}
	return max(h, 1)
}

// hashSeq returns the hash of passage seq of an id with hash h.
func hashSeq(h uint64, seq int) uint64 {
	h += uint64(seq+1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return max(h^h>>32, 1)
}

// maxSeq is the largest number that is recognised in an id.
const maxSeq = 999_999_999

// cutSeq returns the position of an id's dot, and the number after it. Without
// a number it returns the end of the id and -1.
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

// unhex decodes lower-case hex in place.
func unhex(b []byte) []byte {
	digit := func(c byte) byte { return c&15 + c>>6*9 }
	for i := range len(b) / 2 {
		b[i] = digit(b[2*i])<<4 | digit(b[2*i+1])
	}
	return b[:len(b)/2]
}

// hashOf returns the hash of a memory's id.
func (ix *index) hashOf(d *identity) uint64 {
	if d.mark&markID == 0 && d.seq >= 0 && d.seq <= maxSeq && len(d.turn) > 0 {
		return hashSeq(hashRaw(ix.seed, d.turn, d.turnHex), d.seq)
	}
	var space [storage.MaxID]byte
	return hashID(ix.seed, d.appendID(space[:0]))
}

// turnOf returns the turn of a memory by the hash of its id.
func (ix *index) turnOf(id uint64) (int32, bool) {
	i, ok := ix.memoryByHash(id)
	if !ok {
		return 0, false
	}
	return ix.mems[i].turn, true
}
