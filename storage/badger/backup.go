package badger

import (
	"bufio"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// A backup is a file of frames (frames.go). Its head is
//
//	magic line | format 1 | schema 4 | time of the backup 8 | id of the store 16
//
// followed, for each scope, by one 'S' frame (hash of the scope, id of its data
// key) and an 'E' frame for each entry (disk key, value), both as they are on
// disk.
const (
	backupMagic  = "REMORA BACKUP\n"
	backupFormat = 1
	headSize     = len(backupMagic) + 1 + 4 + 8 + hashSize

	frameScope = 'S'
	frameEntry = 'E'
)

// newMAC returns the checksum of a kind of file.
func (n namer) newMAC(use string) (hash.Hash, error) {
	key, err := hkdf.Key(sha256.New, n.secret, nil, "remora "+use+" v1", 32)
	if err != nil {
		return nil, err
	}
	return hmac.New(sha256.New, key), nil
}

// storeID identifies a store, and reveals nothing about it.
func (n namer) storeID() hash16 { return n.hash("store id") }

// owner is a scope and the key that seals its values.
type owner struct {
	scope hash16
	key   keyID
}

// Backup implements [storage.Backuper]. Writers wait while the keys are listed,
// about 30 us per scope. Scopes that are erased meanwhile are still in the
// backup, but will not be restored. Scopes whose data key is lost are left out.
func (s *Store) Backup(ctx context.Context, w io.Writer) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	mac, err := se.keys.newMAC("backup")
	if err != nil {
		return err
	}
	se.backups.Add(1)
	defer se.backups.Add(-1)
	owners, txn, err := se.snapshot(ctx)
	if err != nil {
		return err
	}
	defer txn.Discard()

	id := se.keys.storeID()
	head := append([]byte(backupMagic), backupFormat)
	head = binary.BigEndian.AppendUint32(head, schemaVersion)
	head = appendTime(head, now())
	f, err := newFrameWriter(output{w}, mac, append(head, id[:]...))
	if err != nil {
		return err
	}
	for _, o := range owners {
		if err := f.frame(frameScope, o.scope[:], o.key[:]); err != nil {
			return err
		}
		for _, level := range levels() {
			if err := backupLevel(ctx, f, txn, scopePrefix(level, o.scope)); err != nil {
				return err
			}
		}
	}
	return f.end()
}

// output marks the errors of a backup's destination, which are not the store's.
type output struct{ io.Writer }

