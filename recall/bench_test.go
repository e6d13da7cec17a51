package recall

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// corpus returns n memories of the shared conversations and questions about
// them. Repetitions get fresh names, so that the vocabulary grows as real ones
// do.
func corpus(b testing.TB, n int) (ms []storage.Memory, questions []string) {
	return corpusOf(b, n, "locomo_a", "beam100k_a")
}

func corpusOf(b testing.TB, n int, sets ...string) (ms []storage.Memory, questions []string) {
	var all []storage.Memory
	for _, name := range sets {
		for _, c := range loadSet(b, name).Convs {
			m, _, _ := convMemories(c, name != "locomo_a")
			for i := range m {
				m[i].Provenance.Turn = fmt.Sprintf("%04x", len(all)) + m[i].Provenance.Turn
				m[i].Conversation = c.ID + m[i].Conversation
			}
			all = append(all, m...)
			for _, q := range c.Qs {
				questions = append(questions, q.Q)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	names := strings.Fields("Caroline Melanie John Maria James Deborah Jolene Evan Sam Craig")
	at := storage.Time(1_600_000_000_000)
	for round := 0; len(ms) < n; round++ {
		var old []string
		for _, name := range names {
			old = append(old, name, fmt.Sprintf("%s%c%c%c", name, 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26)))
		}
		fresh := strings.NewReplacer(old...)
		for i := range all {
			if len(ms) == n {
				break
			}
			m := all[i]
			at += 1000
			m.Text, m.EventTime = fresh.Replace(m.Text), at
			m.Conversation = fmt.Sprintf("%s-%d", m.Conversation, round)
			m.Provenance.Turn = fmt.Sprintf("%08x%s", round, m.Provenance.Turn)
			m.ID = fmt.Sprintf("%s-%d", m.Provenance.Turn, m.Provenance.Seq)
			ms = append(ms, m)
		}
	}
	return ms, questions
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRecall(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cfg := patient()
			cfg.MaxBytes, cfg.MaxScopeBytes = 4<<30, 4<<30
			ms, qs := corpus(b, n)
			var size int
			for _, m := range ms {
				size += len(m.Text)
			}
			e, _ := newEngine(b, cfg, ms)
			before := heap()
			start := time.Now()
			recallIDs(b, e, Request{Newest: qs[0]})
			load := time.Since(start)
			after := heap()
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				recallIDs(b, e, Request{Newest: qs[i%len(qs)]})
				i++
			}
			b.ReportMetric(float64(after-before)/float64(n), "heapB/memory")
			b.ReportMetric(float64(e.Stats().Bytes)/float64(n), "countedB/memory")
			b.ReportMetric(float64(size)/float64(n), "textB/memory")
			b.ReportMetric(float64(load.Milliseconds()), "load-ms")
			runtime.KeepAlive(ms)
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	cfg := patient()
	cfg.MaxBytes, cfg.MaxScopeBytes = 4<<30, 4<<30
	ms, qs := corpus(b, 10_000)
	e, _ := newEngine(b, cfg, ms[:5000])
	recallIDs(b, e, Request{Newest: qs[0]})
	i := 5000
	b.ReportAllocs()
	for b.Loop() {
		m := ms[i%len(ms)]
		e.Add(alice, m.Provenance.Turn, []storage.Memory{m})
		i++
	}
}

// BenchmarkRestore loads an index from its snapshot and from its memories,
// without the time that the store takes.
func BenchmarkRestore(b *testing.B) {
	ms, _ := corpusOf(b, 10_000, "locomo_a")
	src := newDigesting(b, ms)
	e := loadedEngine(b, src)
	e.snapshots.saveAll(b.Context(), always)
	parts := src.parts(b)
	size := 0
	for _, p := range parts {
		size += len(p.Value)
	}
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			var r blobReader
			first, err := r.open(parts[0].Value)
			second, err2 := r.open(parts[1].Value)
			ix, _, chunks, err3 := decode(first, second)
			for _, p := range parts[2:] {
				part, err := r.open(p.Value)
				if err != nil {
					b.Fatal(err)
				}
				if chunks, err = ix.arena.take(part, chunks); err != nil {
					b.Fatal(err)
				}
			}
			if err := errors.Join(err, err2, err3, ix.complete(sampleEvery)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(size)/10_000, "B/memory")
	})
	b.Run("records", func(b *testing.B) {
		for b.Loop() {
			other := New(patient(), &fakeSource{ms: map[storage.Scope][]storage.Memory{alice: ms}}, nil, nil)
			recallIDs(b, other, Request{Newest: "hello there"})
			other.Close()
		}
	})
}
