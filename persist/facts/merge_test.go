package facts

import (
	"fmt"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// BenchmarkMerge measures a merge into a scope that has ten thousand facts.
func BenchmarkMerge(b *testing.B) {
	s := NewSet(testScope)
	for i := range 10_000 {
		s.Load(&storage.Memory{ID: fmt.Sprint("f", i), Kind: storage.KindFact, Trust: 1, Text: fmt.Sprintf(`"My colleague number %d works on project %d in building %c."`, i, i*7, 'A'+i%26)})
	}
	cfg := Config{Max: 20_000, Retention: time.Hour, LongRetention: time.Hour, KeepLonger: 1, HalfLife: time.Hour}
	i := 0
	for b.Loop() {
		i++
		c := NewChanges(s, memoryStore{}, cfg)
		text := fmt.Sprintf("My neighbour %d works on a boat called Number%d.", i, i)
		extract.Statements(text, time.Unix(1e9, 0), func(said *extract.Candidate) {
			if _, err := c.Merge(b.Context(), said, Origin{Conversation: "c", Turn: fmt.Sprint("t", i)}); err != nil {
				b.Fatal(err)
			}
		})
		for _, m := range c.Written() {
			s.remove(s.byID[m.ID])
		}
	}
}
