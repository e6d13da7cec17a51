package recall

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

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
	return s.findHashed(v, s.hashOf(v))
}

func (s *names) hashOf(v string) uint64 { return xxh3.HashStringSeed(v, s.seed) }

// findHashed is find for a string with this hash.
func (s *names) findHashed(v string, hash uint64) (uint32, bool) {
	return s.at.find(hash, func(n uint32) bool { return string(s.raw(n)) == v })
}

// number returns the number of v, and whether it is new.
func (s *names) number(v string) (n uint32, fresh bool) {
	hash := xxh3.HashStringSeed(v, s.seed)
	if n, ok := s.at.find(hash, func(n uint32) bool { return string(s.raw(n)) == v }); ok {
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
	slots := t.slots
	for ; len(slots) >= 4 && len(raw) >= 16; slots, raw = slots[4:], raw[16:] {
		low, high := binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[8:])
		slots[0], slots[1], slots[2], slots[3] = uint32(low), uint32(low>>32), uint32(high), uint32(high>>32)
	}
	for i := range slots {
		slots[i] = binary.LittleEndian.Uint32(raw[4*i:])
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
