package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

func userOf(i int) storage.Scope {
	return storage.Scope{Tenant: "t", App: "a", Project: "p", User: fmt.Sprint("u", i)}
}

// Users who come back bring much at a time, and none of them has been idle for
// a minute: together they keep the bound all the same, at the cost of what was
// used longest ago.
func TestManyWhoComeBack(t *testing.T) {
	const users, turns = 40, 400
	now := time.Now()
	clock := func() time.Time { return now }
	large, small := DefaultConfig(), DefaultConfig()
	small.MaxBytes = 1 << 20
	local := storagetest.Memory()
	text := strings.Repeat("what is remembered of it ", 40)
	write := func(l *Ledger, s *Entries, i int) {
		h := Hash{Lo: uint64(i)}
		s.write(h, &variant{Injection: Injection{Conversation: "c", Block: fence.Render(fmt.Sprint(i), []fence.Line{{ID: "m", Text: text}}, fence.Options{})}}, "", -1, s.forgets)
		s.confirm(h, nil, nil)
	}
	before := New(large, local, discarding, clock)
	for u := range users {
		s := before.Scope(userOf(u))
		<-s.loaded
		for i := range turns {
			now = now.Add(time.Millisecond)
			write(before, s, i)
		}
		if !before.store.flush(t.Context()) {
			t.Fatal("not written")
		}
	}

	l := New(small, local, discarding, clock)
	busy := l.Scope(userOf(users)) // whose turns go on meanwhile
	<-busy.loaded
	for u := range users {
		s := l.Scope(userOf(u))
		<-s.loaded
		if s.err != nil || len(s.entries) == 0 {
			t.Fatalf("user %d: %d entries, %v", u, len(s.entries), s.err)
		}
		if s.entries[Hash{Lo: turns - 1}] == nil {
			t.Errorf("user %d: the newest turn is not there", u)
		}
		now = now.Add(time.Millisecond)
		l.Scope(userOf(users))
		write(l, busy, u)
		if busy.entries[Hash{Lo: uint64(u)}] == nil {
			t.Errorf("what was written last after user %d came is gone", u)
		}
		if l.bytes > small.MaxBytes {
			t.Fatalf("after user %d the ledger counts %d bytes, want at most %d", u, l.bytes, small.MaxBytes)
		}
	}
	counted := int64(0)
	for _, e := range l.scopes {
		s := e.Value.(*Entries)
		size := scopeSize(s.scope)
		for _, e := range s.entries {
			size += e.size()
		}
		if size != s.bytes {
			t.Errorf("%s: %d bytes counted, want %d", s.scope.User, s.bytes, size)
		}
		counted += size
	}
	if counted != l.bytes {
		t.Errorf("%d bytes counted, want %d", l.bytes, counted)
	}
}

// Where the ledger is small, so is what waits for the store.
func TestPendingFitsTheLedger(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBytes = 1 << 20
	l := New(cfg, storagetest.Memory(), discarding, time.Now)
	big := &entry{variants: []*variant{{Injection: Injection{Block: fence.Block{Text: strings.Repeat("x", 64<<10)}}}}}
	for i := range 100 {
		l.store.put(userOf(i), Hash{Lo: uint64(i)}, big, 0)
	}
	if n := l.store.size; n < 1<<20 || n > 1<<20+65<<10 || l.store.dropped.Load() < 80 {
		t.Errorf("%d bytes wait and %d entries were dropped", n, l.store.dropped.Load())
	}
}

// Users that come once, in a crowd, leave nothing that could be cut down. The
// longest unused go, however lately they came.
func TestCrowdsStayWithinTheLedger(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBytes = 1 << 20
	now := time.Now()
	l := New(cfg, nil, discarding, func() time.Time { return now })
	long := strings.Repeat("x", storage.MaxScopePart-8)
	for i := range 5000 {
		now = now.Add(time.Millisecond)
		s := l.Scope(storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, i)})
		s.write(Hash{Lo: uint64(i + 1)}, &variant{Injection: Injection{Conversation: "c"}}, "c", 0, l.forgets.Load())
	}
	if held := int64(len(l.scopes)) * 4 * int64(len(long)); l.bytes > cfg.MaxBytes || held > cfg.MaxBytes {
		t.Errorf("%d scopes in %d bytes, of names alone %d; want at most %d", len(l.scopes), l.bytes, held, cfg.MaxBytes)
	}
	if _, kept := l.scopes[storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, 4999)}]; !kept {
		t.Error("the newest went first")
	}
}

// TestLargeScopeIsCutDown: one user alone can't fill the memory.
func TestLargeScopeIsCutDown(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBytes = 1 << 20
	now := time.Now()
	l := New(cfg, nil, discarding, func() time.Time { return now })
	s := l.Scope(userOf(1))
	text := strings.Repeat("long ", 200)
	for i := range 1200 {
		now = now.Add(time.Second)
		s.write(Hash{Lo: uint64(i)}, &variant{Injection: Injection{Conversation: "c", Block: fence.Block{Text: text}}}, "", -1, s.forgets)
	}
	if l.bytes > cfg.MaxBytes || s.entries[Hash{Lo: 1199}] == nil || s.entries[Hash{Lo: 0}] != nil {
		t.Errorf("%d entries in %d bytes, want the newest within %d", len(s.entries), l.bytes, cfg.MaxBytes)
	}
}
