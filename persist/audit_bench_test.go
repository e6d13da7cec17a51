package persist

import (
	"fmt"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// BenchmarkInspect measures what an audit computes: a full window of twelve messages, as people and models write them.
func BenchmarkInspect(b *testing.B) {
	var window []windowMessage
	for _, c := range readPlanted(b, "tuning.txt") {
		for _, turn := range c.turns {
			h := hearing(&turn, 12)
			window = append(window, h.messages...)
		}
	}
	p := New(DefaultConfig(), newFaulty(), newFaulty(), nil, redactor(b), nil, nil)
	i, bytes := 0, 0
	for b.Loop() {
		t := &talk{talkKey: talkKey{testScope, "c"}, summary: &Summary{}}
		for range 12 {
			t.window = append(t.window, window[i%len(window)])
			bytes += len(window[i%len(window)].text)
			i++
		}
		if _, err := p.inspect(b.Context(), t, p.newMerging(newDossier(testScope)), nil, time.Now); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/audit")
}

// BenchmarkMerge measures a merge with a scope that has ten thousand facts.
func BenchmarkMerge(b *testing.B) {
	store := newFaulty()
	p := New(DefaultConfig(), store, store, nil, nil, nil, nil)
	d := newDossier(testScope)
	for i := range 10_000 {
		d.add(factOf(&storage.Memory{ID: fmt.Sprint("f", i), Kind: storage.KindFact, Trust: 1, Text: fmt.Sprintf(`"My colleague number %d works on project %d in building %c."`, i, i*7, 'A'+i%26)}))
	}
	i := 0
	for b.Loop() {
		i++
		quote := fmt.Sprintf("My neighbour %d works on a boat called Number%d.", i, i)
		c := &candidate{quote: quote, words: words(quote), kind: markFact, at: time.Unix(1e9, 0)}
		g := p.newMerging(d)
		if _, err := g.merge(b.Context(), c, &windowMessage{turn: fmt.Sprint("t", i)}, "c"); err != nil {
			b.Fatal(err)
		}
		for _, id := range g.order {
			d.remove(d.facts[id])
		}
	}
}
