package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// between is a store in which something else happens in the middle of a call.
type between struct {
	*storagetest.Mem
	reading func() // once the records are read, before the reader has them; once
	writing func() error
}

func (b *between) RecordsWithPrefix(ctx context.Context, bucket storage.Bucket, scope storage.Scope, prefix, after string, limit int) (storage.RecordPage, error) {
	page, err := b.Mem.RecordsWithPrefix(ctx, bucket, scope, prefix, after, limit)
	if then := b.reading; then != nil {
		b.reading = nil
		then()
	}
	return page, err
}

func (b *between) PutRecords(ctx context.Context, records []storage.Record) error {
	if then := b.writing; then != nil {
		b.writing = nil
		if err := then(); err != nil {
			return err
		}
	}
	return b.Mem.PutRecords(ctx, records)
}

var discarding = slog.New(slog.DiscardHandler)

// filled is a store that holds n segments of one scope's ledger, of an entry
// each.
func filled(t *testing.T, scope storage.Scope, n int) *between {
	t.Helper()
	b := &between{Mem: storagetest.Memory()}
	l := New(DefaultConfig(), b, discarding, time.Now)
	s := groupOf(l, scope)
	await(t, s)
	for i := range n {
		enter(l, s, i)
		if !l.store.flush(t.Context()) {
			t.Fatal("not written")
		}
	}
	return b
}

func enter(l *Ledger, s *Entries, i int) {
	h := Hash{Lo: uint64(i)}
	s.write(h, &variant{Injection: Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: fence.Block{Text: "a secret"}}}, "", -1, s.forgets)
	s.confirm(h, nil, nil)
}

// What is erased in the middle of a load comes back neither into memory nor
// into the store.
func TestErasedDuringLoad(t *testing.T) {
	t.Parallel()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	for name, tt := range map[string]struct {
		segments int
		before   bool // the load begins after the erasure
		late     bool // the writer had nothing to say any more
	}{
		"few":                    {segments: 1},
		"written while it reads": {segments: 1, before: true},
		"just read":              {segments: 1, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := filled(t, scope, tt.segments)
			l := New(DefaultConfig(), b, discarding, time.Now)
			switch {
			case tt.before:
				l.Erase(scope)
				b.reading = func() { l.store.flush(t.Context()) }
			case !tt.late:
				b.reading = func() { l.Erase(scope) }
			}
			var s *Entries
			if tt.late {
				s = newEntries(l, groupKey{scope, Hash{Hi: 1}})
				l.loads[scope] = scopeLoads{count: 1}
				s.erased = true
				s.load = newLoad()
				l.store.load(s, s.load)
			} else {
				s = groupOf(l, scope)
			}
			await(t, s)
			if tt.late {
				if len(l.store.pending) > 0 {
					t.Error("what was erased is to be written")
				}
				l.Erase(scope)
			}
			if len(s.entries) > 0 {
				t.Errorf("%d entries came back", len(s.entries))
			}
			l.store.flush(t.Context())
			if got := len(storedSegments(t, b)); got > 0 {
				t.Errorf("%d segments are left", got)
			}
		})
	}
}

// What an evicted copy of a scope has left to the writer is not missed where it
// is committed while the next copy loads, nor does it outlive its being
// forgotten.
func TestCommittedDuringLoad(t *testing.T) {
	t.Parallel()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	b := filled(t, scope, 1)
	l := New(DefaultConfig(), b, discarding, time.Now)
	s := groupOf(l, scope)
	await(t, s)
	h := Hash{Lo: 7}
	block := fence.Block{Text: "a secret\n", Spans: []fence.Span{{ID: "m7", Start: 0, End: 9}}}
	s.write(h, &variant{Injection: Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: block}}, "", -1, s.forgets)
	s.confirm(h, nil, nil)
	l.mu.Lock()
	l.evict(l.groups[s.key])
	l.mu.Unlock()
	b.reading = func() { l.store.flush(t.Context()) }
	s = groupOf(l, scope)
	await(t, s)
	if len(s.entries) != 2 {
		t.Fatalf("%d entries, want 2", len(s.entries))
	}
	l.Forget(scope, "m7")
	again := groupOf(New(DefaultConfig(), b, discarding, time.Now), scope)
	await(t, again)
	for _, v := range again.entries[h].variants {
		if v.Block.Text != "" {
			t.Errorf("after it was forgotten: %q", v.Block.Text)
		}
	}
}

