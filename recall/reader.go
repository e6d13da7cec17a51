package recall

import (
	"slices"
	"sync"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// memoryReader analyses the texts of memories. It is safe for concurrent use.
type memoryReader struct {
	analyzer     *text.Analyzer
	analyses     sync.Pool // *text.Analysis
	fingerprints bool      // are needed, for snapshots
}

func newMemoryReader(analyzer *text.Analyzer, fingerprints bool) *memoryReader {
	return &memoryReader{analyzer: analyzer, fingerprints: fingerprints, analyses: sync.Pool{New: func() any { return new(text.Analysis) }}}
}

// tagPreference marks facts in which the user states a preference, in any
// language. The writer of facts sets it.
const tagPreference = "preference"

// passage analyses a memory, which the passage refers to. analyzer may be one
// that numbers terms; then the numbers are kept in numbers.
func (r *memoryReader) passage(analyzer *text.Analyzer, numbers *numberSpace, m *storage.Memory) passage {
	a := r.analyses.Get().(*text.Analysis)
	defer r.analyses.Put(a)
	analyzer.Analyze(m.Text, text.English, a)
	switch {
	case m.Kind == storage.KindResource: // a document's instructions are not the user's preferences
		a.Traits &^= text.HasPreference
	case slices.Contains(m.Tags, tagPreference):
		a.Traits |= text.HasPreference
	}
	p := passage{memory: m, traits: a.Traits, language: a.Language}
	if numbers != nil {
		p.numbers = numbers.copyOf(a.Numbers)
	} else {
		p.terms = slices.Clone(a.Terms)
	}
	return p
}

// change analyses the memories of an Add. It keeps copies of them.
func (r *memoryReader) change(turn string, ms []storage.Memory) change {
	c := change{turn: turn}
	for i := range ms {
		m := &ms[i]
		if recallable(m) {
			kept := *m
			p := r.passage(r.analyzer, nil, &kept)
			if r.fingerprints {
				p.print = m.Fingerprint()
			}
			c.passages = append(c.passages, p)
			continue
		}
		c.removed = append(c.removed, m.ID)
		if r.fingerprints {
			if c.unrecallable == nil {
				c.unrecallable = map[string]uint64{}
			}
			c.unrecallable[m.ID] = m.Fingerprint()
		}
	}
	return c
}

// numberSpace allocates the numbers of many texts in chunks.
type numberSpace struct{ free []uint32 }

// copyOf returns a copy of the numbers of a text, never nil.
func (s *numberSpace) copyOf(numbers []uint32) []uint32 {
	const chunk = 1 << 13
	if s.free == nil || cap(s.free)-len(s.free) < len(numbers) {
		s.free = make([]uint32, 0, max(chunk, len(numbers)))
	}
	from := len(s.free)
	s.free = append(s.free, numbers...)
	return s.free[from:len(s.free):len(s.free)]
}
