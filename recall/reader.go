package recall

import (
	"context"
	"errors"
	"fmt"
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

// answer is what a store returned.
type answer[T any] struct {
	value T
	err   error
}

// inBackground calls the store in a goroutine. The channel gets one answer. If
// the store panics, that is the error panicked.
func inBackground[T any](panicked error, call func() (T, error)) <-chan answer[T] {
	got := make(chan answer[T], 1)
	go func() {
		a := answer[T]{err: panicked}
		defer func() {
			_ = recover()
			got <- a
		}()
		value, err := call()
		a = answer[T]{value, err}
	}()
	return got
}

// pageReader reads all memories of a scope by pages. It requests the next page
// while the caller uses the last, so at most two are in memory.
type pageReader struct {
	ctx   context.Context
	from  Source
	scope storage.Scope
	query storage.Query               // of the next page
	asked <-chan answer[storage.Page] // nil if none is
}

var errStorePanic = fmt.Errorf("panic: %w", storage.ErrUnavailable)

func (r *pageReader) ask() {
	query := r.query
	r.asked = inBackground(errStorePanic, func() (storage.Page, error) { return r.from.Scan(r.ctx, r.scope, query) })
}

// next returns the next page. The last page has no Next.
func (r *pageReader) next() (storage.Page, error) {
	if r.asked == nil {
		r.ask()
	}
	p := <-r.asked
	r.asked = nil
	switch {
	case p.err == nil:
	case errors.Is(p.err, storage.ErrUnavailable):
		return storage.Page{}, fmt.Errorf("load index: %w", p.err)
	default:
		return storage.Page{}, fmt.Errorf("load index: %w", errors.Join(storage.ErrUnavailable, p.err))
	}
	if next := p.value.Next; next != "" {
		if next == r.query.After {
			return storage.Page{}, fmt.Errorf("load index: the store's cursor does not advance: %w", storage.ErrUnavailable)
		}
		r.query.After = next
		r.ask()
	}
	return p.value, nil
}

// leave waits for a page that was requested and is not needed.
func (r *pageReader) leave() {
	if r.asked != nil {
		<-r.asked
	}
}

// partReader reads the parts of a snapshot in order. It can request parts
// ahead, so that the store decrypts one while another is decoded.
type partReader struct {
	ctx   context.Context
	from  SnapshotStore
	scope storage.Scope
	blob  blobReader
	asked []<-chan answer[storage.Record] // from blob.next on
}

// partsAhead bounds the parts that are requested at a time.
const partsAhead = 2

// ask requests the part after those that are requested.
func (r *partReader) ask() {
	ref := storage.RecordRef{Bucket: storage.BucketIndex, Scope: r.scope, Key: partKey(int(r.blob.next) + len(r.asked))}
	r.asked = append(r.asked, inBackground(errBlob, func() (storage.Record, error) { return r.from.Record(r.ctx, ref) }))
}

// next returns the content of the next part.
func (r *partReader) next() ([]byte, error) {
	if len(r.asked) == 0 {
		r.ask()
	}
	p := <-r.asked[0]
	r.asked = r.asked[1:]
	switch {
	case errors.Is(p.err, storage.ErrDamaged), errors.Is(p.err, storage.ErrNotFound) && r.blob.next > 0:
		return nil, errBlob
	case p.err != nil:
		return nil, p.err
	}
	return r.blob.open(p.value.Value)
}

// leave waits for parts that were requested and are not needed.
func (r *partReader) leave() {
	for _, got := range r.asked {
		<-got
	}
}
