package persist

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// BenchmarkInspect measures the computation of an audit: a full window of
// twelve messages, as people and models write them.
func BenchmarkInspect(b *testing.B) {
	var window []windowMessage
	for _, c := range readPlanted(b, "tuning.txt") {
		for _, turn := range c.turns {
			window = append(window, newAuditTurn(&turn, 12).messages...)
		}
	}
	p := New(DefaultConfig(), newFaulty(), newFaulty(), nil, newRedactor(b), nil, nil)
	i, bytes := 0, 0
	for b.Loop() {
		c := &conversation{conversationKey: conversationKey{testScope, "c"}, summary: &extract.Summary{}}
		for range 12 {
			c.window = append(c.window, window[i%len(window)])
			bytes += len(window[i%len(window)].Text)
			i++
		}
		if _, err := p.auditor.inspect(b.Context(), c, newChanges(p), nil, time.Now); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/audit")
}

// newChanges returns changes to an empty scope.
func newChanges(p *Pipeline) *scopeChanges {
	f := &scopeFacts{Set: facts.NewSet(testScope), scope: testScope}
	return &scopeChanges{facts.NewChanges(f.Set, p.store, p.cfg.Facts.Config), f}
}

// timedIndex is an Indexer that records when each turn became searchable.
type timedIndex struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (x *timedIndex) Add(_ storage.Scope, turn string, _ []storage.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at[turn] = time.Now()
}

func (x *timedIndex) Forget(storage.Scope, ...string) {}

// BenchmarkSearchable measures the time from Enqueue to searchable at 100 turns
// a second with audits on. Run it with -benchtime 1000x.
func BenchmarkSearchable(b *testing.B) {
	store := openBadger(b, b.TempDir())
	defer store.Close()
	index := &timedIndex{at: map[string]time.Time{}}
	p := start(b, New(DefaultConfig(), store, store, index, newRedactor(b), nil, nil))
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
