package badger

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// schema1 unpacks a store that the program of schema 1 wrote, with its key.
func schema1(t *testing.T) Config {
	t.Helper()
	cfg := testConfig(t)
	root := filepath.Dir(cfg.Dir)
	cfg.KeyFile = filepath.Join(root, "key")
	f, err := os.Open("testdata/schema1.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return cfg
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(archive); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fullMemory stands in the fixture.
func fullMemory() storage.Memory {
	return storage.Memory{
		ID: "id", Conversation: "c", Kind: storage.KindFact, Text: "text", Entities: []string{"a", ""}, Tags: []string{"t"},
		Priority: 0.5, Confidence: 0.25, Trust: 1, Source: "proxy",
		Provenance: storage.Provenance{Turn: "t", Chain: "c", Role: storage.RoleUser, Speaker: "s", Seq: -1, Model: "m"},
		Redactions: map[string]string{"b": "2", "a": "1"}, Embedding: &storage.Embedding{Model: "e", Vector: []float32{1, -2}},
		CreatedAt: 1, UpdatedAt: 2, EventTime: -3, ValidFrom: 4, ValidTo: 5, SupersededBy: "s", ExpiresAt: 6, DeletedAt: 7,
	}
}

// wantSchema1 checks that all of the fixture is there.
func wantSchema1(t *testing.T, s *Store) {
	t.Helper()
	for u := range 2 {
		scope := scopeOf(fmt.Sprint("user", u))
		v, err := storage.Verify(t.Context(), s, scope)
		if err != nil || v != (storage.Verification{Memories: 6}) {
			t.Errorf("Verify: got %+v, %v, want 6 memories and nothing amiss", v, err)
		}
		want := fullMemory()
		want.ExpiresAt = 32503680000000
		want.Scope, want.Version = scope, 1
		got, err := s.Memory(t.Context(), scope, "id")
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("Memory: %v (-want +got):\n%s", err, d)
		}
		for bucket, key := range map[storage.Bucket]string{storage.BucketLedger: "small", storage.BucketSpool: "forever"} {
			page, err := s.Records(t.Context(), bucket, scope, "", 0)
			if err != nil || len(page.Records) != 1 || page.Records[0].Key != key || string(page.Records[0].Value) != "value" {
				t.Errorf("records of %s: got %+v, %v", bucket, page, err)
			}
		}
	}
}

func TestMigration(t *testing.T) {
	cfg := schema1(t)
	s := mustOpen(t, cfg)
	wantSchema1(t, s)
	mustClose(t, s)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSchema1(t, s)
	if there, err := exists(s.migratingPath()); there || err != nil {
		t.Errorf("MIGRATING: there: %v, %v", there, err)
	}
	if n, err := readVersion(s.versionPath()); n != schemaVersion || err != nil {
		t.Errorf("VERSION: got %d, %v", n, err)
	}
	// Badger no longer lets any of it expire.
	txn := s.session.db.NewTransaction(false)
	defer txn.Discard()
	for _, level := range []byte{levelMemory, levelIndex, levelTurn} {
		it := newIterator(txn, []byte{level})
		n := 0
		for it.Rewind(); it.Valid(); it.Next() {
			n++
			if at := it.Item().ExpiresAt(); at != 0 {
				t.Errorf("an entry of level %c expires at %d", level, at)
			}
		}
		it.Close()
		if n == 0 {
			t.Errorf("no entries of level %c", level)
		}
	}
	// And what was kept of turns holds: a shorter one replaces the longer.
	scope := scopeOf("user0")
	err := s.Put(t.Context(), []storage.Write{{Scope: scope, Turn: "turn", Memories: []storage.Memory{{ID: "turn.0", Text: "anew"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := storage.Verify(t.Context(), s, scope); err != nil || !v.Whole() || v.Memories != 4 {
		t.Errorf("Verify: got %+v, %v, want 4 memories", v, err)
	}
}

// TestMigrationCutShort: a migration that ended at any commit is done again from its start, and until then an older
// Remora refuses the store.
func TestMigrationCutShort(t *testing.T) {
	for n := range 12 {
		cfg := schema1(t)
		s := New(cfg, nil)
		if err := errors.Join(writeVersion(s.migratingPath(), 1), writeVersion(s.versionPath(), 2)); err != nil {
			t.Fatal(err)
		}
		se := rawSession(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		err := addDigests(&countedContext{Context: ctx, done: &done, at: n, cancel: cancel}, se)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d entries: got %v, want the migration cut short", n, err)
		}
		// What a batch that was full had committed by then.
		err = se.db.Update(func(txn *badgerdb.Txn) error {
			keys := keysOf(txn, levelIndex)
			for _, k := range keys[:min(n, len(keys))] {
				key, err := se.keys.find(hash16(k[1:scopeEnd]))
				if err != nil {
					return err
				}
				v, err := get(txn, k)
				if err != nil {
					return err
				}
				if err := txn.Set(k, pointer{at: timeAt(v), version: 1, print: 7}.encode(key, hash16(k[scopeEnd:]))); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, se.db.Close()); err != nil {
			t.Fatal(err)
		}
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSchema1(t, s)
		mustClose(t, s)
	}
}

// rawSession opens what is on disk as it is.
func rawSession(t *testing.T, s *Store) *session {
	t.Helper()
	keys, err := s.existingKeyring()
	if err != nil {
		t.Fatal(err)
	}
	db, err := s.openBadger()
	if err != nil {
		t.Fatal(err)
	}
	return &session{db: db, sizes: largeSizes(), keys: keys}
}

// countedContext ends when it has been asked at times.
type countedContext struct {
	context.Context
	done   *int
	at     int
	cancel context.CancelFunc
}

func (c *countedContext) Err() error {
	if *c.done++; *c.done > c.at {
		c.cancel()
	}
	return c.Context.Err()
}

// TestMigrationTouchesNothing where the key is wrong.
func TestMigrationTouchesNothing(t *testing.T) {
	cfg := schema1(t)
	write(t, cfg.KeyFile, strings.Repeat("0a", KeySize))
	before := fileSums(t, cfg.Dir)
	if err := New(cfg, nil).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "wrong key") {
		t.Errorf("Open: got %v, want a wrong key", err)
	}
	if d := cmp.Diff(before, fileSums(t, cfg.Dir)); d != "" {
		t.Errorf("files were touched:\n%s", d)
	}
}
