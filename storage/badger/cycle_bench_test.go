//go:build unix

package badger

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// cpuTime returns the processor time that this process has used, including the
// system's.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTurnCycle measures the processor time of all that the store does for
// a turn, from spool to memories: 64 users, batches as under load.
func BenchmarkTurnCycle(b *testing.B) {
	s := mustOpen(b, testConfig(b))
	text := strings.Repeat("some words that were said ", 40)
	value := make([]byte, 2300)
	rand.Read(value)
	const spooled, stored = 64, 256
	turns := 0
	started := cpuTime(b)
	for b.Loop() {
		var refs []storage.RecordRef
		var asked []storage.MemoryRef
		var writes []storage.Write
		for range stored / spooled {
			var records []storage.Record
			for range spooled {
				turns++
				id := fmt.Sprint("turn", turns)
				scope := scopeOf(fmt.Sprint(turns % 64))
				r := storage.Record{Bucket: storage.BucketSpool, Scope: scope, Key: id, Value: value}
				records, refs = append(records, r), append(refs, r.Ref())
				w := storage.Write{Scope: scope, Turn: id}
				for i := range 2 {
					m := memory(storage.TurnMemoryID(id, i), text)
					m.EventTime += storage.Time(turns)
					w.Memories = append(w.Memories, m)
				}
				writes = append(writes, w)
				asked = append(asked, storage.MemoryRef{Scope: scope, ID: storage.TurnMemoryID(id, 0)})
			}
			if err := s.PutRecords(b.Context(), records); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Probe(b.Context(), asked); err != nil {
			b.Fatal(err)
		}
		if err := s.Put(b.Context(), writes); err != nil {
			b.Fatal(err)
		}
		if err := s.DeleteRecords(b.Context(), refs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-started).Microseconds())/float64(turns), "cpu-us/turn")
	b.ReportMetric(float64(turns)/b.Elapsed().Seconds(), "turns/s")
	reportSize(b, s)
}

// BenchmarkLedgerFlush measures the processor time per KiB of what a busy
// ledger writes: volatile segments that do not compress.
func BenchmarkLedgerFlush(b *testing.B) {
	s := mustOpen(b, testConfig(b))
	const segments, size = 8, 128 << 10
	value := make([]byte, size)
	rand.Read(value)
	n := 0
	started := cpuTime(b)
	for b.Loop() {
		var records []storage.Record
		for range segments {
			n++
			records = append(records, storage.Record{
				Bucket: storage.BucketLedger, Scope: scopeOf("u"), Key: fmt.Sprintf("%016x", n), Value: value, ExpiresAt: 32503680000000,
			})
		}
		if err := s.PutRecords(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-started).Nanoseconds())/1000/float64(n*size>>10), "cpu-us/KiB")
	reportSize(b, s)
}

func reportSize(b *testing.B, s *Store) {
	var bytes int64
	_ = filepath.WalkDir(s.dir.data(), func(_ string, d fs.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil {
			bytes += info.Size()
		}
		return nil
	})
	b.ReportMetric(float64(bytes>>20), "MiB")
}