// A request may be under way for longer than its scope stays in memory. What it
// enters late is not stored if the scope was erased meanwhile, and is if
// nothing happened.
func TestErasedAfterEviction(t *testing.T) {
	t.Parallel()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	for _, erased := range []bool{false, true} {
		b := &between{Mem: storagetest.Memory()}
		l := New(DefaultConfig(), b, discarding, time.Now)
		s := groupOf(l, scope)
		await(t, s)
		l.mu.Lock()
		l.evict(l.groups[s.key])
		l.mu.Unlock()
		if erased {
			l.Erase(scope)
		}
		enter(l, s, 1)
		l.store.flush(t.Context())
		if got := len(storedSegments(t, b)); (got > 0) == erased {
			t.Errorf("erased %v: %d segments", erased, got)
		}
	}
}

// Where a commit fails or panics while its scope is erased, nothing of it is
// written when the store is back.
func TestErasedDuringFailedCommit(t *testing.T) {
	t.Parallel()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	other := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "other"}
	for _, end := range []string{"refused", "panic"} {
		b := &between{Mem: storagetest.Memory()}
		l := New(DefaultConfig(), b, discarding, time.Now)
		for i, sc := range []storage.Scope{scope, other} {
			s := groupOf(l, sc)
			await(t, s)
			enter(l, s, i)
		}
		b.writing = func() error {
			l.store.erase(scope)
			enter(l, groupOf(l, other), 2)
			if end == "panic" {
				panic("store")
			}
			return errors.New("refused")
		}
		if l.store.flush(t.Context()) {
			t.Fatal("the commit did not fail")
		}
		b.writing = func() error {
			if l.store.busy(scope) {
				t.Errorf("%s: what was erased is written again", end)
			}
			return nil
		}
		if !l.store.flush(t.Context()) || l.store.size != 0 {
			t.Errorf("%s: %d bytes are left", end, l.store.size)
		}
		var users []string
		for _, r := range storedSegments(t, b) {
			users = append(users, r.Scope.User)
		}
		if !slices.Equal(users, []string{"other"}) {
			t.Errorf("%s: got segments of %q", end, users)
		}
		again := groupOf(New(DefaultConfig(), b, discarding, time.Now), other)
		if await(t, again); len(again.entries) != 2 {
			t.Errorf("%s: another's %d entries are left, want 2", end, len(again.entries))
		}
	}
}

// TestFlushesSideBySide: whoever flushes while another does waits for it, and
// then all that was put is stored.
func TestFlushesSideBySide(t *testing.T) {
	t.Parallel()
	b := &between{Mem: storagetest.Memory()}
	l := New(DefaultConfig(), b, discarding, time.Now)
	var flushing sync.WaitGroup
	for i := range 8 {
		scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: fmt.Sprint(i)}
		flushing.Go(func() {
			s := groupOf(l, scope)
			await(t, s)
			for j := range 20 {
				enter(l, s, j)
				if !l.store.flush(t.Context()) {
					t.Error("the store refused")
				}
				page, err := b.Mem.Records(t.Context(), storage.BucketLedger, scope, "", 50)
				if err != nil || len(page.Records) != j+1 {
					t.Errorf("%d segments after %d flushes: %v", len(page.Records), j+1, err)
				}
			}
		})
	}
	flushing.Wait()
}

