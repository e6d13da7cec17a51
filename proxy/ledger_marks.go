package proxy

// marks say of a chain hash that a scope has no entry for it, nearly always where it has none. A request with a long history looks up each
// of its turns, mostly in vain and each in another corner of memory, which takes longer than to hash the history; the marks of ten
// thousand entries are 16 KiB. Nobody without the secret can compute chain hashes, and so choose them.
type marks struct {
	words []uint64 // a power of two; nil = nothing is said
	left  int      // entries that may be added before there must be more words
}

const (
	markedFrom   = 256 // entries: of fewer the map says as much
	marksPerWord = 6   // entries, each of two of its bits: of 25 that are not there one passes
)

// passes says whether there may be an entry for h.
func (m *marks) passes(h chainHash) bool {
	if m.words == nil {
		return true
	}
	b := markOf(h)
	return m.words[h.Lo&uint64(len(m.words)-1)]&b == b
}

func markOf(h chainHash) uint64 { return 1<<(h.Hi&63) | 1<<(h.Hi>>6&63) }

// add marks h, which is among entries. Marks of entries that have gone stay until there are more words.
func (m *marks) add(h chainHash, entries map[chainHash]*entry) {
	switch {
	case m.left > 0:
		m.left--
		m.words[h.Lo&uint64(len(m.words)-1)] |= markOf(h)
	case len(entries) < markedFrom:
		m.words = nil
	default:
		n := 1
		for n*marksPerWord < len(entries)+len(entries)/2 {
			n *= 2
		}
		m.words, m.left = make([]uint64, n), n*marksPerWord-len(entries)
		for h := range entries {
			m.words[h.Lo&uint64(n-1)] |= markOf(h)
		}
	}
}

// at returns the entry for h, nil where there is none. Needs s.mu.
func (s *scopeLedger) at(h chainHash) *entry {
	if !s.marks.passes(h) {
		return nil
	}
	return s.entries[h]
}

// set makes e the entry for h. Needs s.mu.
func (s *scopeLedger) set(h chainHash, e *entry) {
	s.entries[h] = e
	s.marks.add(h, s.entries)
}
