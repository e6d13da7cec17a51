package recall

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// A result does not depend on Into or its earlier content.
func TestInto(t *testing.T) {
	ms := []storage.Memory{
		said(1, "My daughter Mia is allergic to peanuts."), said(2, "Mia likes peanuts, says her brother."),
	}
	e, _ := newEngine(t, patient(), ms)
	ask := Request{Scope: alice, Newest: "Is Mia allergic to peanuts?", NoGate: true, TopK: 4}
	want, err := e.Recall(t.Context(), ask)
	if err != nil || len(want.Memories) == 0 {
		t.Fatalf("%d memories, error %v", len(want.Memories), err)
	}
	room := make([]Scored, 4)
	for i := range room {
		room[i] = Scored{Memory: storage.Memory{Text: "old", Tags: []string{"old"}, Provenance: storage.Provenance{Speaker: "old"}}, Parts: []Part{{}}}
	}
	ask.Into = room[:0]
	got, err := e.Recall(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Memories, got.Memories); diff != "" {
		t.Error(diff)
	}
	if &got.Memories[0] != &room[0] {
		t.Error("the memory of Into was not used")
	}
	ask.TopK, ask.Into = 5, room[:0]
	if got, err = e.Recall(t.Context(), ask); err != nil || &got.Memories[0] == &room[0] {
		t.Errorf("error %v; Into with a capacity of 4 was used for up to 5 memories", err)
	}
}
