package badger

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// fullMemory returns a memory with a value in every field.
func fullMemory() storage.Memory {
	return storage.Memory{
		ID: "id", Conversation: "c", Kind: storage.KindFact, Text: "text", Entities: []string{"a", ""}, Tags: []string{"t"},
		Priority: 0.5, Confidence: 0.25, Trust: 1, Source: "proxy",
		Provenance: storage.Provenance{Turn: "t", Chain: "c", Role: storage.RoleUser, Speaker: "s", Seq: -1, Model: "m"},
		Redactions: map[string]string{"b": "2", "a": "1"},
		CreatedAt:  1, UpdatedAt: 2, EventTime: -3, ValidFrom: 4, ValidTo: 5, SupersededBy: "s", ExpiresAt: 6, DeletedAt: 7,
	}
}

// occurrences counts a string in all files of a tree and in their names.
func occurrences(t *testing.T, dir string, needle []byte) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n += bytes.Count([]byte(d.Name()), needle)
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		n += bytes.Count(content, needle)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fillScope writes everything that a scope can hold, with the needle in all of
// it.
func fillScope(t *testing.T, s *Store, scope storage.Scope, needle string) {
	t.Helper()
	m := fullMemory()
	m.ID, m.Conversation, m.Text, m.Source, m.SupersededBy = needle, needle, "text "+needle, needle, needle
	m.Entities, m.Tags, m.Redactions = []string{needle}, []string{needle}, map[string]string{needle: needle}
	m.Provenance.Turn, m.Provenance.Chain, m.Provenance.Speaker = needle, needle, needle
	m.ExpiresAt = 0
	mustPut(t, s, scope, m)
	turn := storage.Write{Scope: scope, Turn: needle, Memories: []storage.Memory{{ID: needle + ".0", Text: needle}}}
	if err := s.Put(t.Context(), []storage.Write{turn}); err != nil {
		t.Fatal(err)
	}
	for _, b := range storage.Buckets() {
		err := s.PutRecords(t.Context(), []storage.Record{
			{Bucket: b, Scope: scope, Key: needle, Value: []byte("value " + needle)},
			{Bucket: b, Scope: scope, Key: "large " + needle, Value: bytes.Repeat([]byte(needle), 30_000)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingInTheClear searches the raw files of an open store (write-ahead
// log) and a closed one (tables).
func TestNothingInTheClear(t *testing.T) {
	const needle = "Xylophone-Quagmire"
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	fillScope(t, s, storage.Scope{Tenant: "t-" + needle, App: "a-" + needle, Project: "p-" + needle, User: "u-" + needle}, needle)
	secret, err := s.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := cfg.loadKEK(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := s.session.keys
	for _, state := range []string{"open", "closed"} {
		for name, needle := range map[string][]byte{
			"content": []byte(needle), "install secret": secret, "HMAC secret": keys.secret, "wrapping key": key.wrap,
		} {
			if n := occurrences(t, cfg.Dir, needle); n != 0 {
				t.Errorf("%s: %s occurs %d times in the files", state, name, n)
			}
		}
		mustClose(t, s)
	}

	// The search works: an unsealed needle is found.
	write(t, filepath.Join(cfg.Dir, "data", "control"), needle)
	if n := occurrences(t, cfg.Dir, []byte(needle)); n != 1 {
		t.Errorf("control: found %d, want 1", n)
	}
}

// traceOf returns the part of a scope's disk keys that any file with one of
// them contains. Tables leave out what a key shares with the first one of its
// block: for a key of another scope the level and by chance a byte of the hash.
func traceOf(h hash16) []byte { return h[2:] }

// TestEraseDropsBytes guards that after Erase no file holds the data key, its
// wrapped form, the sealed bytes or a disk key of the scope.
func TestEraseDropsBytes(t *testing.T) {
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	gone, kept := scopeOf("gone"), scopeOf("kept")
	for _, scope := range []storage.Scope{gone, kept} {
		fillScope(t, s, scope, "needle")
	}
	// Some values are in tables, also deleted ones, some in the memory table.
	if _, err := s.Delete(t.Context(), gone, "needle"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, gone, memory("late", "late"))

	keys := s.session.keys
	goneHash, keptHash := keys.scope(gone), keys.scope(kept)
	wrapped := mustRead(t, keys.scopePath(goneHash))
	present := func() (n int) {
		n = occurrences(t, cfg.Dir, traceOf(goneHash))
		return n + occurrences(t, cfg.Dir, []byte(hex.EncodeToString(goneHash[:]))) + occurrences(t, cfg.Dir, wrapped[12:])
	}
	if present() == 0 {
		t.Fatal("the search does not find existing values")
	}
	if _, err := s.Erase(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if n := present(); n != 0 {
		t.Errorf("open: traces of the scope occur %d times in the files", n)
	}
	mustClose(t, s)
	if n := present(); n != 0 {
		t.Errorf("closed: traces of the scope occur %d times in the files", n)
	}
	if n := occurrences(t, cfg.Dir, traceOf(keptHash)); n == 0 {
		t.Error("the other scope's memories are gone too")
	}
}

// valuesOf returns every value that a scope has on disk, by its disk key.
func valuesOf(t *testing.T, s *Store, scope storage.Scope) map[string][]byte {
	t.Helper()
	values := make(map[string][]byte)
	err := s.session.db.View(func(txn *badgerdb.Txn) error {
		for _, level := range levels() {
			it := newIterator(txn, scopePrefix(level, s.session.keys.scope(scope)))
			for it.Rewind(); it.Valid(); it.Next() {
				v, err := it.Item().ValueCopy(nil)
				if err != nil {
					return err
				}
				values[string(it.Item().KeyCopy(nil))] = v
			}
			it.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestErasedValuesGo guards that no way of erasing leaves a sealed value in any
// file: of memories, spool, ledger, index, summaries or audits, or of what was
// deleted or replaced before.
func TestErasedValuesGo(t *testing.T) {
	for name, erase := range map[string]func(t *testing.T, s *Store, scope storage.Scope) (storage.Receipt, error){
		"Erase": func(t *testing.T, s *Store, scope storage.Scope) (storage.Receipt, error) {
			return s.Erase(t.Context(), scope)
		},
		"EraseTenant": func(t *testing.T, s *Store, scope storage.Scope) (storage.Receipt, error) {
			return s.EraseTenant(t.Context(), scope.Tenant)
		},
		"EraseAll": func(t *testing.T, s *Store, _ storage.Scope) (storage.Receipt, error) { return s.EraseAll(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, testConfig(t))
			gone := scopeOf("gone")
			kept := storage.Scope{Tenant: "another", App: "app", Project: "project", User: "kept"}
			fillScope(t, s, gone, "needle")
			fillScope(t, s, kept, "needle")
			sealed := valuesOf(t, s, gone)
			mustClose(t, s) // into tables
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			fillScope(t, s, gone, "another one, long") // into the log
			if _, err := s.Delete(t.Context(), gone, "needle", "another one, long"); err != nil {
				t.Fatal(err)
			}
			maps.Copy(sealed, valuesOf(t, s, gone))
			levelsSeen := make(map[byte]bool)
			for k := range sealed {
				levelsSeen[k[0]] = true
			}
			if got, want := len(levelsSeen), len(levels()); got != want {
				t.Fatalf("values of %d levels, want all %d", got, want)
			}
			left := func() (n int) {
				files := contents(t, s.cfg.Dir)
				for k, v := range sealed {
					if k[0] == levelTurn || k[0] == levelIndex { // not sealed, and too short to search for
						continue
					}
					needle := v[max(0, len(v)-40):]
					for _, f := range files {
						if bytes.Contains(f, needle) {
							n++
							break
						}
					}
				}
				return n
			}
			if left() < 20 {
				t.Fatal("the search does not find existing values")
			}
			receipt, err := erase(t, s, gone)
			if err != nil || receipt.Memories < 2 || len(receipt.Records) != len(storage.Buckets()) {
				t.Errorf("got %+v, %v, want memories and records of every bucket", receipt, err)
			}
			if n := left(); n != 0 {
				t.Errorf("open: %d sealed values are left", n)
			}
			mustClose(t, s)
			if n := left(); n != 0 {
				t.Errorf("closed: %d sealed values are left", n)
			}
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := 2
			if name == "EraseAll" {
				want = 0
			}
			if page, err := s.Scan(t.Context(), kept, storage.Query{}); err != nil || len(page.Memories) != want {
				t.Errorf("another tenant: got %d memories, %v, want %d", len(page.Memories), err, want)
			}
		})
	}
}

// contents reads all files of a tree.
func contents(t *testing.T, dir string) (files [][]byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files = append(files, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestEraseIsFinished guards that an erasure that was interrupted after any of
// its steps is finished before the store serves.
func TestEraseIsFinished(t *testing.T) {
	for _, test := range []struct {
		name string
		step func(k *keyring, h hash16) error
	}{
		{"after the mark", func(*keyring, hash16) error { return nil }},
		{"after the key is destroyed", func(k *keyring, h hash16) error { return k.destroy(h) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := testConfig(t)
			s := mustOpen(t, cfg)
			fillScope(t, s, scopeOf("gone"), "needle")
			fillScope(t, s, scopeOf("kept"), "needle")
			keys := s.session.keys
			h := keys.scope(scopeOf("gone"))
			if err := keys.mark(h); err != nil {
				t.Fatal(err)
			}
			if err := test.step(keys, h); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := occurrences(t, cfg.Dir, traceOf(h)); n != 0 {
				t.Errorf("%d keys of the scope left", n)
			}
			if marked, err := s.session.keys.marked(); err != nil || len(marked) != 0 {
				t.Errorf("marks left: %d, %v", len(marked), err)
			}
			if page, err := s.Scan(t.Context(), scopeOf("gone"), storage.Query{}); err != nil || len(page.Memories)+page.Damaged != 0 {
				t.Errorf("Scan: got %+v, %v, want nothing", page, err)
			}
			if page, err := s.Scan(t.Context(), scopeOf("kept"), storage.Query{}); err != nil || len(page.Memories) != 2 {
				t.Errorf("Scan of the neighbour: got %d, %v, want 2", len(page.Memories), err)
			}
		})
	}
}

// TestUnfinishedEraseBeforeWrite guards that a failed erasure is finished
// before the scope is written to, so that it does not drop anything new.
func TestUnfinishedEraseBeforeWrite(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	fillScope(t, s, scope, "needle")
	keys := s.session.keys
	h := keys.scope(scope)
	if err := keys.mark(h); err != nil {
		t.Fatal(err)
	}
	s.session.unfinished[h] = struct{}{} // as after an Erase that failed to drop
	mustPut(t, s, scope, memory("new", "new"))
	for range 2 {
		page, err := s.Scan(t.Context(), scope, storage.Query{})
		if err != nil || page.Damaged != 0 || len(page.Memories) != 1 || page.Memories[0].ID != "new" {
			t.Errorf("Scan: got %+v, %v, want only the new memory", page, err)
		}
		mustClose(t, s)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeftOverChunks guards that chunks whose record was never committed, or
// was replaced, are removed at the next opening.
func TestLeftOverChunks(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	record := storage.Record{Bucket: storage.BucketIndex, Scope: scopeOf("u"), Key: "k", Value: make([]byte, 1<<20)}
	if err := s.PutRecords(t.Context(), []storage.Record{record}); err != nil {
		t.Fatal(err)
	}
	key, err := s.session.keys.find(s.session.keys.scope(record.Scope))
	if err != nil {
		t.Fatal(err)
	}
	other := record
	other.Key = "never committed"
	for _, r := range []storage.Record{record, other} {
		_, chunks := sealRecord(key, s.session.keys.record(key.hash, r.Bucket, r.Key), r, inlineSize, chunkSize)
		b := s.session.newBatch()
		for _, c := range chunks {
			if err := b.add([]change{c}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.commit(); err != nil {
			t.Fatal(err)
		}
	}
	chunks := func() int {
		txn := s.session.db.NewTransaction(false)
		defer txn.Discard()
		return len(keysOf(txn, levelChunk))
	}
	const each = 1 << 20 / chunkSize
	if got := chunks(); got != 3*each {
		t.Fatalf("got %d chunks, want %d", got, 3*each)
	}
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := chunks(); got != each {
		t.Errorf("after opening: got %d chunks, want the %d of the record", got, each)
	}
	if err := s.DeleteRecords(t.Context(), []storage.RecordRef{record.Ref()}); err != nil {
		t.Fatal(err)
	}
	if got := chunks(); got != 0 {
		t.Errorf("after deletion: got %d chunks, want none", got)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes on Windows")
	}
	cfg := testConfig(t)
	s := mustOpen(t, cfg)
	mustPut(t, s, scopeOf("u"), memory("id", "text"))
	for path, want := range map[string]fs.FileMode{
		cfg.Dir: 0o700, s.dir.data(): 0o700, s.dir.keyring(): 0o700, cfg.KeyFile: 0o600, filepath.Dir(cfg.KeyFile): 0o700,
		filepath.Join(cfg.Dir, "VERSION"):                            0o600,
		s.session.keys.secretsPath():                                 0o600,
		s.session.keys.scopePath(s.session.keys.scope(scopeOf("u"))): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %v, want %v", path, got, want)
		}
	}
}
