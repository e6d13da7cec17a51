package storagetest

import (
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

func turnReplay(t *testing.T, o Opened) {
	scope := scopeOf("u")
	w := turnOf(scope, "turn", 3, "said")
	for i := range w.Memories {
		w.Memories[i].CreatedAt, w.Memories[i].UpdatedAt = 0, 0 // left to the store, as real callers do
	}
	putWrites(t, o.Store, w)
	want := scanAll(t, o.Store, scope, storage.Query{})
	if len(want) != 3 {
		t.Fatalf("got %q, want 3 memories", ids(want))
	}
	putWrites(t, o.Store, w)
	putWrites(t, o.Store, w, w)
	diff(t, "after replays", scanAll(t, o.Store, scope, storage.Query{}), want)
	o = o.Reopen(t)
	putWrites(t, o.Store, w)
	diff(t, "after a restart and a replay", scanAll(t, o.Store, scope, storage.Query{}), want)
}

func turnReplacement(t *testing.T, o Opened) {
	scope, other := scopeOf("u"), scopeOf("other")
	put(t, o.Store, scope, simple("turn.9", 1), simple("bystander", 1))
	putWrites(t, o.Store, turnOf(scope, "neighbour", 2, "kept"), turnOf(other, "turn", 5, "kept"))
	bystanders := []string{"bystander", "turn.9", "neighbour.0", "neighbour.1"}
	version := map[string]uint64{}
	for i, n := range []int{3, 5, 2, 2, 0, 4} {
		text := fmt.Sprint("take ", i)
		putWrites(t, o.Store, turnOf(scope, "turn", n, text))
		var got []string
		for _, m := range scanAll(t, o.Store, scope, storage.Query{}) {
			if m.Text[:4] == "take" {
				got = append(got, m.ID)
				if m.Text[:len(text)] != text {
					t.Errorf("take %d: %s still reads %q", i, m.ID, m.Text)
				}
				version[m.ID]++
				if m.Version != version[m.ID] {
					t.Errorf("take %d: %s has version %d, want %d", i, m.ID, m.Version, version[m.ID])
				}
			}
		}
		var want []string
		for seq := range n {
			want = append(want, storage.TurnMemoryID("turn", seq))
		}
		for seq := n; seq < 10; seq++ {
			delete(version, storage.TurnMemoryID("turn", seq)) // the version of a removed passage starts again
		}
		diff(t, text, got, want)
		for _, id := range bystanders {
			read(t, o.Store, scope, id)
		}
	}
	if got := len(scanAll(t, o.Store, other, storage.Query{})); got != 5 {
		t.Errorf("the same turn in another scope: got %d memories, want 5", got)
	}

	// Several generations of one turn in one call.
	putWrites(t, o.Store, turnOf(scope, "turn", 6, "one"), turnOf(scope, "turn", 1, "two"))
	for seq := 1; seq < 6; seq++ {
		_, err := o.Store.Memory(t.Context(), scope, storage.TurnMemoryID("turn", seq))
		wantErr(t, "passage of the first generation", err, storage.ErrNotFound)
	}
}

// turnGap guards that a replacement finds old passages after one that was
// deleted separately.
func turnGap(t *testing.T, o Opened) {
	scope := scopeOf("u")
	putWrites(t, o.Store, turnOf(scope, "turn", 4, "said"))
	if _, err := o.Store.Delete(t.Context(), scope, "turn.1"); err != nil {
		t.Fatal(err)
	}
	putWrites(t, o.Store, turnOf(scope, "turn", 1, "said again"))
	diff(t, "ids", ids(scanAll(t, o.Store, scope, storage.Query{})), []string{"turn.0"})
}
