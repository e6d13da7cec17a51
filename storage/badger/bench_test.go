package badger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func benchTurns(from, n int) []storage.Write {
	writes := make([]storage.Write, n)
	for i := range writes {
		id := fmt.Sprint("turn", from+i)
		m := memory(storage.TurnMemoryID(id, 0), strings.Repeat("some words that were said ", 20))
		m.EventTime += storage.Time(from + i)
		m.Provenance = storage.Provenance{Turn: id, Chain: strings.Repeat("0f", 16), Role: storage.RoleUser}
		writes[i] = storage.Write{Scope: scopeOf("u"), Turn: id, Memories: []storage.Memory{m}}
	}
	return writes
}

func BenchmarkPut(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint("turns=", n), func(b *testing.B) {
			s := mustOpen(b, testConfig(b))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := s.Put(b.Context(), benchTurns(i, n)); err != nil {
					b.Fatal(err)
				}
				i += n
			}
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}

func BenchmarkScan(b *testing.B) {
	s := mustOpen(b, testConfig(b))
	const n = 10_000
	for i := 0; i < n; i += 100 {
		if err := s.Put(b.Context(), benchTurns(i, 100)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		found := 0
		for q := (storage.Query{}); ; {
			page, err := s.Scan(b.Context(), scopeOf("u"), q)
			if err != nil {
				b.Fatal(err)
			}
			found += len(page.Memories)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if found != n {
			b.Fatalf("found %d, want %d", found, n)
		}
	}
}

func BenchmarkErase(b *testing.B) {
	s := mustOpen(b, testConfig(b))
	for i := 0; i < 5000; i += 100 { // other scopes, whose tables are rewritten
		if err := s.Put(b.Context(), benchTurns(i, 100)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		mustPut(b, s, scopeOf("gone"), memory("id", "text"))
		if _, err := s.Erase(b.Context(), scopeOf("gone")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPutRecords measures a flush of the ledger or of the spool.
func BenchmarkPutRecords(b *testing.B) {
	for _, bucket := range []storage.Bucket{storage.BucketLedger, storage.BucketSpool} {
		b.Run(string(bucket), func(b *testing.B) {
			s := mustOpen(b, testConfig(b))
			value := make([]byte, 600)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := storage.Record{Bucket: bucket, Scope: scopeOf("u"), Key: fmt.Sprintf("%016x", i), Value: value, ExpiresAt: 32503680000000}
				if err := s.PutRecords(b.Context(), []storage.Record{r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// unsealed replaces sealing: the same sizes, no work.
type unsealed struct{}

func (unsealed) NonceSize() int { return nonceSize }
func (unsealed) Overhead() int  { return tagSize }
func (unsealed) Seal(dst, _, plain, _ []byte) []byte {
	return append(append(dst, plain...), make([]byte, tagSize)...)
}

func (unsealed) Open(dst, _, sealed, _ []byte) ([]byte, error) {
	return append(dst, sealed[:len(sealed)-tagSize]...), nil
}

// BenchmarkSealing measures what sealing adds to a write. On a disk the syncs
// hide it; with TMPDIR on a file system in memory they do not.
func BenchmarkSealing(b *testing.B) {
	for _, name := range []string{"plain", "sealed"} {
		b.Run(name, func(b *testing.B) {
			s := mustOpen(b, testConfig(b))
			key, err := s.session.keys.findOrMake(scopeOf("u"))
			if err != nil {
				b.Fatal(err)
			}
			if name == "plain" {
				key.aead = unsealed{} // of the cached key
			}
			i := 0
			for b.Loop() {
				if err := s.Put(b.Context(), benchTurns(i, 64)); err != nil {
					b.Fatal(err)
				}
				i += 64
			}
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}

// BenchmarkOpenMillion measures the opening of a store of a million memories.
// Filling it takes a minute or more and about a GiB.
func BenchmarkOpenMillion(b *testing.B) {
	cfg := testConfig(b)
	s := mustOpen(b, cfg)
	const scopes, perScope, perWrite = 50, 20_000, 500
	for u := range scopes {
		for i := 0; i < perScope; i += perWrite {
			w := storage.Write{Scope: scopeOf(fmt.Sprint(u))}
			for j := i; j < i+perWrite; j++ {
				m := memory(fmt.Sprint("m", j), strings.Repeat("some words that were said ", 16))
				m.EventTime += storage.Time(j)
				w.Memories = append(w.Memories, m)
			}
			if err := s.Put(b.Context(), []storage.Write{w}); err != nil {
				b.Fatal(err)
			}
		}
	}
	mustClose(b, s)
	for b.Loop() {
		if err := s.Open(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		mustClose(b, s)
		b.StartTimer()
	}
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	if d, err := s.Digest(b.Context(), scopeOf("7")); err != nil || d.Memories != perScope {
		b.Errorf("Digest: got %+v, %v", d, err)
	}
	start := time.Now()
	if n, err := s.Reap(b.Context(), now()); err != nil || n != 0 {
		b.Errorf("Reap: got %d, %v", n, err)
	}
	b.ReportMetric(time.Since(start).Seconds(), "s/reap")
}
