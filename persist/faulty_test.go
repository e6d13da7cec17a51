package persist

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// faulty is a store in memory whose calls can fail, before or after they have
// taken effect.
type faulty struct {
	*storagetest.Mem

	mu    sync.Mutex
	calls map[string]int
	// fault decides about the nth call (from 1) of a method: err fails it, and
	// after reports that it has taken effect.
	fault func(method string, n int) (err error, after bool)
	put   [][]storage.Write
	spool [][]storage.Record
}

func newFaulty() *faulty {
	return &faulty{Mem: storagetest.Memory(), calls: make(map[string]int)}
}

func (f *faulty) call(method string, do func() error) error {
	f.mu.Lock()
	f.calls[method]++
	n, fault := f.calls[method], f.fault
	f.mu.Unlock()
	if fault != nil {
		if err, after := fault(method, n); err != nil {
			if after {
				if err := do(); err != nil {
					return err
				}
			}
			return err
		}
	}
	return do()
}

func (f *faulty) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *faulty) Put(ctx context.Context, writes []storage.Write) error {
	f.mu.Lock()
	f.put = append(f.put, writes)
	f.mu.Unlock()
	return f.call("Put", func() error { return f.Mem.Put(ctx, writes) })
}

func (f *faulty) Memory(ctx context.Context, scope storage.Scope, id string) (m storage.Memory, err error) {
	err = f.call("Memory", func() error { m, err = f.Mem.Memory(ctx, scope, id); return err })
	return m, err
}

func (f *faulty) Probe(ctx context.Context, refs []storage.MemoryRef) (found []bool, err error) {
	err = f.call("Probe", func() error { found, err = f.Mem.Probe(ctx, refs); return err })
	return found, err
}

func (f *faulty) Record(ctx context.Context, ref storage.RecordRef) (r storage.Record, err error) {
	err = f.call("Record", func() error { r, err = f.Mem.Record(ctx, ref); return err })
	return r, err
}

func (f *faulty) PutRecords(ctx context.Context, records []storage.Record) error {
	f.mu.Lock()
	if records[0].Bucket == storage.BucketSpool && !strings.HasPrefix(records[0].Key, markPrefix) {
		f.spool = append(f.spool, records)
	}
	f.mu.Unlock()
	return f.call("PutRecords", func() error { return f.Mem.PutRecords(ctx, records) })
}

func (f *faulty) AllRecords(ctx context.Context, b storage.Bucket, after string, limit int) (p storage.RecordPage, err error) {
	err = f.call("AllRecords", func() error { p, err = f.Mem.AllRecords(ctx, b, after, limit); return err })
	return p, err
}

func (f *faulty) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	return f.call("DeleteRecords", func() error { return f.Mem.DeleteRecords(ctx, refs) })
}

// spooledRecords counts the turns left in the spool.
func (f *faulty) spooledRecords(t *testing.T) int {
	t.Helper()
	return spooledTurns(t, f.Mem)
}

func spooledTurns(t *testing.T, l storage.Local) int {
	t.Helper()
	page, err := l.AllRecords(context.Background(), storage.BucketSpool, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	turns := 0
	for _, r := range page.Records {
		if !strings.HasPrefix(r.Key, markPrefix) {
			turns++
		}
	}
	return turns
}

// indexed is an Indexer that keeps what it is given.
type indexed struct {
	mu    sync.Mutex
	turns map[string][]storage.Memory
	adds  []string
	panic string // turn at which it panics
}

func (x *indexed) Add(_ storage.Scope, turn string, ms []storage.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if turn == x.panic {
		panic("index: " + turn)
	}
	if x.turns == nil {
		x.turns = make(map[string][]storage.Memory)
	}
	x.turns[turn] = ms
	x.adds = append(x.adds, turn)
}

func (x *indexed) Forget(storage.Scope, ...string) {}

var testScope = storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}

func userScope(user int) storage.Scope {
	s := testScope
	s.User = fmt.Sprint("user", user)
	return s
}

// turnOf returns a turn of one question and its answer.
func turnOf(scope storage.Scope, id, question, answer string) Turn {
	return Turn{
		ID: id, Scope: scope, Conversation: "c1", Chain: "c0ffee", Model: "m", Finish: "stop", Source: "test",
		Messages: []Message{{Role: storage.RoleUser, Text: question}, {Role: storage.RoleAssistant, Text: answer}},
	}
}

func newRedactor(t testing.TB) *redact.Redactor {
	t.Helper()
	r, err := redact.New(redact.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// running is a pipeline whose Run is under way.
type running struct {
	*Pipeline
	stop func()
}

func start(t testing.TB, p *Pipeline) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return running{p, stop}
}

func mustEnqueue(t testing.TB, p *Pipeline, turns ...Turn) {
	t.Helper()
	for _, turn := range turns {
		if err := p.Enqueue(turn); err != nil {
			t.Fatalf("Enqueue %s: %v", turn.ID, err)
		}
	}
}

func mustFlush(t testing.TB, p *Pipeline) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Flush(ctx); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

// texts returns the texts of a scope, in order of time.
func texts(t testing.TB, s storage.Store, scope storage.Scope) []string {
	t.Helper()
	var out []string
	after := ""
	for {
		page, err := s.Scan(context.Background(), scope, storage.Query{After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Memories {
			out = append(out, m.Text)
		}
		if after = page.Next; after == "" {
			return out
		}
	}
}

// lastPut and lastSpool are locked, because stages write concurrently.
func (f *faulty) lastPut() []storage.Write {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.put[len(f.put)-1]
}

func (f *faulty) lastSpool() []storage.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spool[len(f.spool)-1]
}

// commits counts the writes of turns to the spool.
func (f *faulty) commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.spool)
}

func (f *faulty) Erase(ctx context.Context, scope storage.Scope) (receipt storage.Receipt, err error) {
	err = f.call("Erase", func() error { receipt, err = f.Mem.Erase(ctx, scope); return err })
	return receipt, err
}

func (f *faulty) Delete(ctx context.Context, scope storage.Scope, ids ...string) (n int, err error) {
	err = f.call("Delete", func() error { n, err = f.Mem.Delete(ctx, scope, ids...); return err })
	return n, err
}

// setFault has fault decide from now on.
func (f *faulty) setFault(fault func(method string, n int) (err error, after bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// clearFault ends all faults.
func (f *faulty) clearFault() { f.setFault(nil) }
