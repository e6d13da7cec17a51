package ledger

import (
	"fmt"
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
	st := newStore(mem, discarding, maxPending)
	st.put(scope, Hash{Lo: 1}, full, storage.TimeOf(time.Now().Add(time.Hour)))
	if !st.flush(t.Context()) {
		t.Fatal("not written")
	}
	s := newEntries(New(DefaultConfig(), nil, discarding, time.Now), scope)
	s.write(Hash{Lo: 1}, &variant{Injection: Injection{Conversation: "now"}}, "", -1, s.forgets)
	st.load(s)
	<-s.loaded
	got, err := decodeEntry(appendEntry(nil, s.entries[Hash{Lo: 1}]))
	if err != nil || len(got.variants) != maxVariants || got.variants[maxVariants-1].Conversation != "now" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestDuplicateIsACopy: what a duplicate inserts must not change when the
// request that entered it is refused or its memory is forgotten.
func TestDuplicateIsACopy(t *testing.T) {
	l := New(DefaultConfig(), nil, discarding, time.Now)
	s := l.Scope(storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"})
	h := Hash{Lo: 1}
	v := &variant{Injection: Injection{Conversation: "c", Placement: dialect.BeforeUser, Block: fence.Block{Text: "block"}}}
	s.write(h, v, "c", time.Minute, s.forgets)
	duplicate, found, _ := s.write(h, &variant{Injection: Injection{Conversation: "c"}}, "c", time.Minute, s.forgets)
	s.clear(h, v)
	if duplicate != v || found.Block.Text != "block" {
		t.Errorf("got %+v", found)
	}
}

// What the memory bound took out of memory still stands in old segments. It is
// forgotten there, too, or a restart with more memory would replay it.
func TestForgottenBeyondMemory(t *testing.T) {
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	ids := map[string]struct{}{"m7": {}}
	said := "the code of the safe is 4711"
	small, large := DefaultConfig(), DefaultConfig()
	small.MaxBytes = 64 << 10
	write := func(l *Ledger, s *Entries, i int, id, text string) {
		h := Hash{Lo: uint64(i)}
		b := fence.Render(fmt.Sprint(i), []fence.Line{{ID: id, Text: text}}, fence.Options{})
		s.write(h, &variant{Injection: Injection{Conversation: "c", Block: b}}, "", -1, s.forgets)
		s.confirm(h, nil, nil)
	}
	for name, shrunk := range map[string]func(t *testing.T, local storage.Local) (*Ledger, *Entries){
		"while it grew": func(t *testing.T, local storage.Local) (*Ledger, *Entries) {
			now := time.Now()
			l := New(small, local, discarding, func() time.Time { now = now.Add(time.Second); return now })
			s := l.Scope(scope)
			<-s.loaded
			for i := range 200 {
				if i == 0 {
					write(l, s, i, "m7", said)
				} else {
					write(l, s, i, fmt.Sprint("other", i), "something else that is worth a line")
				}
				l.store.flush(t.Context())
			}
			return l, s
		},
		"while it was loaded": func(t *testing.T, local storage.Local) (*Ledger, *Entries) {
			now := time.Now()
			l := New(large, local, discarding, func() time.Time { now = now.Add(time.Second); return now })
			s := l.Scope(scope)
			<-s.loaded
			write(l, s, 0, "m7", said)
			for i := range 200 {
				write(l, s, i+1, fmt.Sprint("other", i), "something else that is worth a line")
			}
			l.store.flush(t.Context())
			l = New(small, local, discarding, time.Now)
			s = l.Scope(scope)
			<-s.loaded
			return l, s
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := storagetest.Memory()
			l, s := shrunk(t, local)
			if s.entries[Hash{}] != nil {
				t.Fatal("the entry is still in memory: the test shows nothing")
			}
			s.forget(ids)
			l.store.flush(t.Context())
			for _, r := range segments(t, local) {
				if plain, err := s2.Decode(nil, r.Value); err != nil || strings.Contains(string(plain), "4711") {
					t.Errorf("a segment still holds the forgotten line (%v)", err)
				}
			}
			again := New(large, local, discarding, time.Now).Scope(scope)
			<-again.loaded
			if again.err != nil || len(again.entries) == 0 {
				t.Errorf("after a restart: %d entries, %v", len(again.entries), again.err)
			}
		})
	}
}
