package redact

import (
	"hash/maphash"
	"sync"
)

// Screen redacts the same texts again and again, as recall does with what it shows: rules may have been added since a
// text was stored. It remembers what it has seen by a seeded hash, so a text that was seen costs some 100 ns.
//
// It keeps two generations of at most MaxScreened texts and MaxScreenedBytes of changed ones each; when one is full the
// older one is dropped. It is safe for concurrent use.
type Screen struct {
	redactor *Redactor
	seed     maphash.Seed

	mu         sync.Mutex
	young, old map[uint64]string // "" = nothing was found
	bytes      int               // of the texts in young
}

// Bounds of one generation of a Screen.
const (
	MaxScreened      = 16 << 10
	MaxScreenedBytes = 2 << 20
)

// NewScreen makes a Screen over r.
func NewScreen(r *Redactor) *Screen {
	return &Screen{redactor: r, seed: maphash.MakeSeed(), young: map[uint64]string{}}
}

// Text returns text redacted.
func (s *Screen) Text(text string) string {
	key := maphash.String(s.seed, text)
	s.mu.Lock()
	changed, seen := s.young[key]
	if !seen {
		changed, seen = s.old[key]
	}
	s.mu.Unlock()
	if seen && changed == "" {
		return text
	} else if seen {
		return changed
	}
	out, findings := s.redactor.Redact(text)
	if len(findings) > 0 {
		changed = out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.young) >= MaxScreened || s.bytes+len(changed) > MaxScreenedBytes {
		s.young, s.old, s.bytes = map[uint64]string{}, s.young, 0
	}
	s.young[key] = changed
	s.bytes += len(changed)
	return out
}
