package ledger

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// An entry that grew while its scope was being loaded can be read back.
func TestEntryGrownDuringLoad(t *testing.T) {
	mem := storagetest.Memory()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	full := &entry{}
	for i := range maxVariants {
		full.variants = append(full.variants, &variant{Injection: Injection{Conversation: fmt.Sprint(i)}, used: time.Now(), created: time.Now()})
	}
	st := newStore(mem, discarding, DefaultConfig())
	st.put(groupKey{scope: scope}, Hash{Lo: 1}, full, storage.TimeOf(time.Now().Add(time.Hour)))
	if !st.flush(t.Context()) {
		t.Fatal("not written")
	}
	s := newEntries(New(DefaultConfig(), nil, discarding, time.Now), groupKey{scope: scope})
	s.write(Hash{Lo: 1}, &variant{Injection: Injection{Conversation: "now"}}, "", -1, s.forgets)
	s.load = newLoad()
	st.load(s, s.load)
	await(t, s)
	got, err := decodeEntry(appendEntry(nil, s.entries[Hash{Lo: 1}]))
	if err != nil || len(got.variants) != maxVariants || got.variants[maxVariants-1].Conversation != "now" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestDuplicateIsACopy: what a duplicate inserts must not change when the
// request that entered it is refused or its memory is forgotten.
func TestDuplicateIsACopy(t *testing.T) {
	l := New(DefaultConfig(), nil, discarding, time.Now)
	s := groupOf(l, storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"})
	h := Hash{Lo: 1}
	v := &variant{Injection: Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: fence.Block{Text: "block"}}}
	s.write(h, v, "c", time.Minute, s.forgets)
	duplicate, found, _ := s.write(h, &variant{Injection: Injection{Conversation: "c"}}, "c", time.Minute, s.forgets)
	s.clear(h, v)
	if duplicate != v || found.Block.Text != "block" {
		t.Errorf("got %+v", found)
	}
}

// What is not in memory any more still stands in the store. It is forgotten
// there, too, or the conversation would replay it when it comes back.
func TestForgottenBeyondMemory(t *testing.T) {
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	said := "the code of the safe is 4711"
	local := storagetest.Memory()
	write := func(l *Ledger, s *Entries, i int, id, text string) {
		h := Hash{Lo: uint64(i)}
		b := fence.Render(fmt.Sprint(i), []fence.Line{{ID: id, Text: text}}, fence.Options{})
		s.write(h, &variant{Injection: Injection{Conversation: "c", Block: b}}, "", -1, s.forgets)
		s.confirm(h, nil, nil)
	}
	l := New(DefaultConfig(), local, discarding, time.Now)
	if err := l.OpenJournal(t.TempDir(), []byte("secret")); err != nil {
		t.Fatal(err)
	}
	cold, pending := groupOf(l, scope), l.group(groupKey{scope, Hash{Hi: 2}})
	await(t, cold)
	write(l, cold, 0, "m7", said)
	write(l, cold, 1, "other", "something else that is worth a line")
	l.store.flush(t.Context())
	write(l, pending, 2, "m7", said)
	l.mu.Lock()
	l.evict(l.groups[cold.key])
	l.evict(l.groups[pending.key])
	l.mu.Unlock()
	l.Forget(scope, "m7")
	if n := len(storedSegments(t, local)); n == 0 {
		t.Fatal("nothing is stored")
	}
	for _, r := range storedSegments(t, local) {
		if plain, err := s2.Decode(nil, r.Value); err != nil || strings.Contains(string(plain), "4711") {
			t.Errorf("a segment still holds the forgotten line (%v)", err)
		}
	}
	if files, err := os.ReadDir(l.store.journal.dir); err != nil || len(files) > 0 {
		t.Errorf("the journal still has %d files (%v)", len(files), err)
	}
	again := groupOf(New(DefaultConfig(), local, discarding, time.Now), scope)
	if await(t, again); len(again.entries) != 2 {
		t.Errorf("after a restart: %d entries", len(again.entries))
	}
}

// While the store is away what was forgotten is not read from it either.
func TestForgottenWhileTheStoreIsAway(t *testing.T) {
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	b := &between{Mem: storagetest.Memory()}
	l := New(DefaultConfig(), b, discarding, time.Now)
	s := groupOf(l, scope)
	await(t, s)
	h := Hash{Lo: 7}
	block := fence.Block{Text: "a secret\n", Spans: []fence.Span{{ID: "m7", Start: 0, End: 9}}}
	s.write(h, &variant{Injection: Injection{Conversation: "c", Block: block}}, "", -1, s.forgets)
	s.confirm(h, nil, nil)
	l.store.flush(t.Context())
	b.writing = func() error { return storage.ErrUnavailable }
	l.Forget(scope, "m7")
	if b.writing != nil {
		t.Fatal("the store was not asked: the test shows nothing")
	}
	l.mu.Lock()
	l.evict(l.groups[s.key])
	l.mu.Unlock()
	s = groupOf(l, scope)
	if await(t, s); len(s.entries) != 1 || s.entries[h].variants[0].Block.Text != "" {
		t.Errorf("got %d entries, want the one without its block", len(s.entries))
	}
	l.store.flush(t.Context())
	again := groupOf(New(DefaultConfig(), b, discarding, time.Now), scope)
	if await(t, again); len(again.entries) != 1 || again.entries[h].variants[0].Block.Text != "" {
		t.Errorf("after a restart: %d entries, want the one without its block", len(again.entries))
	}
}
