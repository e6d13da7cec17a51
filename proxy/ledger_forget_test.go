package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	l.write(s, chainHash{Lo: 1}, &variant{conv: "now"}, "", -1)
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
	l.write(s, h, v, "", time.Minute)
	twin := l.write(s, h, &variant{conv: "d"}, "", time.Minute)
	l.clear(s, h, v)
	if twin == nil || twin.block.Text != "block" {
		t.Errorf("got %+v", twin)
	}
}
