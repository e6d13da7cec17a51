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

// Conversations that go on bring much at a time. Together they keep the bound,
// and what has left memory is there again when its conversation comes back.
func TestManyConversationsComeBack(t *testing.T) {
	const users, turns = 40, 20
	now := time.Now()
	clock := func() time.Time { return now }
	small := DefaultConfig()
	small.MaxBytes = 1 << 20
	local := storagetest.Memory()
	text := strings.Repeat("what is remembered of it ", 40)
	l := New(small, local, discarding, clock)
	busy := groupOf(l, userOf(users)) // which goes on meanwhile
	write := func(s *Entries, i int) {
		h := Hash{Lo: uint64(i)}
		s.write(h, &variant{Injection: Injection{Conversation: "c", Block: fence.Render(fmt.Sprint(i), []fence.Line{{ID: "m", Text: text}}, fence.Options{})}}, "", -1, s.forgets)
		s.confirm(h, nil, nil)
	}
	for round := range 2 {
		for u := range users {
			s := groupOf(l, userOf(u))
			await(t, s)
			if len(s.entries) != round*turns {
				t.Fatalf("round %d, user %d: %d entries", round, u, len(s.entries))
			}
			for i := range turns {
				now = now.Add(time.Millisecond)
				write(s, round*turns+i)
			}
			if groupOf(l, userOf(users)) != busy {
				t.Fatal("the conversation that goes on has left memory")
			}
			write(busy, u)
			if l.bytes > small.MaxBytes {
				t.Fatalf("after user %d the ledger counts %d bytes, want at most %d", u, l.bytes, small.MaxBytes)
			}
		}
	}
	counted := int64(0)
	for _, e := range l.groups {
		s := e.Value.(*Entries)
		size := s.key.size()
		for _, e := range s.entries {
			size += e.size()
		}
		if size != s.bytes {
			t.Errorf("%s: %d bytes counted, want %d", s.key.scope.User, s.bytes, size)
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
		l.store.put(groupKey{scope: userOf(i)}, Hash{Lo: uint64(i)}, big, 0)
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
		s := groupOf(l, storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, i)})
		s.write(Hash{Lo: uint64(i + 1)}, &variant{Injection: Injection{Conversation: "c"}}, "c", 0, l.forgets.Load())
	}
	if held := int64(len(l.groups)) * 4 * int64(len(long)); l.bytes > cfg.MaxBytes || held > cfg.MaxBytes {
		t.Errorf("%d groups in %d bytes, of names alone %d; want at most %d", len(l.groups), l.bytes, held, cfg.MaxBytes)
	}
	newest := storage.Scope{Tenant: long, App: long, Project: long, User: fmt.Sprintf("%s%08d", long, 4999)}
	if len(l.inMemory(newest)) != 1 {
		t.Error("the newest went first")
	}
}

// TestLargeGroupIsCutDown: conversations that begin alike can't fill the memory.
func TestLargeGroupIsCutDown(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxBytes = 16 << 20
	now := time.Now()
	l := New(cfg, nil, discarding, func() time.Time { return now })
	s := groupOf(l, userOf(1))
	text := strings.Repeat("long ", 200)
	for i := range 1200 {
		now = now.Add(time.Second)
		s.write(Hash{Lo: uint64(i)}, &variant{Injection: Injection{Conversation: "c", Block: fence.Block{Text: text}}}, "", -1, s.forgets)
	}
	if l.bytes > cfg.maxGroup() || s.entries[Hash{Lo: 1199}] == nil || s.entries[Hash{Lo: 0}] != nil {
		t.Errorf("%d entries in %d bytes, want the newest within %d", len(s.entries), l.bytes, cfg.maxGroup())
	}
}
