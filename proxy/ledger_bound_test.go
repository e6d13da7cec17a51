package proxy

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

// Users who come back bring much at a time, and none of them has been idle for a minute: together they keep the bound all the same, at
// the cost of what was used longest ago.
func TestManyWhoComeBack(t *testing.T) {
	const users, turns = 40, 400
	now := time.Now()
	clock := func() time.Time { return now }
	large, small := DefaultLedgerConfig(), DefaultLedgerConfig()
	small.MaxBytes = 1 << 20
	local := storagetest.Memory()
	text := strings.Repeat("what is remembered of it ", 40)
	write := func(l *ledger, s *scopeLedger, i int) {
		h := chainHash{Lo: uint64(i)}
		l.write(s, h, &variant{conv: "c", block: fence.Render(fmt.Sprint(i), []fence.Line{{ID: "m", Text: text}}, fence.Options{})}, "", -1, s.forgets)
		l.confirm(s, h, nil, nil)
	}
	before := newLedger(large, newLedgerStore(local, discarding), clock)
	for u := range users {
		s := before.of(userOf(u))
		<-s.loaded
		for i := range turns {
			now = now.Add(time.Millisecond)
			write(before, s, i)
		}
		if !before.store.flush(t.Context()) {
			t.Fatal("not written")
		}
	}

	l := newLedger(small, newLedgerStore(local, discarding), clock)
	busy := l.of(userOf(users)) // whose turns go on meanwhile
	<-busy.loaded
	for u := range users {
		s := l.of(userOf(u))
		<-s.loaded
		if s.err != nil || len(s.entries) == 0 {
			t.Fatalf("user %d: %d entries, %v", u, len(s.entries), s.err)
		}
		if s.entries[chainHash{Lo: turns - 1}] == nil {
			t.Errorf("user %d: the newest turn is not there", u)
		}
		now = now.Add(time.Millisecond)
		l.of(userOf(users))
		write(l, busy, u)
		if busy.entries[chainHash{Lo: uint64(u)}] == nil {
			t.Errorf("what was written last after user %d came is gone", u)
		}
		if l.bytes > small.MaxBytes {
			t.Fatalf("after user %d the ledger counts %d bytes, want at most %d", u, l.bytes, small.MaxBytes)
		}
	}
	counted := int64(0)
	for _, e := range l.scopes {
		s := e.Value.(*scopeLedger)
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
	cfg := DefaultLedgerConfig()
	cfg.MaxBytes = 1 << 20
	l := newLedger(cfg, newLedgerStore(storagetest.Memory(), discarding), time.Now)
	big := &entry{variants: []*variant{{block: fence.Block{Text: strings.Repeat("x", 64<<10)}}}}
	for i := range 100 {
		l.store.put(userOf(i), chainHash{Lo: uint64(i)}, big, 0)
	}
	if n := l.store.size; n < 1<<20 || n > 1<<20+65<<10 || l.store.dropped.Load() < 80 {
		t.Errorf("%d bytes wait and %d entries were dropped", n, l.store.dropped.Load())
	}
}
