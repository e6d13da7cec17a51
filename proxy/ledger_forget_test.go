package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// What is forgotten while the ledger can't be read does not come back when it can.
func TestForgottenDuringAnOutage(t *testing.T) {
	r := newRig(t)
	r.recall.set("drop")
	r.post(chat("user: q"))
	r.h.store.flush(t.Context())
	scope := r.recall.asked()[0].Scope
	again := restart(r)
	mem := r.local.(*storagetest.Mem)
	mem.Fail(true)
	again.h.Forget(scope, "m0-drop")
	mem.Fail(false)
	again.h.store.flush(t.Context())
	again.post(chat("user: q", "assistant: fine", "user: next"))
	want := []string{"user: q", "assistant: fine", "user: next"}
	if diff := cmp.Diff(want, roles(t, again.one().body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An entry that grew while its scope was being loaded can be read back.
func TestEntryGrownDuringLoad(t *testing.T) {
	mem := storagetest.Memory()
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	full := &entry{}
	for i := range maxVariants {
		full.variants = append(full.variants, &variant{conv: fmt.Sprint(i), used: time.Now(), created: time.Now()})
	}
	st := newLedgerStore(mem, nil)
	st.put(scope, chainHash{Lo: 1}, full, storage.TimeOf(time.Now().Add(time.Hour)))
	if !st.flush(t.Context()) {
		t.Fatal("not written")
	}
	l := newLedger(DefaultLedgerConfig(), nil, time.Now)
	s := &scopeLedger{scope: scope, loaded: make(chan struct{}), entries: map[chainHash]*entry{}}
	l.write(s, chainHash{Lo: 1}, &variant{conv: "now"}, "", -1, s.forgets)
	st.load(l, s)
	<-s.loaded
	got, err := decodeEntry(appendEntry(nil, s.entries[chainHash{Lo: 1}]))
	if err != nil || len(got.variants) != maxVariants || got.variants[maxVariants-1].conv != "now" {
		t.Errorf("got %v, %v", got, err)
	}
}

// The entry that another request wrote is read while that request may be refused, or its memory forgotten.
func TestTwinIsACopy(t *testing.T) {
	l := newLedger(DefaultLedgerConfig(), nil, time.Now)
	s := l.of(storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"})
	h := chainHash{Lo: 1}
	v := &variant{conv: "c", placement: dialect.BeforeUser, block: fence.Block{Text: "block"}}
	l.write(s, h, v, "c", time.Minute, s.forgets)
	twin, _ := l.write(s, h, &variant{conv: "c"}, "c", time.Minute, s.forgets)
	l.clear(s, h, v)
	if twin == nil || twin.block.Text != "block" {
		t.Errorf("got %+v", twin)
	}
}

// What the memory bound took out of memory still stands in old segments. It is forgotten there, too, or a restart with
// more memory would replay it.
func TestForgottenBeyondMemory(t *testing.T) {
	scope := storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}
	ids := map[string]struct{}{"m7": {}}
	said := "the code of the safe is 4711"
	small, large := DefaultLedgerConfig(), DefaultLedgerConfig()
	small.MaxBytes = 64 << 10
	write := func(l *ledger, s *scopeLedger, i int, id, text string) {
		h := chainHash{Lo: uint64(i)}
		b := fence.Render(fmt.Sprint(i), []fence.Line{{ID: id, Text: text}}, fence.Options{})
		l.write(s, h, &variant{conv: "c", block: b}, "", -1, s.forgets)
		l.confirm(s, h, nil, nil)
	}
	for name, shrunk := range map[string]func(t *testing.T, local storage.Local) (*ledger, *scopeLedger){
		"while it grew": func(t *testing.T, local storage.Local) (*ledger, *scopeLedger) {
			now := time.Now()
			l := newLedger(small, newLedgerStore(local, nil), func() time.Time { now = now.Add(time.Second); return now })
			s := l.of(scope)
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
		"while it was loaded": func(t *testing.T, local storage.Local) (*ledger, *scopeLedger) {
			now := time.Now()
			l := newLedger(large, newLedgerStore(local, nil), func() time.Time { now = now.Add(time.Second); return now })
			s := l.of(scope)
			<-s.loaded
			write(l, s, 0, "m7", said)
			for i := range 200 {
				write(l, s, i+1, fmt.Sprint("other", i), "something else that is worth a line")
			}
			l.store.flush(t.Context())
			l = newLedger(small, newLedgerStore(local, nil), time.Now)
			s = l.of(scope)
			<-s.loaded
			return l, s
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := storagetest.Memory()
			l, s := shrunk(t, local)
			if s.entries[chainHash{}] != nil {
				t.Fatal("the entry is still in memory: the test shows nothing")
			}
			l.forget(s, ids)
			l.store.flush(t.Context())
			for _, r := range segments(t, local) {
				if plain, err := s2.Decode(nil, r.Value); err != nil || strings.Contains(string(plain), "4711") {
					t.Errorf("a segment still holds the forgotten line (%v)", err)
				}
			}
			again := newLedger(large, newLedgerStore(local, nil), time.Now).of(scope)
			<-again.loaded
			if again.err != nil || len(again.entries) == 0 {
				t.Errorf("after a restart: %d entries, %v", len(again.entries), again.err)
			}
		})
	}
}
