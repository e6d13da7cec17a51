package recall

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"io"
	"math/bits"
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

// table finds numbers by the hash of what they stand for, with open addressing
// and linear probing. It stores only the numbers, at some seven bytes each,
// where a map of strings takes forty. Its owner compares what they stand for.
// The bits of a slot above the number are bits of the hash, so that few
// comparisons fail.
type table struct {
	slots []uint32 // 0 = empty, removed, or hash bits above number + 1; a power of two of them
	used  int      // slots that are not empty
	width int      // bits of a slot that hold the number
}

const removed = 1<<32 - 1

// low returns the mask of a slot's number, which number + 1 never exceeds.
func (t *table) low() uint32 { return uint32(1)<<t.width - 1 }

func (t *table) slot(hash uint64, n uint32) uint32 { return uint32(hash>>32)&^t.low() | (n + 1) }

// find returns the number for which is reports true.
func (t *table) find(hash uint64, is func(n uint32) bool) (uint32, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask, low := uint64(len(t.slots)-1), t.low()
	top := uint32(hash>>32) &^ low
	for i := hash & mask; ; i = (i + 1) & mask {
		switch s := t.slots[i]; {
		case s == 0:
			return 0, false
		case s&^low == top && s != removed && is(s&low-1):
			return s&low - 1, true
		}
	}
}

// add inserts a number that is not in the table. hashOf returns the hash of any
// number that is.
func (t *table) add(hash uint64, n uint32, hashOf func(n uint32) uint64) {
	if (t.used+1)*5 > len(t.slots)*4 || n+1 >= t.low() {
		t.grow(n, hashOf)
	}
	t.insert(hash, n)
}

// insert needs a free slot, and width for n.
func (t *table) insert(hash uint64, n uint32) {
	mask := uint64(len(t.slots) - 1)
	i := hash & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = t.slot(hash, n)
	t.used++
}

// grow makes room for n.
func (t *table) grow(n uint32, hashOf func(n uint32) uint64) {
	live, low := 0, t.low()
	for _, s := range t.slots {
		if s != 0 && s != removed {
			live++
			n = max(n, s&low-1)
		}
	}
	old := t.slots
	t.reserve(max(live+1, live*3/2))
	t.width = max(t.width, bits.Len32(n+2))
	for _, s := range old {
		if s != 0 && s != removed {
			t.insert(hashOf(s&low-1), s&low-1)
		}
	}
}

// reserve empties the table and makes room for the numbers below n.
func (t *table) reserve(n int) {
	size := 8
	for n*5 > size*4 {
		size *= 2
	}
	t.slots, t.used, t.width = make([]uint32, size), 0, bits.Len(uint(size))
}

// remove deletes a number.
func (t *table) remove(hash uint64, n uint32) {
	if len(t.slots) == 0 {
		return
	}
	mask, slot := uint64(len(t.slots)-1), t.slot(hash, n)
	for i := hash & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.slots[i] == slot {
			t.slots[i] = removed
			return
		}
	}
}

// names numbers strings from 0 in the order in which they arrive, in one run of
// bytes.
type names struct {
	seed  uint64
	bytes []byte
	ends  []uint32 // in bytes, of each string
	at    table
}

func (s *names) len() int { return len(s.ends) }

// raw returns the string as it is stored.
func (s *names) raw(n uint32) []byte {
	from := uint32(0)
	if n > 0 {
		from = s.ends[n-1]
	}
	return s.bytes[from:s.ends[n]]
}

// find returns the number of v.
func (s *names) find(v string) (uint32, bool) {
	return s.findHashed(v, xxh3.HashStringSeed(v, s.seed))
}

// findHashed is find for a string with this hash.
func (s *names) findHashed(v string, hash uint64) (uint32, bool) {
	return s.at.find(hash, func(n uint32) bool { return string(s.raw(n)) == v })
}

// number returns the number of v, and whether it is new.
func (s *names) number(v string) (n uint32, fresh bool) {
	hash := xxh3.HashStringSeed(v, s.seed)
	if n, ok := s.findHashed(v, hash); ok {
		return n, false
	}
	n = uint32(len(s.ends))
	s.bytes = append(s.bytes, v...)
	s.ends = append(s.ends, uint32(len(s.bytes)))
	s.at.add(hash, n, s.hash)
	return n, true
}

func (s *names) hash(n uint32) uint64 { return xxh3.HashSeed(s.raw(n), s.seed) }

// held returns the heap that s uses, in bytes.
func (s *names) held() int64 { return int64(cap(s.bytes) + 4*cap(s.ends) + 4*len(s.at.slots)) }

func (s *names) validate() bool { return s.at.validate(len(s.ends)) }

// table writes a table unchanged.
func (p *packer) table(t *table) {
	p.uint(uint64(t.width))
	p.uint(uint64(t.used))
	p.uint(uint64(len(t.slots)))
	for _, s := range t.slots {
		p.b = binary.LittleEndian.AppendUint32(p.b, s)
	}
}

// read reads what packer.table wrote. validate checks the slots.
func (t *table) read(u *unpacker) bool {
	t.width, t.used = int(u.uint()&63), int(u.uint()&(1<<32-1))
	size := u.count(4)
	raw := u.bytes(4 * uint64(size))
	if u.failed || t.width > 31 || size&(size-1) != 0 || t.used > size {
		return false
	}
	t.slots = make([]uint32, size)
	for i := range t.slots {
		t.slots[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return true
}

// validate reports whether any search ends, and finds only the n numbers from
// 0.
func (t *table) validate(n int) bool {
	if n > 0 && n >= 1<<t.width-1 {
		return false
	}
	used := 0
	for _, s := range t.slots {
		if s == 0 {
			continue
		}
		if used++; s != removed && s&t.low()-1 >= uint32(n) { // 0 wraps around
			return false
		}
	}
	return used == t.used && (used < len(t.slots) || used == 0 && n == 0)
}
