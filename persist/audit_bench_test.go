package persist

import (
	"fmt"
	"slices"
	"sync"
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

// stamped is an Indexer that notes when each turn became searchable.
type stamped struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (x *stamped) Add(_ storage.Scope, turn string, _ []storage.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at[turn] = time.Now()
}

func (x *stamped) Forget(storage.Scope, ...string) {}

// BenchmarkSearchable measures from Enqueue to searchable at 100 turns a second with audits on: run it with -benchtime 1000x.
func BenchmarkSearchable(b *testing.B) {
	store := openBadger(b, b.TempDir())
	defer store.Close()
	index := &stamped{at: map[string]time.Time{}}
	p := start(b, New(DefaultConfig(), store, store, index, redactor(b), nil, nil))
	var handed []time.Time
	for b.Loop() {
		i := len(handed)
		handed = append(handed, time.Now())
		turn := turnOf(userScope(i%64), fmt.Sprint("t", i), fmt.Sprintf("I have %d cats. How do I feed them all?", i+2), "Twice a day, with plenty of fresh water.")
		mustEnqueue(b, p.Pipeline, turn)
		time.Sleep(10 * time.Millisecond)
	}
	mustFlush(b, p.Pipeline)
	p.stop()
	took := make([]time.Duration, len(handed))
	for i, at := range handed {
		took[i] = index.at[fmt.Sprint("t", i)].Sub(at)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
	b.ReportMetric(p.Metrics().Audits.MeanMicros, "us/audit")
}
