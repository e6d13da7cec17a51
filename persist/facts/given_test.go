package facts

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// give merges a fact that somebody gives by hand and writes what changes.
func (m *merger) give(t *testing.T, given storage.Memory, turn string) (id string, out Outcome) {
	t.Helper()
	c := NewChanges(m.set, m.store, Config{Max: 100, Retention: time.Hour, LongRetention: 2 * time.Hour, KeepLonger: 0.8, HalfLife: time.Hour})
	id, out, err := c.MergeGiven(t.Context(), given, turn)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Written() {
		m.store[f.ID] = f
	}
	return id, out
}

func byHand(text string, at time.Time) storage.Memory {
	return storage.Memory{Scope: testScope, Kind: storage.KindFact, Text: text, Trust: 1, EventTime: storage.TimeOf(at)}
}

// TestMergeGiven gives facts by hand after an audit has made some, and checks
// what becomes of them and under which id they are stored.
func TestMergeGiven(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	audited := ID(testScope, "a", "I live in Porto.")
	for _, tt := range []struct {
		name  string
		given storage.Memory
		out   Outcome
		id    string // "" = of its own
		want  []string
	}{
		{"another", byHand("I have two cats.", now), Added, "", []string{"I have two cats.", `"I live in Porto."`}},
		{"the same", byHand("I live in Porto!", now), Reinforced, audited, []string{`"I live in Porto."`}},
		{"a contradiction", byHand("I live in Rome.", now), Superseded, "", []string{"I live in Rome."}},
		{"history", byHand("I live in Rome.", now.Add(-2*time.Hour)), Stale, "", []string{`"I live in Porto."`}},
		{"an instruction", storage.Memory{Scope: testScope, Kind: storage.KindFact, Text: "I live in Rome.", EventTime: storage.TimeOf(now)}, Quarantined, "", []string{`"I live in Porto."`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMerger()
			m.merge(t, "a", "I live in Porto.", now.Add(-time.Hour))
			id, out := m.give(t, tt.given, "by hand")
			if want := tt.id; out != tt.out || want != "" && id != want || want == "" && id != ID(testScope, "by hand", tt.given.Text) {
				t.Errorf("got outcome %d, id %s, want %d, %s", out, id, tt.out, want)
			}
			if m.store[id].ID != id {
				t.Errorf("%s is not stored", id)
			}
			var got []string
			for _, f := range m.store {
				if f.SupersededBy == "" && f.Trust > 0 {
					got = append(got, f.Text)
				}
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("current facts (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not given is filled in, and nothing else.
func TestMergeGivenFillsIn(t *testing.T) {
	m := newMerger()
	before := storage.TimeOf(time.Now())
	id, _ := m.give(t, storage.Memory{Scope: testScope, Kind: storage.KindFact, Text: "I live in Porto.", Trust: 1}, "x")
	after, got := storage.TimeOf(time.Now()), m.store[id]
	if got.EventTime < before || got.EventTime > after || got.ValidFrom != got.EventTime || got.ExpiresAt < before+storage.Time((2*time.Hour).Milliseconds()) || got.ExpiresAt > after+storage.Time((2*time.Hour).Milliseconds()) {
		t.Errorf("times: %+v", got)
	}
	if got.Priority != 0.8 || got.Confidence != firstConfidence || got.Provenance != (storage.Provenance{Role: storage.RoleUser}) {
		t.Errorf("got %+v", got)
	}
	full := storage.Memory{
		ID: "own", Scope: testScope, Kind: storage.KindFact, Text: "I have two cats.", Trust: 1, Priority: 0.5, Confidence: 0.25, Tags: []string{"home"},
		EventTime: 1000, ValidFrom: 900, ExpiresAt: 2000, Provenance: storage.Provenance{Role: storage.RoleAssistant, Turn: "t9"}, Source: "panel", Conversation: "c9",
	}
	id, out := m.give(t, full, "y")
	if diff := cmp.Diff(full, m.store[id]); diff != "" || id != "own" || out != Added {
		t.Errorf("id %s, outcome %d (-given +stored):\n%s", id, out, diff)
	}
	if _, out := m.give(t, full, "z"); out != Known {
		t.Errorf("its id again: outcome %d, want Known", out)
	}
}

// What was forgotten stays so if it is dated before, and can be said again now,
// even if the tombstone is of the future or of this very id.
func TestMergeGivenAfterForgetting(t *testing.T) {
	now := time.Now().Truncate(time.Millisecond)
	m := newMerger()
	m.merge(t, "a", "I live in Porto.", now.Add(-time.Hour))
	for id, f := range m.store {
		for _, r := range Tombstones(testScope, []storage.Memory{f}, storage.TimeOf(now.Add(time.Hour)), time.Hour) { // by a clock that was ahead
			m.set.LoadTombstone(&r)
		}
		m.set.remove(m.set.byID[id])
		delete(m.store, id)
	}
	own := byHand("I live in Porto.", now)
	own.ID = ID(testScope, "a", "I live in Porto.")
	for _, dated := range []storage.Memory{byHand("I live in Porto.", now), byHand("I'm living in Porto.", now.Add(-time.Minute)), own} {
		if id, out := m.give(t, dated, "x"); out != Forgotten || id != "" || len(m.store) > 0 {
			t.Errorf("%q, dated before: id %q, outcome %d, want Forgotten", dated.Text, id, out)
		}
	}
	own.EventTime = 0
	if id, out := m.give(t, own, "y"); out != Added || id != own.ID {
		t.Errorf("said again: id %q, outcome %d, want Added", id, out)
	}
}

// What is made of a private turn is private, and nothing else.
func TestFactsOfPrivateTurns(t *testing.T) {
	now := time.Now()
	m := newMerger()
	size := m.set.Size()
	m.set.LoadPrivate("b")
	if m.set.Size() <= size {
		t.Error("it takes no memory")
	}
	once := m.set.Size()
	if m.set.LoadPrivate("b"); m.set.Size() != once {
		t.Error("loaded twice, it is counted twice")
	}
	m.merge(t, "a", "I live in Porto.", now.Add(-time.Hour))
	m.merge(t, "b", "I have two cats.", now.Add(-time.Hour))
	for _, f := range m.store {
		if got, want := slices.Contains(f.Tags, storage.PrivateTag), f.Provenance.Turn == "b"; got != want {
			t.Errorf("%s is private: %t, want %t", f.Text, got, want)
		}
		if f.Tags[0] == storage.PrivateTag {
			t.Errorf("the first tag is the kind: %q", f.Tags)
		}
	}
}
