package badger

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// raw changes the content of a closed store directly.
func raw(t *testing.T, s *Store, change func(txn *badgerdb.Txn) error) {
	t.Helper()
	db, err := badgerdb.Open(badgerOptions(s.dir.data(), s.cfg.sizes(), s.log))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// keysOf lists the disk keys of a level, in order.
func keysOf(txn *badgerdb.Txn, level byte) (keys [][]byte) {
	it := newIterator(txn, []byte{level})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		keys = append(keys, it.Item().KeyCopy(nil))
	}
	return keys
}

func mustGet(t *testing.T, txn *badgerdb.Txn, key []byte) []byte {
	t.Helper()
	v, err := get(txn, key)
	if err != nil || v == nil {
		t.Fatalf("no value at %x: %v", key, err)
	}
	return v
}

// TestTampering guards that values which were altered, moved or swapped are
// damaged, are never returned, and affect nothing else.
func TestTampering(t *testing.T) {
	mine, theirs := scopeOf("mine"), scopeOf("theirs")
	for _, test := range []struct {
		name    string
		change  func(t *testing.T, txn *badgerdb.Txn, mine, theirs []byte) error // disk keys of one memory in each scope
		damaged bool                                                             // their memory too
	}{
		{"flipped bit of the text", func(t *testing.T, txn *badgerdb.Txn, mine, _ []byte) error {
			v := mustGet(t, txn, mine)
			v[len(v)-20] ^= 4
			return txn.Set(mine, v)
		}, false},
		{"changed version", func(t *testing.T, txn *badgerdb.Txn, mine, _ []byte) error {
			v := mustGet(t, txn, mine)
			v[8]++
			return txn.Set(mine, v)
		}, false},
		{"truncated", func(t *testing.T, txn *badgerdb.Txn, mine, _ []byte) error {
			return txn.Set(mine, mustGet(t, txn, mine)[:10])
		}, false},
		{"emptied", func(t *testing.T, txn *badgerdb.Txn, mine, _ []byte) error { return txn.Set(mine, nil) }, false},
		{"unknown format", func(t *testing.T, txn *badgerdb.Txn, mine, _ []byte) error {
			v := mustGet(t, txn, mine)
			v[0] = 9
			return txn.Set(mine, v)
		}, false},
		{"exchanged between scopes", func(t *testing.T, txn *badgerdb.Txn, mine, theirs []byte) error {
			a, b := mustGet(t, txn, mine), mustGet(t, txn, theirs)
			return errors.Join(txn.Set(mine, b), txn.Set(theirs, a))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mustOpen(t, testConfig(t))
			mustPut(t, s, mine, memory("m", "text"))
			mustPut(t, s, theirs, memory("m", "text"))
			keyOf := func(scope storage.Scope) []byte {
				h := s.session.keys.scope(scope)
				return memoryKey(h, memory("m", "").EventTime, s.session.keys.id(h, "m"))
			}
			mineKey, theirKey := keyOf(mine), keyOf(theirs)
			mustClose(t, s)
			raw(t, s, func(txn *badgerdb.Txn) error { return test.change(t, txn, mineKey, theirKey) })
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, mine, memory("after", "intact"))

			_, err := s.Memory(t.Context(), mine, "m")
			if !errors.Is(err, storage.ErrDamaged) {
				t.Errorf("Memory: got %v, want ErrDamaged", err)
			}
			page, err := s.Scan(t.Context(), mine, storage.Query{})
			if err != nil || page.Damaged != 1 || len(page.Memories) != 1 || page.Memories[0].ID != "after" {
				t.Errorf("Scan: got %+v, %v, want one damaged and the intact memory", page, err)
			}
			if got := s.Health().Damaged; got != 2 {
				t.Errorf("Health: got %d damaged, want 2", got)
			}
			_, err = s.Memory(t.Context(), theirs, "m")
			if got := errors.Is(err, storage.ErrDamaged); got != test.damaged {
				t.Errorf("Memory of the other scope: got %v, want damaged: %v", err, test.damaged)
			}
			// A damaged memory can be deleted and rewritten.
			if n, err := s.Delete(t.Context(), mine, "m"); err != nil || n != 1 {
				t.Errorf("Delete of a damaged memory: got %d, %v, want 1", n, err)
			}
			mustPut(t, s, theirs, memory("m", "rewritten"))
			if m, err := s.Memory(t.Context(), theirs, "m"); err != nil || m.Text != "rewritten" {
				t.Errorf("rewritten memory: got %q, %v", m.Text, err)
			}
		})
	}
}

