package badger

import (
	"errors"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// TestMissing guards that storage.Verify notices missing, damaged and altered
// memories.
func TestMissing(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, txn *badgerdb.Txn, older []byte) error // older is the first memory's previous value
		want   storage.Verification
	}{
		{"a memory is gone", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			return txn.Delete(keysOf(txn, levelMemory)[1])
		}, storage.Verification{Memories: 2, Missing: 1}},
		{"a memory is gone and so is its index entry", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			k := keysOf(txn, levelMemory)[1]
			return errors.Join(txn.Delete(k), txn.Delete(nameKey(levelIndex, hash16(k[1:scopeEnd]), hash16(k[scopeEnd+8:]))))
		}, storage.Verification{Memories: 2, Missing: 1}},
		{"all are gone", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			for _, k := range append(keysOf(txn, levelMemory), keysOf(txn, levelIndex)...) {
				if err := txn.Delete(k); err != nil {
					return err
				}
			}
			return nil
		}, storage.Verification{Missing: 3}},
		{"all are gone, and the digest", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			for _, k := range append(keysOf(txn, levelMemory), keysOf(txn, levelDigest)...) {
				if err := txn.Delete(k); err != nil {
					return err
				}
			}
			return nil
		}, storage.Verification{Missing: 3}},
		{"the digest is damaged", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			k := keysOf(txn, levelDigest)[0]
			v := mustGet(t, txn, k)
			v[len(v)-1] ^= 1
			return txn.Set(k, v)
		}, storage.Verification{Memories: 3}},
		{"one damaged, one gone", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			keys := keysOf(txn, levelMemory)
			return errors.Join(txn.Delete(keys[0]), txn.Set(keys[1], nil))
		}, storage.Verification{Memories: 1, Damaged: 1, Missing: 1}},
		{"two exchanged", func(t *testing.T, txn *badgerdb.Txn, _ []byte) error {
			keys := keysOf(txn, levelMemory)
			a, b := mustGet(t, txn, keys[0]), mustGet(t, txn, keys[1])
			return errors.Join(txn.Set(keys[0], b), txn.Set(keys[1], a))
		}, storage.Verification{Memories: 1, Damaged: 2}},
		{"an older version put back", func(t *testing.T, txn *badgerdb.Txn, older []byte) error {
			return txn.Set(keysOf(txn, levelMemory)[0], older)
		}, storage.Verification{Memories: 3, Altered: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := mustOpen(t, testConfig(t))
			scope := scopeOf("u")
			at := func(id string, at storage.Time) storage.Memory {
				m := memory(id, "text of "+id)
				m.EventTime = at
				return m
			}
			mustPut(t, s, scope, at("a", 1), at("b", 2), at("c", 3))
			var older []byte
			if err := s.session.db.View(func(txn *badgerdb.Txn) error {
				older = mustGet(t, txn, keysOf(txn, levelMemory)[0])
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			changed := at("a", 1)
			changed.Text = "changed"
			mustPut(t, s, scope, changed)
			mustClose(t, s)
			raw(t, s, func(txn *badgerdb.Txn) error { return test.change(t, txn, older) })
			if err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := storage.Verify(t.Context(), s, scope); err != nil || got != test.want {
				t.Errorf("Verify: got %+v, %v, want %+v", got, err, test.want)
			}
			if test.want.Altered {
				if _, err := s.Memory(t.Context(), scope, "a"); !errors.Is(err, storage.ErrDamaged) {
					t.Errorf("Memory: got %v, want ErrDamaged", err)
				}
			}
			// After rewriting or deleting everything is intact again, except
			// for what nothing points to.
			mustPut(t, s, scope, at("a", 1), at("b", 2))
			if _, err := s.Delete(t.Context(), scope, "c"); err != nil {
				t.Fatal(err)
			}
			got, err := storage.Verify(t.Context(), s, scope)
			if lostIndex := test.name == "a memory is gone and so is its index entry" || test.name == "all are gone"; err != nil || got.Whole() == lostIndex || got.Memories != 2 {
				t.Errorf("Verify after rewriting: got %+v, %v", got, err)
			}
		})
	}
}