func (o output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

type outputError struct{ err error }

func (e *outputError) Error() string { return "write backup: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// snapshot returns a view of the store and its keys as of one moment.
func (se *session) snapshot(ctx context.Context) (owners []owner, txn *badgerdb.Txn, err error) {
	if err := se.lockWrites(ctx); err != nil {
		return nil, nil, err
	}
	defer se.unlockWrites()
	err = se.keys.each(func(h hash16) error {
		id, err := se.keys.idOf(h)
		switch {
		case errors.Is(err, storage.ErrDamaged):
			return nil
		case err != nil:
			return err
		}
		owners = append(owners, owner{h, id})
		return ctx.Err()
	})
	if err != nil {
		return nil, nil, err
	}
	return owners, se.db.NewTransaction(false), nil
}

func backupLevel(ctx context.Context, f *frameWriter, txn *badgerdb.Txn, prefix []byte) error {
	it := newIterator(txn, prefix)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		item := it.Item()
		if len(item.Key()) == len(prefix) {
			continue
		}
		if err := item.Value(func(value []byte) error { return f.frame(frameEntry, item.Key(), value) }); err != nil {
			return err
		}
	}
	return nil
}

// Restored is the result of [Restore].
type Restored struct {
	From   storage.Time // when the backup was made
	Scopes int
	Erased int // scopes left out, because they were erased after the backup or their key is not in the keyring
}

// Restore loads a backup into a directory that has its keyring and no data. A
// backup that is truncated, damaged, of another store or of another schema is
// refused as a whole. Scopes that have been erased since stay erased.
func Restore(ctx context.Context, cfg Config, r io.Reader) (done Restored, err error) {
	if err := cfg.Validate(); err != nil {
		return done, err
	}
	dir := directory(cfg.Dir)
	keys, err := keyringForRestore(cfg)
	if err != nil {
		return done, err
	}
	in := bufio.NewReaderSize(r, 256<<10)
	done.From, err = peekHead(in, keys)
	if err != nil {
		return done, fmt.Errorf("restore: %w; nothing was restored", err)
	}
	mac, err := keys.newMAC("backup")
	if err != nil {
		return done, err
	}
	head := make([]byte, headSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return done, err
	}
	mac.Write(head)

	if err := os.RemoveAll(dir.restoring()); err != nil { // of an interrupted restore
		return done, err
	}
	l := restore{keys: keys, space: newFreeSpace(cfg), frames: &frameReader{r: in, mac: mac}, done: &done}
	if err := l.load(ctx, dir.restoring()); err != nil {
		return Restored{}, errors.Join(fmt.Errorf("restore: %w; nothing was restored", err), os.RemoveAll(dir.restoring()))
	}
	if err := dir.writeVersion(); err != nil {
		return Restored{}, err
	}
	if err := os.Rename(dir.restoring(), dir.data()); err != nil { // the commit point
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return done, errors.Join(syncDir(cfg.Dir), dir.removeMissingMarks())
}

// keyringForRestore refuses a directory that has data, or no keyring.
func keyringForRestore(cfg Config) (*keyring, error) {
	dir := directory(cfg.Dir)
	if _, err := dir.checkSchema(); err != nil {
		return nil, err
	}
	if there, err := exists(dir.data()); err != nil {
		return nil, err
	} else if there {
		return nil, refuse("there is data in %s: restore into a directory without any", dir)
	}
	keys, err := existingKeyring(cfg)
	if err != nil {
		return nil, explain(dir, err)
	}
	if keys == nil {
		return nil, refuse("there is no keyring in %s, and a backup contains none: import it first, with `remora keys import`", dir)
	}
	return keys, nil
}

// peekHead checks the head of a backup, and returns when the backup was made.
func peekHead(in *bufio.Reader, keys *keyring) (storage.Time, error) {
	head, err := in.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n := min(len(head), len(backupMagic)); n == 0 || string(head[:n]) != backupMagic[:n] {
		return 0, errors.New("this is not a backup of Remora")
	}
	if len(head) < headSize {
		return 0, errTruncated
	}
	rest := head[len(backupMagic):]
	schema := binary.BigEndian.Uint32(rest[1:])
	switch {
	case rest[0] > backupFormat || schema > schemaVersion:
		return 0, fmt.Errorf("the backup was made by a newer Remora (format %d, schema %d; this one supports %d and %d)", rest[0], schema, backupFormat, schemaVersion)
	case rest[0] == 0 || schema == 0:
		return 0, errAltered
	case schema < schemaVersion:
		return 0, fmt.Errorf("the backup was made by an older Remora (schema %d; this one supports only %d)", schema, schemaVersion)
	case hash16(rest[13:]) != keys.storeID():
		return 0, errors.New("the backup is of another store than this keyring")
	}
	return parseTime(rest[5:]), nil
}

// restore loads the frames of a backup.
type restore struct {
	keys   *keyring
	space  *freeSpace
	frames *frameReader
	done   *Restored
}

// load writes the entries of a backup to a new database in dir.
func (l *restore) load(ctx context.Context, dir string) error {
	if err := makeDir(dir); err != nil {
		return err
	}
	size := largeSizes() // the backup may be of a store with these
	db, err := badgerdb.Open(badgerOptions(dir, size, slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	return errors.Join(l.loadInto(ctx, newSession(db, size, l.keys, l.space, nil)), db.Close())
}

func (l *restore) loadInto(ctx context.Context, se *session) error {
	b := se.newBatch()
	defer b.discard()
	var scope *hash16 // nil before the first
	wanted := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, fields, err := l.frames.next()
		if errors.Is(err, io.EOF) {
			return b.commit()
		}
		if err != nil {
			return err
		}
		switch {
		case kind == frameScope && len(fields) == 2 && len(fields[0]) == hashSize && len(fields[1]) == len(keyID{}):
			h := hash16(fields[0])
			scope = &h
			if wanted, err = l.keys.isValid(h, keyID(fields[1])); err != nil {
				return err
			}
			if wanted {
				l.done.Scopes++
			} else {
				l.done.Erased++
			}
		case kind == frameEntry && len(fields) == 2 && scope != nil && isEntryOf(fields[0], *scope):
			if !wanted {
				continue
			}
			if err := l.space.reserve(uint64(len(fields[0])+len(fields[1])), forWrites); err != nil {
				return err
			}
			if err := b.add([]change{{key: fields[0], value: fields[1]}}); err != nil {
				return err
			}
		default:
			return errAltered
		}
	}
}

// isEntryOf reports whether a disk key is of this scope.
func isEntryOf(key []byte, scope hash16) bool {
	return len(key) > scopeEnd && slices.Contains(levels(), key[0]) && hash16(key[1:scopeEnd]) == scope
}
