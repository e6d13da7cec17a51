package recall

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// Relevance does not depend on TopK, since the gate always reads the best five
// turns. Phrases are off, as the number of turns in which they are sought
// depends on it.
func TestRelevanceOfFewMemories(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("alpaca barley copper dolphin ember falcon granite harbor")
	for range 200 {
		var ms []storage.Memory
		for i := range 4 + r.IntN(8) { // so few that all are looked at
			var text strings.Builder
			for range 1 + r.IntN(6) {
				text.WriteString(words[r.IntN(len(words))] + " ")
			}
			for range r.IntN(3) * 40 { // the longer, the less its words count, but for how much of the query it holds
				fmt.Fprintf(&text, "x%d ", r.IntN(5000))
			}
			ms = append(ms, storage.Memory{ID: fmt.Sprint("f", i), Kind: storage.KindFact, Trust: 1, Text: text.String(), EventTime: storage.Time(1_700_000_000_000 + i)})
		}
		cfg := patient()
		cfg.Weights.Phrase = 0
		e, _ := newEngine(t, cfg, ms)
		req := Request{Scope: alice, Newest: "Where are the " + strings.Join(words[:2+r.IntN(5)], ", the ") + "?"}
		relevance := func(topK int) float64 {
			req.TopK = topK
			res, err := e.Recall(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			return res.Relevance
		}
		want := relevance(8)
		for topK := 1; topK < 8; topK++ {
			if got := relevance(topK); got != want {
				t.Fatalf("%q: relevance %v of the best %d, %v of the best 8", req.Newest, got, topK, want)
			}
		}
	}
}
