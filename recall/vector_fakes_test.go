package recall

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall/vector"
	"github.com/remora-proxy/remora/storage"
)

// fakeLocal is a store in memory: fakeSource with records.
type fakeLocal struct {
	fakeSource
	rmu     sync.Mutex
	records map[storage.RecordRef]storage.Record
	onPut   func([]storage.Record) error // called before records are put
	puts    int
}

func newLocal(ms []storage.Memory) *fakeLocal {
	return &fakeLocal{fakeSource: fakeSource{ms: map[storage.Scope][]storage.Memory{alice: ms}}, records: map[storage.RecordRef]storage.Record{}}
}

func (f *fakeLocal) PutRecords(ctx context.Context, records []storage.Record) error {
	f.rmu.Lock()
	onPut := f.onPut
	f.rmu.Unlock()
	if onPut != nil {
		if err := onPut(records); err != nil {
			return err
		}
	}
	f.rmu.Lock()
	defer f.rmu.Unlock()
	f.puts++
	for _, r := range records {
		if err := r.Validate(); err != nil {
			return err
		}
		r.Value = slices.Clone(r.Value)
		f.records[r.Ref()] = r
	}
	return ctx.Err()
}

// beforePut sets a function that is called before records are put.
func (f *fakeLocal) beforePut(onPut func([]storage.Record) error) {
	f.rmu.Lock()
	defer f.rmu.Unlock()
	f.onPut = onPut
}

func (f *fakeLocal) Records(ctx context.Context, b storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	f.rmu.Lock()
	defer f.rmu.Unlock()
	var page storage.RecordPage
	for _, r := range slices.SortedFunc(maps.Values(f.records), func(a, b storage.Record) int { return strings.Compare(a.Key, b.Key) }) {
		if r.Bucket != b || r.Scope != scope || r.Key <= after {
			continue
		}
		if len(page.Records) == 3 { // small pages
			page.Next = page.Records[2].Key
			break
		}
		page.Records = append(page.Records, r)
	}
	return page, ctx.Err()
}

func (f *fakeLocal) AllRecords(context.Context, storage.Bucket, string, int) (storage.RecordPage, error) {
	panic("not asked for")
}

func (f *fakeLocal) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	f.rmu.Lock()
	defer f.rmu.Unlock()
	for _, r := range refs {
		delete(f.records, r)
	}
	return ctx.Err()
}

func (f *fakeLocal) InstallSecret(context.Context) ([]byte, error) { panic("not asked for") }

// stored counts the vectors in the records of a scope, by the stable hash of
// the memory's id.
func (f *fakeLocal) stored(t testing.TB, scope storage.Scope) map[uint64]int {
	t.Helper()
	f.rmu.Lock()
	defer f.rmu.Unlock()
	found := map[uint64]int{}
	for ref, r := range f.records {
		n, ok := vector.SegmentOf(ref.Key)
		if !ok || ref.Scope != scope {
			continue
		}
		s, err := vector.ReadSegment(n, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Len() {
			found[s.Mark(i).Memory]++
		}
	}
	return found
}

// settled waits until every memory of a scope has its vector and all records
// are written.
func settled(t testing.TB, e *Engine, scope storage.Scope) {
	t.Helper()
	for range 60_000 {
		if v, ok := e.cache.slots.Load(scope); ok {
			s := v.(*slot)
			s.mu.RLock()
			quiet := s.vec.attached.Load() && len(s.vec.untidy) == 0
			quiet = quiet && (s.vec.all == nil || s.vec.all.Wanting() == 0)
			s.mu.RUnlock()
			if quiet {
				e.vectors.mu.Lock()
				quiet = !e.vectors.working
				e.vectors.mu.Unlock()
			}
			if quiet {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("vectors did not settle within a minute")
}
