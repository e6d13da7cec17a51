package redact

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Cache redacts the same texts again and again, as recall does with what it
// shows: rules may have changed since a text was stored. It remembers texts by
// a seeded hash, so a known text costs about 50 ns.
//
// Nearly all texts are clean. Of about the last 2 * MaxCached of these it keeps
// only the hash, which is found without a lock. Of changed texts it keeps two
// generations of at most MaxCached texts and MaxCachedBytes each; when one is
// full the older one is dropped. A forgotten text is redacted again. A Cache is
// safe for concurrent use.
type Cache struct {
	redactor *Redactor
	seed     maphash.Seed
	clean    [2 * MaxCached / hashesPerSet]hashSet

	mu         sync.Mutex
	young, old map[uint64]string
	bytes      int // of the texts in young
}

// Limits of one generation of a Cache.
const (
	MaxCached      = 16 << 10
	MaxCachedBytes = 2 << 20
)

// hashesPerSet hashes share a set, which is one cache line.
const hashesPerSet = 8

// hashSet holds hashes of clean texts, the newest first. Concurrent additions
// may lose one another or an older one, which only costs another scan of the
// text.
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

// NewCache returns a Cache over r.
func NewCache(r *Redactor) *Cache {
	return &Cache{redactor: r, seed: maphash.MakeSeed(), young: map[uint64]string{}}
}

// Redact returns text redacted.
func (s *Cache) Redact(text string) string {
	key := max(maphash.String(s.seed, text), 1) // 0 is an empty slot
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
