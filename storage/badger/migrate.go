package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// schemaVersion is what this package writes. A store with a higher number is left untouched; one with a lower number
// is migrated when it is opened.
//
//	1  the first
//	2  a digest of each scope; index entries carry version, fingerprint and expiry; Badger no longer lets memories expire
const schemaVersion = 2

// migration brings a store from one schema to the next. It may be cut short at any point and run again from its start,
// so it must know what it has done already from what it finds.
type migration struct {
	from int
	run  func(ctx context.Context, se *session) error
}

// migrations has one for each schema but the last, in order.
func migrations() []migration {
	return []migration{{1, addDigests}}
}

const versionPrefix = "remora store "

func (s *Store) versionPath() string { return filepath.Join(s.cfg.Dir, "VERSION") }

// migratingPath holds, while a migration is under way, the schema that it began with. VERSION has the new one by then,
// so that an older Remora does not write among what is half migrated.
func (s *Store) migratingPath() string { return filepath.Join(s.cfg.Dir, "MIGRATING") }

// schemaOnDisk is the schema that what is there has to be taken for; 0 where there is no store.
func (s *Store) schemaOnDisk() (int, error) {
	n, err := readVersion(s.versionPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case n > schemaVersion:
		return 0, refuse("%s was written by a newer Remora (schema %d, this one knows %d): update Remora, or use another directory",
			s.cfg.Dir, n, schemaVersion)
	}
	from, err := readVersion(s.migratingPath())
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	return min(from, n), err
}

func readVersion(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(content)), versionPrefix)
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 {
		return 0, refuse("damaged: %s does not hold the version of a store", path)
	}
	return n, nil
}

func writeVersion(path string, n int) error {
	return writeDurably(path, []byte(versionPrefix+strconv.Itoa(n)+"\n"))
}

// migrate brings the open store to schemaVersion. It reads the schema anew: now the directory is locked.
func (s *Store) migrate(ctx context.Context, se *session) error {
	from, err := s.schemaOnDisk()
	if err != nil {
		return err
	}
	if from < schemaVersion {
		s.log.Info("migrating the store", "from", from, "to", schemaVersion)
		if err := writeVersion(s.migratingPath(), from); err != nil { // without it, the new VERSION would end the migration
			return err
		}
		if err := writeVersion(s.versionPath(), schemaVersion); err != nil {
			return err
		}
		for _, m := range migrations() {
			if m.from < from {
				continue
			}
			if err := m.run(ctx, se); err != nil {
				return fmt.Errorf("migrate from schema %d: %w", m.from, err)
			}
		}
		s.log.Info("the store is migrated", "to", schemaVersion)
	}
	return removeDurably(s.migratingPath())
}

// addDigests is the migration from schema 1, in which Badger let memories, index entries and turns expire by itself,
// and index entries held the event time alone.
func addDigests(ctx context.Context, se *session) error {
	b := se.newBatch()
	defer b.discard()
	txn := se.db.NewTransaction(false)
	defer txn.Discard()

	var scope hash16 // whose memories are being read
	var key *scopeKey
	var digest storage.Digest
	finish := func() error {
		if key == nil {
			return nil
		}
		return b.add([]change{digestChange(key, digest)})
	}
	memory := func(diskKey, value []byte, expires bool) error {
		if h := hash16(diskKey[1:scopeEnd]); key == nil || h != scope {
			if err := finish(); err != nil {
				return err
			}
			var err error
			if key, err = se.keys.find(h); err != nil && !errors.Is(err, storage.ErrDamaged) {
				return err
			}
			scope, digest = h, storage.Digest{}
		}
		if key == nil {
			return nil // its data key is lost: nothing can be told of it
		}
		p := pointer{at: timeAt(diskKey[scopeEnd:])}
		plain, version, err := openVersioned(nil, key, diskKey, value)
		p.version = version
		if err == nil {
			var m storage.Memory
			if m, err = storage.DecodeMemory(plain); err == nil {
				p.print, p.expires = m.Fingerprint(), m.ExpiresAt
			}
		}
		digest = digest.Plus(p.counted()) // a damaged one counts, so that it is not missed once it is removed
		id := hash16(diskKey[scopeEnd+8:])
		changes := []change{{key: nameKey(levelIndex, scope, id), value: p.encode(key, id)}}
		if expires {
			changes = append(changes, change{key: diskKey, value: value})
		}
		return b.add(changes)
	}
	if err := eachEntry(ctx, txn, levelMemory, scopeEnd+8+hashSize, memory); err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	turn := func(diskKey, value []byte, expires bool) error {
		if !expires {
			return nil
		}
		return b.add([]change{{key: diskKey, value: value}})
	}
	if err := eachEntry(ctx, txn, levelTurn, scopeEnd+hashSize, turn); err != nil {
		return err
	}
	// An index entry that still is of the old form points to no memory.
	index := func(diskKey, value []byte, _ bool) error {
		if len(value) != 8 {
			return nil
		}
		place := memoryKey(hash16(diskKey[1:scopeEnd]), timeAt(value), hash16(diskKey[scopeEnd:]))
		if there, err := get(txn, place); err != nil || there != nil {
			return err
		}
		return b.add([]change{{key: diskKey, remove: true}})
	}
	if err := eachEntry(ctx, txn, levelIndex, scopeEnd+hashSize, index); err != nil {
		return err
	}
	return b.commit()
}

// eachEntry calls do, with copies, for the entries of a level whose keys are of that size; expires tells of an expiry in Badger.
func eachEntry(ctx context.Context, txn *badgerdb.Txn, level byte, size int, do func(key, value []byte, expires bool) error) error {
	it := newIterator(txn, []byte{level})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		item := it.Item()
		if len(item.Key()) != size {
			continue
		}
		value, err := item.ValueCopy(nil)
		if err != nil {
			return err
		}
		if err := do(item.KeyCopy(nil), value, item.ExpiresAt() != 0); err != nil {
			return err
		}
	}
	return nil
}
