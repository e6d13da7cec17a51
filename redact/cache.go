package redact

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Screen redacts the same texts again and again, as recall does with what it shows: rules may have been added since a
// text was stored. It remembers what it has seen by a seeded hash, so a text that was seen costs some 50 ns.
//
// Nearly all are clean: of the last 2 * MaxScreened of these, or nearly so many, it keeps the hash alone, and finds it without
// a lock. Of those that changed it keeps two generations of at most MaxScreened texts and MaxScreenedBytes each; when one is
// full the older one is dropped. What is forgotten is redacted anew. It is safe for concurrent use.
type Cache struct {
	redactor *Redactor
	seed     maphash.Seed
	clean    [2 * MaxCached / hashesPerSet]hashSet

	mu         sync.Mutex
	young, old map[uint64]string
	bytes      int // of the texts in young
}

// Bounds of one generation of a Screen.
const (
	MaxCached      = 16 << 10
	MaxCachedBytes = 2 << 20
)

// cleanWays hashes share a set, which is a line of the processor's cache.
const hashesPerSet = 8

// cleanSet holds hashes of clean texts, the newest first. Two that come at the same time may push out one another, or an older
// one twice, which costs no more than another look at the text.
type hashSet [hashesPerSet]atomic.Uint64

func (s *hashSet) has(key uint64) bool {
	for i := range s {
		if s[i].Load() == key {
			return true
		}
	}
	return false
}

func (s *hashSet) add(key uint64) {
	for i := len(s) - 1; i > 0; i-- {
		s[i].Store(s[i-1].Load())
	}
	s[0].Store(key)
}

// NewScreen makes a Screen over r.
func NewCache(r *Redactor) *Cache {
	return &Cache{redactor: r, seed: maphash.MakeSeed(), young: map[uint64]string{}}
}

// Text returns text redacted.
func (s *Cache) Redact(text string) string {
	key := max(maphash.String(s.seed, text), 1) // 0 is an empty place
	clean := &s.clean[key%uint64(len(s.clean))]
	if clean.has(key) {
		return text
	}
	s.mu.Lock()
	changed, seen := s.young[key]
	if !seen {
		changed, seen = s.old[key]
	}
	s.mu.Unlock()
	if seen {
		return changed
	}
	out, findings := s.redactor.Redact(text)
	if len(findings) == 0 {
		clean.add(key)
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= MaxCached || s.bytes+len(out) > MaxCachedBytes {
		s.young, s.old, s.bytes = map[uint64]string{}, s.young, 0
	}
	s.young[key] = out
	s.bytes += len(out)
	return out
}
