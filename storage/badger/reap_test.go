package badger

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

const endOfTime = storage.Time(32503680000000)

// tableBytes returns the size of all tables.
func tableBytes(t *testing.T, s *Store) (n int64) {
	t.Helper()
	err := filepath.WalkDir(s.dir.data(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := d.Info()
		n += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sealedBytes returns the stored value of a memory, to be searched for in the
// files.
func sealedBytes(t *testing.T, s *Store, scope storage.Scope, id string) []byte {
	t.Helper()
	keys := s.session.keys
	h := keys.scope(scope)
	var value []byte
	err := s.session.db.View(func(txn *badgerdb.Txn) error {
		pointer := mustGet(t, txn, nameKey(levelIndex, h, keys.id(h, id)))
		value = mustGet(t, txn, memoryKey(h, parseTime(pointer), keys.id(h, id)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// fillExpiring writes n memories of some KiB with incompressible texts, every
// other one of which expires.
func fillExpiring(t *testing.T, s *Store, scope storage.Scope, n int) {
	t.Helper()
	for i := 0; i < n; i += 100 {
		w := storage.Write{Scope: scope}
		for j := i; j < i+100; j++ {
			text := make([]byte, 4<<10)
			rand.Read(text)
			m := memory(fmt.Sprint("m", j), string(text))
			if j%2 == 0 {
				m.ExpiresAt = endOfTime
			}
			w.Memories = append(w.Memories, m)
		}
		if err := s.Put(t.Context(), []storage.Write{w}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReapReclaimsSpace guards that no byte of expired memories is left, and
// that their space is reclaimed.
func TestReapReclaimsSpace(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	fillExpiring(t, s, scope, 6000) // 24 MiB, half of it expires: more than maxGarbage
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, kept := sealedBytes(t, s, scope, "m2"), sealedBytes(t, s, scope, "m3")
	before := tableBytes(t, s)
	if n, err := s.Reap(t.Context(), endOfTime); err != nil || n != 3000 {
		t.Fatalf("Reap: got %d, %v, want 3000", n, err)
	}
	after := tableBytes(t, s)
	t.Logf("tables: %d KiB before, %d KiB after", before>>10, after>>10)
	if after > before*6/10 {
		t.Errorf("tables of %d bytes are %d bytes after half was reaped", before, after)
	}
	if n := occurrences(t, s.cfg.Dir, gone[20:]); n != 0 {
		t.Errorf("sealed bytes of a reaped memory occur %d times in the files", n)
	}
	if n := occurrences(t, s.cfg.Dir, kept[20:]); n != 1 {
		t.Errorf("sealed bytes of a memory that is left occur %d times in the files, want 1", n)
	}
	if v, err := storage.Verify(t.Context(), s, scope); err != nil || !v.Whole() || v.Memories != 3000 {
		t.Errorf("Verify: got %+v, %v", v, err)
	}
}

// TestDeletedBytesGo guards that the bytes of one deleted memory are gone
// within a day, counted across restarts.
func TestDeletedBytesGo(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	mustPut(t, s, scope, memory("gone", string(bytes.Repeat([]byte("gone "), 100))), memory("kept", "kept"))
	sealed := sealedBytes(t, s, scope, "gone")
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), scope, "gone"); err != nil {
		t.Fatal(err)
	}
	present := func() int { return occurrences(t, s.cfg.Dir, sealed[20:]) }
	reap := func(after storage.Time) {
		t.Helper()
		if _, err := s.Reap(t.Context(), now()+after); err != nil {
			t.Fatal(err)
		}
	}
	reap(0)
	if present() == 0 {
		t.Error("gone immediately: the test proves nothing")
	}
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	reap(storage.Time(maxGarbageAge.Milliseconds()) - 60_000)
	if present() == 0 {
		t.Error("gone too soon: the test proves nothing")
	}
	reap(storage.Time(maxGarbageAge.Milliseconds()))
	if n := present(); n != 0 {
		t.Errorf("sealed bytes of a deleted memory occur %d times in the files", n)
	}
	if s.session.garbage != (garbage{}) {
		t.Errorf("garbage: got %+v, want none", s.session.garbage)
	}
	if m, err := s.Memory(t.Context(), scope, "kept"); err != nil || m.Text != "kept" {
		t.Errorf("Memory: got %q, %v", m.Text, err)
	}
}

// TestCompactionDuringOthers guards that erasures, writes and backups continue
// during a compaction, and that the store holds everything afterwards.
func TestCompactionDuringOthers(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	fillExpiring(t, s, scopeOf("kept"), 600)
	mustPut(t, s, scopeOf("kept"), memory("changing", "not yet")) // even if the others do little
	stop := make(chan struct{})
	var others sync.WaitGroup
	loop := func(do func(i int) error) {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	loop(func(i int) error {
		w := storage.Write{Scope: scopeOf("gone"), Memories: []storage.Memory{memory("m", fmt.Sprint(i))}}
		if err := s.Put(t.Context(), []storage.Write{w}); err != nil {
			return err
		}
		_, err := s.Erase(t.Context(), scopeOf("gone"))
		return err
	})
	loop(func(i int) error {
		w := storage.Write{Scope: scopeOf("kept"), Memories: []storage.Memory{memory("changing", fmt.Sprint(i))}}
		return s.Put(t.Context(), []storage.Write{w})
	})
	loop(func(int) error { return s.Backup(t.Context(), io.Discard) })
	for range 25 {
		if _, err := s.Reap(t.Context(), now()+2*storage.Time(maxGarbageAge.Milliseconds())); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	others.Wait()
	for range 2 {
		if v, err := storage.Verify(t.Context(), s, scopeOf("kept")); err != nil || !v.Whole() || v.Memories != 601 {
			t.Errorf("Verify: got %+v, %v, want 601 memories", v, err)
		}
		mustClose(t, s)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReplacedBytesGo guards that the old content of a changed memory is
// compacted away, and that a compaction is repeated if a reader may have
// prevented it.
func TestReplacedBytesGo(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	mustPut(t, s, scope, memory("m", "what it said before"))
	before := sealedBytes(t, s, scope, "m")
	reader := s.session.db.NewTransaction(false)
	mustPut(t, s, scope, memory("m", "what it says now"))
	aDay := storage.Time(maxGarbageAge.Milliseconds()) + 60_000
	if _, err := s.Reap(t.Context(), now()+aDay); err != nil {
		t.Fatal(err)
	}
	if occurrences(t, s.cfg.Dir, before[20:]) == 0 {
		t.Error("gone while there is a reader: the test proves nothing")
	}
	reader.Discard()
	if _, err := s.Reap(t.Context(), now()+aDay); err != nil {
		t.Fatal(err)
	}
	if n := occurrences(t, s.cfg.Dir, before[20:]); n != 0 {
		t.Errorf("its old content occurs %d times in the files", n)
	}
}

// TestReplacedRecordsGo guards that the old value of a replaced record is
// compacted away even if nothing else was deleted: a segment of vectors that is
// rewritten without one of them, also in chunks.
func TestReplacedRecordsGo(t *testing.T) {
	for _, size := range []int{100, 2 * inlineSize} {
		s := mustOpen(t, testConfig(t))
		put := func(seed byte) []byte {
			t.Helper()
			value := bytes.Repeat([]byte{seed}, size)
			r := storage.Record{Bucket: storage.BucketIndex, Scope: scopeOf("u"), Key: "v/00000001", Value: value}
			if err := s.PutRecords(t.Context(), []storage.Record{r}); err != nil {
				t.Fatal(err)
			}
			keys := s.session.keys
			var sealed []byte
			place := keys.record(keys.scope(r.Scope), r.Bucket, r.Key)
			err := s.session.db.View(func(txn *badgerdb.Txn) error {
				sealed = mustGet(t, txn, place)
				if isChunked(sealed) {
					sealed = mustGet(t, txn, chunkKey(place, binary.BigEndian.Uint64(sealed[2:]), 1))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return sealed[len(sealed)-50:]
		}
		before := put(1)
		current := put(2)
		if occurrences(t, s.cfg.Dir, before) == 0 {
			t.Error("gone immediately: the test proves nothing")
		}
		aDay := storage.Time(maxGarbageAge.Milliseconds()) + 60_000
		if _, err := s.Reap(t.Context(), now()+aDay); err != nil {
			t.Fatal(err)
		}
		if n := occurrences(t, s.cfg.Dir, before); n != 0 {
			t.Errorf("%d bytes: its old content occurs %d times in the files", size, n)
		}
		if n := occurrences(t, s.cfg.Dir, current); n != 1 {
			t.Errorf("%d bytes: its new content occurs %d times in the files", size, n)
		}
		mustClose(t, s)
	}
}
