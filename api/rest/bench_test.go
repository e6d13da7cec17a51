package rest

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// benchMemories is how many memories the user of the benchmarks has: as many as
// one user may.
const benchMemories = 10_000

// filled returns a rig on the store of the program, with benchMemories of ada.
func filled(b *testing.B) *rig {
	b.Helper()
	cfg := badger.DefaultConfig()
	cfg.Dir, cfg.Key = b.TempDir(), bytes.Repeat([]byte{7}, badger.KeySize)
	store := badger.New(cfg, nil)
	if err := store.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	r := newRig(b, options{who: local(), store: store})
	subjects := []string{"boat", "cello", "garden", "recipe", "database", "holiday", "meeting", "bicycle", "novel", "concert"}
	var batch []storage.Memory
	for i := range benchMemories {
		batch = append(batch, storage.Memory{
			ID: fmt.Sprintf("m%05d", i), Kind: storage.KindFact, Trust: 1, Priority: .5, EventTime: storage.TimeOf(time.Now().Add(-time.Duration(i) * time.Minute)),
			Text: fmt.Sprintf("The %s number %d belongs to the %s of neighbour %d.", subjects[i%10], i, subjects[i/10%10], i%997),
		})
		if len(batch) == 500 {
			if err := store.Put(b.Context(), []storage.Write{{Scope: localScope("ada"), Memories: batch}}); err != nil {
				b.Fatal(err)
			}
			batch = nil
		}
	}
	return r
}

// measure sends a request again and again, and reports the 99th percentile.
func (r *rig) measure(b *testing.B, method string, target func(n int) string, body func(n int) any) {
	b.Helper()
	var took []time.Duration
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		var content any
		if body != nil {
			content = body(n)
		}
		req := r.newRequest(b, method, target(n), content)
		w := httptest.NewRecorder()
		began := time.Now()
		r.handler.ServeHTTP(w, req)
		if took = append(took, time.Since(began)); w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

func BenchmarkGet(b *testing.B) {
	filled(b).measure(b, "GET", func(n int) string { return fmt.Sprintf("/v1/memories/m%05d?user=ada", n%benchMemories) }, nil)
}

func BenchmarkList(b *testing.B) {
	filled(b).measure(b, "GET", func(int) string { return "/v1/memories?user=ada&limit=50" }, nil)
}

func BenchmarkSearch(b *testing.B) {
	r := filled(b)
	search := func(n int) any {
		return object{"query": fmt.Sprintf("Which garden belongs to neighbour %d?", n%997), "topK": 10}
	}
	r.send(b, "POST", "/v1/memories/search?user=ada", search(0)).want(b, 200) // loads the index
	r.measure(b, "POST", func(int) string { return "/v1/memories/search?user=ada" }, search)
}