// While a scope is held nothing of it reaches the store, and what others have
// does.
func TestHeldLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
		other := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "other"}
		b := &between{Mem: storagetest.Memory()}
		l := New(DefaultConfig(), b, discarding, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		var ended = make(chan struct{})
		go func() { defer close(ended); l.store.run(ctx) }()
		s := groupOf(l, scope)
		await(t, s)
		held := make(chan func())
		b.writing = func() error { // the hold waits for the commit that is under way
			go func() {
				release, err := l.store.pauseWrites(ctx, scope)
				if err != nil {
					t.Error(err)
				}
				held <- release
			}()
			time.Sleep(time.Second)
			select {
			case <-held:
				t.Error("held in the middle of a commit")
			default:
			}
			return nil
		}
		enter(l, s, 1)
		release := <-held
		if got := len(storedSegments(t, b)); got != 1 {
			t.Errorf("%d segments, want the one that was being written", got)
		}
		enter(l, s, 2)
		o := groupOf(l, other)
		await(t, o)
		enter(l, o, 3)
		time.Sleep(time.Minute)
		if got := len(storedSegments(t, b)); got != 2 {
			t.Errorf("%d segments while one scope is held, want 2", got)
		}
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if again, err := l.store.pauseWrites(short, scope); err != nil {
			t.Errorf("a second hold: %v", err)
		} else {
			again()
		}
		time.Sleep(time.Minute)
		if got := len(storedSegments(t, b)); got != 2 {
			t.Errorf("%d segments after one of two holds ended, want 2", got)
		}
		release()
		time.Sleep(time.Minute)
		if got := len(storedSegments(t, b)); got != 3 {
			t.Errorf("%d segments after the hold, want 3", got)
		}
		cancel()
		<-ended
	})
}

// Over its bound what waits takes no more room, not even for the scopes that it
// comes from.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	st := newStore(storagetest.Memory(), discarding, DefaultConfig())
	e := &entry{variants: []*variant{{Injection: Injection{Conversation: "c", Block: fence.Block{Text: string(make([]byte, 64<<10))}}}}}
	for i := range 1000 {
		st.put(groupKey{scope: storage.Scope{User: string(rune('a' + i))}}, Hash{}, e, 0)
	}
	if st.size > maxPending+65<<10 || len(st.pending) > 130 || st.dropped.Load() < 800 {
		t.Errorf("%d bytes of %d scopes, %d dropped", st.size, len(st.pending), st.dropped.Load())
	}
}

// TestSentAgain checks which turns are searched for when they are sent again:
// those for which nothing was found, and not those whose block was cleared or
// forgotten, also if that happens while the request is under way.
func TestSentAgain(t *testing.T) {
	h, found := Hash{Lo: 1}, fence.Render("k", []fence.Line{{ID: "m7", Text: "the code of the safe is 4711"}}, fence.Options{})
	req := &dialect.Request{Messages: []dialect.Message{{Role: dialect.RoleUser}}}
	for _, tt := range []struct {
		name   string
		block  fence.Block
		change func(s *Entries, v *variant)
		again  bool // searched for
	}{
		{"found", found, nil, false},
		{"found nothing", fence.Block{}, nil, true},
		{"cleared", found, func(s *Entries, v *variant) { s.clear(h, v) }, false},
		{"forgotten", found, func(s *Entries, _ *variant) { s.forget(map[string]struct{}{"m7": {}}) }, false},
	} {
		s := groupOf(New(DefaultConfig(), nil, discarding, time.Now), journalScope)
		walk := func() *Walk {
			w := &Walk{ledger: s.ledger, entries: s, Chain: []Hash{h}, Named: "c"}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.walk(w, req)
			return w
		}
		first := walk()
		if !first.IsNew() {
			t.Errorf("%s: not new at first", tt.name)
		}
		first.Enter(Injection{Conversation: "c", Block: tt.block}, false)
		var done sync.WaitGroup
		if tt.change != nil {
			under := walk()
			done.Go(func() { tt.change(s, first.written) }) // for the race detector
			under.IsNew()
			under.Enter(Injection{Conversation: "c", Block: found}, false)
		}
		done.Wait()
		w := walk()
		if w.IsNew() != tt.again {
			t.Errorf("%s: searched for %t", tt.name, !tt.again)
		}
		w.Enter(Injection{Conversation: "c", Block: found}, false)
		if added := w.written != nil; added != tt.again {
			t.Errorf("%s: entered again %t", tt.name, added)
		}
	}
}
