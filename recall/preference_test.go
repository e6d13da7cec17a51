package recall

import (
	"strings"
	"testing"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// Preferences rank first if the user asks for advice or work.
func TestPreferencesComeFirst(t *testing.T) {
	for _, wish := range []string{"I prefer the garden wild", "Always draw the garden as a table", "I hate pruning in the garden"} {
		ms := texts("garden garden fence", wish, "garden tools", "garden tools tools shed", "bread")
		if strings.Contains(wish, "hate") { // as the words do not tell, persist does
			ms[1].Kind, ms[1].Tags = storage.KindFact, []string{"preference"}
		}
		cfg := bare()
		cfg.Weights.Wish = 10
		e, _ := newEngine(t, cfg, ms)
		first := func(question string) string { return recallIDs(t, e, Request{Newest: question, NoGate: true})[0] }
		if got := first("What should I do about the garden?"); got != ms[1].ID {
			t.Errorf("%q: got %s first, want the wish", wish, got)
		}
		if got := first("What did I do about the garden?"); got != ms[0].ID {
			t.Errorf("%q: without a request for advice: got %s first, want the best match", wish, got)
		}
		ms[1].Kind = storage.KindResource
		e.Add(alice, ms[1].Provenance.Turn, ms[1:2])
		if got := first("What should I do about the garden?"); got != ms[0].ID {
			t.Errorf("%q: got %s first, but an instruction in a document is not a preference of the user", wish, got)
		}
	}
}

// A preference does not open the gate for a query that nothing matches.
func TestPreferencesDoNotOpenTheGate(t *testing.T) {
	said := texts("Always draw the garden as a table", "garden tools", "bread")
	relevance := func(wish float64) float64 {
		cfg := bare()
		cfg.Weights.Wish = wish
		e, _ := newEngine(t, cfg, said)
		res, err := e.Recall(t.Context(), Request{Scope: alice, Newest: "How should I tax my garden and insure my boat?"})
		if err != nil {
			t.Fatal(err)
		}
		return res.Relevance
	}
	if with, without := relevance(10), relevance(1); with > without || with == 0 {
		t.Errorf("got relevance %v with the factor, want no more than %v", with, without)
	}
}

// The product of the factors of a turnHeader is exactly that of its turn.
func TestHeaderFactors(t *testing.T) {
	ix := newIndex(1, text.NewAnalyzer(cachedWords))
	w := DefaultWeights()
	for in := range query.Intent(1 << 7) {
		q := &resolvedQuery{Query: query.Query{Intent: in}, speaker: uint16(in & 1)}
		var b headerFactors
		b.fill(ix, q, &w)
		for i := range signs {
			for speaker := range uint16(2) {
				n := turn{traits: text.Traits(i) & factorTraits, speaker: speaker, conv: -1}
				if i&int(opens) != 0 {
					n.prev = -1
				}
				if got, want := b.of(n.turnHeader()), (ranker{ix}).factors(&n, q, &w, nil); got != want {
					t.Fatalf("%b asked %b: got %v, want %v", i, in, got, want)
				}
			}
		}
	}
}
