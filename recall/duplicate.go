package recall

import (
	"bytes"
	"math/bits"
	"slices"
)

// signature is four small minhashes of a passage's distinct terms. Of two passages that share nine tenths of their terms
// at least two agree but in 4 of 1,000 cases, and of two that share little hardly ever.
type signature [4]uint8

func sign(terms []string) signature {
	low := noMinhash
	for _, t := range terms {
		low.take(minhashOf(t))
	}
	return low.signature()
}

// minhash is four hashes of a term, or the least of those of many.
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

// termHashes are the hashes of an index's terms, by number, while it is built.
type termHashes []minhash

// sign is sign for terms by number.
func (t *termHashes) sign(ix *index, ids []uint32) signature {
	low := noMinhash
	for _, id := range ids {
		for int(id) >= len(*t) {
			*t = append(*t, minhashOf(ix.terms.raw(uint32(len(*t)))))
		}
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

// taken is a passage that is part of a result.
type taken struct {
	head
	mem   int32
	bits  termBits
	known bool     // bits are
	terms []uint32 // distinct, once they were needed
	own   ownStrings
	limit int // of its text, where all together are too long
}

// termBits has a bit for each distinct term, which some may share.
type termBits [8]uint64

func (t *taken) readBits() {
	if t.known {
		return
	}
	t.known = true
	b, packed := &t.bits, t.packed
	for at := 0; at < len(packed); {
		id := uint32(packed[at])
		at++
		if id >= 0x80 { // nextTerm, which is not inlined
			id, at = nextTerm(packed, at-1)
		}
		if !isMark(id) {
			h := id * 0x9e3779b1 >> 23
			b[h>>6] |= 1 << (h & 63)
		}
	}
}

// apart reports, of two passages of which the first has at most n distinct terms, that they can't be alike: a tenth of its
// terms is not in the other.
func (b *termBits) apart(n int, o *termBits) bool {
	odd := 0
	for i := range b {
		odd += bits.OnesCount64(b[i] &^ o[i])
	}
	return odd*10 > n
}

// duplicate reports whether a passage says the same as one that was taken before.
func (ix *index) duplicate(before []taken, h *taken) bool {
	for i := range before {
		t := &before[i]
		if !h.signature.like(t.signature) {
			continue
		}
		if len(h.packed) > 0 && bytes.Equal(h.packed, t.packed) {
			return true
		}
		t.readBits()
		h.readBits()
		if h.bits.apart(h.head.terms, &t.bits) || t.bits.apart(t.head.terms, &h.bits) {
			continue
		}
		if h.terms == nil {
			h.terms = distinct(make([]uint32, 0, h.head.terms), h.packed)
		}
		if t.terms == nil {
			t.terms = distinct(make([]uint32, 0, t.head.terms), t.packed)
		}
		if ix.alike(h.terms, t.terms) {
			return true
		}
	}
	return false
}

// distinct returns the sorted distinct terms of a passage, in the space of buf.
func distinct(buf []uint32, packed []byte) []uint32 {
	for at := 0; at < len(packed); {
		var id uint32
		if id, at = nextTerm(packed, at); !isMark(id) {
			buf = append(buf, id)
		}
	}
	slices.Sort(buf)
	return slices.Compact(buf)
}

// alike reports near duplicates: nine tenths of the distinct terms shared (Jaccard), and none of the others a number, for
// texts that differ in a number say different things. Texts without terms are never alike.
func (ix *index) alike(a, b []uint32) bool {
	if len(a) == 0 || len(b) == 0 || len(a)*10 < len(b)*9 || len(b)*10 < len(a)*9 {
		return false
	}
	same := 0
	for i, j := 0, 0; i < len(a) || j < len(b); {
		var odd uint32
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			odd = a[i]
			i++
		case i == len(a) || b[j] < a[i]:
			odd = b[j]
			j++
		default:
			same++
			i++
			j++
			continue
		}
		if isDigit(ix.terms.raw(odd)[0]) {
			return false
		}
	}
	return same*10 >= (len(a)+len(b)-same)*9
}
