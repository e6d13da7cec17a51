package facts

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// emptyStore has no memories.
type emptyStore struct{}

func (emptyStore) Memory(context.Context, storage.Scope, string) (storage.Memory, error) {
	return storage.Memory{}, storage.ErrNotFound
}

// BenchmarkMerge measures a merge into a scope that has ten thousand facts.
func BenchmarkMerge(b *testing.B) {
	s := NewSet(storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"})
	for i := range 10_000 {
		s.Load(&storage.Memory{ID: fmt.Sprint("f", i), Kind: storage.KindFact, Trust: 1, Text: fmt.Sprintf(`"My colleague number %d works on project %d in building %c."`, i, i*7, 'A'+i%26)})
	}
	cfg := Config{Max: 20_000, Retention: time.Hour, LongRetention: time.Hour, KeepLonger: 1, HalfLife: time.Hour}
	i := 0
	for b.Loop() {
		i++
		c := NewChanges(s, emptyStore{}, cfg)
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