// TestMovedWithinScope guards that a value does not open under another disk key
// of the same scope.
func TestMovedWithinScope(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	scope := scopeOf("u")
	mustPut(t, s, scope, memory("a", "first"), memory("b", "second"))
	for _, k := range []string{"a", "b"} {
		err := s.PutRecords(t.Context(), []storage.Record{
			{Bucket: storage.BucketLedger, Scope: scope, Key: k, Value: []byte(k)},
			{Bucket: storage.BucketIndex, Scope: scope, Key: k, Value: bytes.Repeat([]byte(k), 300<<10)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	raw(t, s, func(txn *badgerdb.Txn) error {
		memories, ledger, chunks := keysOf(txn, levelMemory), keysOf(txn, 'l'), keysOf(txn, levelChunk)
		if len(memories) != 2 || len(ledger) != 2 || len(chunks) != 2*10 {
			t.Fatalf("got %d memories, %d records, %d chunks", len(memories), len(ledger), len(chunks))
		}
		return errors.Join(
			txn.Set(memories[0], mustGet(t, txn, memories[1])),
			txn.Set(ledger[0], mustGet(t, txn, ledger[1])),
			txn.Set(chunks[0], mustGet(t, txn, chunks[1])))
	})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := s.Scan(t.Context(), scope, storage.Query{})
	if err != nil || page.Damaged != 1 || len(page.Memories) != 1 {
		t.Errorf("Scan: got %d memories, %d damaged, %v, want one of each", len(page.Memories), page.Damaged, err)
	}
	for _, b := range []storage.Bucket{storage.BucketLedger, storage.BucketIndex} {
		for name, list := range map[string]func() (storage.RecordPage, error){
			"Records":    func() (storage.RecordPage, error) { return s.Records(t.Context(), b, scope, "", 0) },
			"AllRecords": func() (storage.RecordPage, error) { return s.AllRecords(t.Context(), b, "", 0) },
		} {
			page, err := list()
			if err != nil || page.Damaged != 1 || len(page.Records) != 1 {
				t.Errorf("%s of %s: got %d records, %d damaged, %v, want one of each", name, b, len(page.Records), page.Damaged, err)
			}
		}
	}
}

// TestLostScopeKey guards that AllRecords counts the records of a scope without
// key as damaged and returns the others.
func TestLostScopeKey(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	lost, kept := scopeOf("lost"), scopeOf("kept")
	for _, scope := range []storage.Scope{lost, kept} {
		if err := s.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: scope, Key: "k"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.session.keys.destroy(s.session.keys.scope(lost)); err != nil {
		t.Fatal(err)
	}
	page, err := s.AllRecords(t.Context(), storage.BucketSpool, "", 0)
	if err != nil || page.Damaged != 1 || len(page.Records) != 1 || page.Records[0].Scope != kept {
		t.Errorf("AllRecords: got %+v, %v, want one damaged and the kept one", page, err)
	}
	// Erase still removes what is left.
	if receipt, err := s.Erase(t.Context(), lost); err != nil || receipt.Records[storage.BucketSpool] != 1 {
		t.Errorf("Erase: got %+v, %v, want one record", receipt, err)
	}
}

// TestManyScopes guards that more scopes than the key cache holds are served,
// and that the cache stays within its limit.
func TestManyScopes(t *testing.T) {
	s := mustOpen(t, testConfig(t))
	const n = cachedKeys + 20
	var writes []storage.Write
	for i := range n {
		writes = append(writes, storage.Write{Scope: scopeOf(fmt.Sprint(i)), Memories: []storage.Memory{memory("id", fmt.Sprint(i))}})
	}
	if err := s.Put(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if m, err := s.Memory(t.Context(), scopeOf(fmt.Sprint(i)), "id"); err != nil || m.Text != fmt.Sprint(i) {
			t.Errorf("scope %d: got %q, %v", i, m.Text, err)
		}
	}
	keys := s.session.keys
	if got := keys.recent.Len(); got != cachedKeys || len(keys.cached) != got {
		t.Errorf("cached keys: got %d and %d, want %d", got, len(keys.cached), cachedKeys)
	}
}

func TestParseKey(t *testing.T) {
	want := bytes.Repeat([]byte{0xfb}, KeySize)
	for _, text := range []string{
		"fbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfb\n",
		" +/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=\n",
		"-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s",
	} {
		got, err := ParseKey([]byte(text))
		if err != nil || len(got) != KeySize {
			t.Errorf("ParseKey of a good key: got %d bytes, %v", len(got), err)
		}
	}
	if got, err := ParseKey([]byte("fbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbFB")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("ParseKey: got %x, %v, want %x", got, err, want)
	}
	for _, text := range []string{"", "short", "fbfb", "zzfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfbfb"} {
		if _, err := ParseKey([]byte(text)); err == nil || (text != "" && bytes.Contains([]byte(err.Error()), []byte(text))) {
			t.Errorf("ParseKey of a bad key: got %v", err)
		}
	}
}
