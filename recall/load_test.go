package recall

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// A large load numbers the terms of an index as it reads. A text gets the same
// terms as one that is added, even if the index is rebuilt during the load,
// which renumbers them.
func TestLoadedTermsAreThoseOfTheText(t *testing.T) {
	for name, most := range map[string]int64{"all": 64 << 20, "the newest": 250 << 10} {
		t.Run(name, func(t *testing.T) {
			cfg := patient()
			cfg.MaxScopeBytes = most
			e, _ := newEngine(t, cfg, town(3*storage.MaxPage))
			recallIDs(t, e, Request{Newest: "Where is the quince?"})
			ix := resting(t, e).ix
			if few := ix.omitted > 0; few != (name != "all") {
				t.Fatalf("%d memories are left out of %d", ix.omitted, ix.liveMems)
			}
			for i := range ix.mems {
				said := ix.memory(int32(i), alice).Text
				var a text.Analysis
				e.analyzer.Analyze(said, text.English, &a)
				h := ix.head(int32(i))
				var got, want []string
				for at := 0; at < len(h.packed); {
					var id uint32
					id, at = nextTerm(h.packed, at)
					got = append(got, ix.spelled(id))
				}
				for _, term := range a.Terms { // of the assistant's each once, no marks
					if !h.assistant || term != text.EndOfStatement && term != text.EndOfQuestion && !slices.Contains(want, term) {
						want = append(want, term)
					}
				}
				if !slices.Equal(got, want) || h.signature != sign(a.Terms) {
					t.Fatalf("memory %d, %q: got %q signed %v, want %q signed %v", i, said, got, h.signature, want, sign(a.Terms))
				}
				if got := ix.passage(int32(i), 0).terms; !slices.Equal(got, a.Terms) {
					t.Fatalf("memory %d, %q: got %q back, want %q", i, said, got, a.Terms)
				}
			}
		})
	}
}

// A pending change that panics fails the load, not the process.
func TestLoadThatPanicsOverAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: texts("I live in Graz.")}, delay: time.Second}
		cfg := patient()
		e := New(cfg, src, nil, nil)
		defer e.Close()
		time.AfterFunc(time.Second/2, func() {
			s := scopeOf(e)
			e.apply(s, change{passages: []passage{{}}})
		})
		ask := Request{Scope: alice, Newest: "Where do I live?"}
		if _, err := e.Recall(t.Context(), ask); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("got %v, want unavailable", err)
		}
		if s := e.Stats(); s.Failures != 1 || s.Loads != 0 || isLoaded(e, alice) || s.Bytes != slotOverhead {
			t.Errorf("%+v, want a failed load", s)
		}
		time.Sleep(loadPause)
		if res, err := e.Recall(t.Context(), ask); err != nil || len(res.Memories) != 1 {
			t.Errorf("then: %+v, %v", res, err)
		}
	})
}
