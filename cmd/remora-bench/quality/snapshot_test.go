package quality

import (
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// What the pipeline stores and the engine learns of it agree in the real store,
// so that a snapshot is written and used.
func TestSnapshotThroughTheStore(t *testing.T) {
	m, err := openMemory(t.Context(), patientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}()
	said := prose.New(1)
	turns := func(from, n int) (all []persist.Turn) {
		for i := from; i < from+n; i++ {
			all = append(all, persist.Turn{
				ID: turnID(i), Chain: turnID(i + 1_000_000), Scope: userScope(1), Conversation: fmt.Sprint("c", i/10), Source: "proxy",
				Messages: []persist.Message{{Role: storage.RoleUser, Text: said.Statement(), Time: madeUpStart + storage.Time(i)*1000}},
			})
		}
		return all
	}
	ask := func(e *recall.Engine) {
		t.Helper()
		if _, err := e.Recall(t.Context(), recall.Request{Scope: userScope(1), Newest: said.Question(said.Statement(), 200)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.add(t.Context(), turns(0, 1100)); err != nil {
		t.Fatal(err)
	}
	ask(m.engine)
	if err := m.add(t.Context(), turns(1090, 30)); err != nil { // some of them said before
		t.Fatal(err)
	}
	m.engine.Close()
	if got := m.engine.Stats(); got.Saved != 1 {
		t.Fatalf("got %+v, want one snapshot", got)
	}
	again := recall.New(patientConfig(), m.store, nil, nil)
	defer again.Close()
	ask(again)
	if got := again.Stats(); got.Restored != 1 || got.Rejected != 0 {
		t.Errorf("got %+v, want a load from the snapshot", got)
	}
}
