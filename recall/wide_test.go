package recall

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// TestWide: what is kept wide of a common word is what its postings say, and
// counts for the same, whether the index grew turn by turn or was rebuilt.
func TestWide(t *testing.T) {
	const turns = 3*wideFrom + 100
	e, _ := newEngine(t, patient(), nil)
	ask := Request{Scope: alice, Newest: "Which garden number 2500 did we see at gate 77 of the orchard?", NoGate: true, TopK: MaxTopK, BudgetTokens: 1 << 30}
	if _, err := e.Recall(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	for i := range turns {
		text := fmt.Sprintf("We saw garden number %d.", i)
		switch {
		case i < wideFrom/4:
			text = fmt.Sprintf("The orchard has gate %d.", i)
		case i%3 == 1:
			text = fmt.Sprintf("No garden, garden or garden at gate %d?", i)
		}
		m := said(i+1, text)
		m.Conversation = ""
		e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
	}
	e.Forget(alice, said(2500, "").ID)
	check := func(what string, ix *index) {
		t.Helper()
		id, ok := ix.terms.find("garden")
		if !ok || ix.posts[id].wide == 0 {
			t.Fatalf("%s: the word is not kept wide", what)
		}
		if rare, ok := ix.terms.find("orchard"); !ok || ix.posts[rare].wide != 0 {
			t.Errorf("%s: a word of few turns is kept wide", what)
		}
		got := make([]frequency, len(ix.wide[ix.posts[id].wide-1]))
		for buf, now := ix.posts[id].buf, uint32(0); len(buf) > 0; {
			var f frequency
			buf, now, f = next(buf, now)
			got[now-1] = f
		}
		if d := cmp.Diff(got, ix.wide[ix.posts[id].wide-1]); d != "" {
			t.Errorf("%s: of its postings (-) not all is there (+): %s", what, d)
		}
	}
	tallied := func(ix *index, id uint32) []float32 {
		w := DefaultConfig().Weights
		fw, sc := ranker{ix}.fieldWeights(&resolvedQuery{}, &w), &scratch{}
		sc.grow(ix)
		sc.norms.fill(&fw)
		for n := 0; n < len(ix.turns); n += 7 {
			sc.found = append(sc.found, int32(n))
			sc.sums[n] = 1
		}
		ranker{ix}.tallyFound(&ix.posts[id], 1, 2, fw.k1, sc)
		return sc.sums
	}
	s := resting(t, e)
	check("grown", s.ix)
	s.ix = (compactor{s.ix}).rebuilt(turns, func(int32) bool { return false })
	check("rebuilt", s.ix)
	wide, err := e.Recall(t.Context(), ask)
	if err != nil || len(wide.Memories) < MaxTopK/2 {
		t.Fatalf("%d memories, error %v", len(wide.Memories), err)
	}
	garden, _ := s.ix.terms.find("garden")
	sums := tallied(s.ix, garden)
	for i := range s.ix.posts {
		s.ix.posts[i].wide = 0
	}
	if d := cmp.Diff(tallied(s.ix, garden), sums); d != "" {
		t.Errorf("sums from postings (-) and from what is kept wide (+): %s", d)
	}
	narrow, err := e.Recall(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	wide.Took, narrow.Took = 0, 0
	if d := cmp.Diff(narrow, wide); d != "" {
		t.Errorf("from postings (-) and from what is kept wide (+): %s", d)
	}
}
