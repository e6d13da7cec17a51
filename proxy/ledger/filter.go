package ledger

// filter is a Bloom filter over the hashes that a scope has entries for. A
// request with a long history looks up each of its turns, mostly in vain and
// each in another part of memory, which takes longer than hashing the history;
// the filter of ten thousand entries is 16 KiB. Chain hashes can't be chosen
// without the secret, so their bits are used as they are.
type filter struct {
	words []uint64 // a power of two; nil = everything may be contained
	left  int      // entries that may be added before there must be more words
}

const (
	minFiltered    = 256 // entries; below it the map alone is as fast
	entriesPerWord = 6   // each sets two bits; of absent hashes one in 25 passes
)

// mayContain reports false only if there is no entry for h.
func (f *filter) mayContain(h Hash) bool {
	if f.words == nil {
		return true
	}
	b := filterBits(h)
	return f.words[h.Lo&uint64(len(f.words)-1)]&b == b
}

func filterBits(h Hash) uint64 { return 1<<(h.Hi&63) | 1<<(h.Hi>>6&63) }

// add adds h, which is among entries. Bits of deleted entries stay until the
// filter grows.
func (f *filter) add(h Hash, entries map[Hash]*entry) {
	switch {
	case f.left > 0:
		f.left--
		f.words[h.Lo&uint64(len(f.words)-1)] |= filterBits(h)
	case len(entries) < minFiltered:
		f.words = nil
	default:
		n := 1
		for n*entriesPerWord < len(entries)+len(entries)/2 {
			n *= 2
		}
		f.words, f.left = make([]uint64, n), n*entriesPerWord-len(entries)
		for h := range entries {
			f.words[h.Lo&uint64(n-1)] |= filterBits(h)
		}
	}
}
