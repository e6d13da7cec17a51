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
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// A backup is a file of frames (frames.go). Its head is
//
//	magic line | format 1 | schema 4 | time of the backup 8 | id of the store 16
//
// and its frames, for each scope one 'S' (hash of the scope, id of its data key) and behind it an 'E' for each entry (disk
// key, value), both as they are on disk.
const (
	backupMagic  = "REMORA BACKUP\n"
	backupFormat = 1
	headSize     = len(backupMagic) + 1 + 4 + 8 + hashSize

	frameScope = 'S'
	frameEntry = 'E'
)

// newMAC is the checksum of a kind of file.
func (n namer) newMAC(use string) (hash.Hash, error) {
	key, err := hkdf.Key(sha256.New, n.secret, nil, "remora "+use+" v1", 32)
	if err != nil {
		return nil, err
	}
	return hmac.New(sha256.New, key), nil
}

// storeID tells one store from another, and nothing about it.
func (n namer) storeID() hash16 { return n.hash("store id") }

// owner is a scope and the key that its values are sealed with.
type owner struct {
	scope hash16
	key   keyID
}

// Backup implements [storage.Backuper]. Writers wait while the keys are listed, about 30 us per scope. What is erased
// while it goes on is still in it, and is not restored. Left out are scopes whose data key is lost.
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

// output is where a backup goes. Its errors are not the store's.
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

// snapshot returns a view of one moment, and the keys of that moment.
func (se *session) snapshot(ctx context.Context) (owners []owner, txn *badgerdb.Txn, err error) {
	if err := se.acquire(ctx); err != nil {
		return nil, nil, err
	}
	defer se.release()
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

// idOf reads the id of a scope's key, past the cache.
func (k *keyring) idOf(h hash16) (keyID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, key, err := k.readLocked(h)
	if err != nil {
		return keyID{}, err
	}
	return newKeyID(key)
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

// Restored is what [Restore] did.
type Restored struct {
	From   storage.Time // when the backup was made
	Scopes int
	Erased int // scopes left out, since they have been erased after the backup, or their key is not in the keyring
}

// restoringDir is where what is restored lies until all of it is there.
func (s *Store) restoringDir() string { return filepath.Join(s.cfg.Dir, "data.restoring") }

// Restore makes the store of a backup in a directory that has its keyring and no data. A backup that is cut short,
// damaged, of another store or of another schema is refused whole. Scopes that were erased since stay erased.
func Restore(ctx context.Context, cfg Config, r io.Reader) (done Restored, err error) {
	s := New(cfg, nil)
	if err := cfg.Validate(); err != nil {
		return done, err
	}
	keys, err := s.restorable()
	if err != nil {
		return done, err
	}
	in := bufio.NewReaderSize(r, 256<<10)
	done.From, err = readHead(in, keys)
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
	frames := &frameReader{r: in, mac: mac}

	if err := os.RemoveAll(s.restoringDir()); err != nil { // of a restore that was cut short
		return done, err
	}
	if err := s.load(ctx, keys, frames, &done); err != nil {
		return Restored{}, errors.Join(fmt.Errorf("restore: %w; nothing was restored", err), os.RemoveAll(s.restoringDir()))
	}
	if err := writeVersion(s.versionPath()); err != nil {
		return Restored{}, err
	}
	if err := os.Rename(s.restoringDir(), s.dataDir()); err != nil { // the commit point
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return done, errors.Join(syncDir(cfg.Dir), s.forgetMissing())
}

// restoreCutShort says that a restore was begun and is not done, or is under way.
func (s *Store) restoreCutShort() (bool, error) {
	begun, err := exists(s.restoringDir())
	if err != nil || !begun {
		return false, nil // an error is the same for what is looked at next
	}
	done, err := exists(s.dataDir())
	return !done, err
}

// restorable refuses a directory that has data, or no keyring.
func (s *Store) restorable() (*keyring, error) {
	if _, err := s.checkSchema(); err != nil {
		return nil, err
	}
	if there, err := exists(s.dataDir()); err != nil {
		return nil, err
	} else if there {
		return nil, refuse("there is data in %s: a backup is restored into a directory that has none", s.cfg.Dir)
	}
	keys, err := s.existingKeyring()
	if err != nil {
		return nil, s.explain(err)
	}
	if keys == nil {
		return nil, refuse("there is no keyring in %s: a backup does not contain it; bring it there first, with `remora keys import`", s.cfg.Dir)
	}
	return keys, nil
}

// readHead peeks at the head of a backup.
func readHead(in *bufio.Reader, keys *keyring) (storage.Time, error) {
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
	if rest[0] > backupFormat || schema > schemaVersion {
		return 0, fmt.Errorf("the backup was made by a newer Remora (format %d, schema %d; this one knows %d and %d)", rest[0], schema, backupFormat, schemaVersion)
	}
	if rest[0] == 0 || schema == 0 {
		return 0, errAltered
	}
	if schema < schemaVersion {
		return 0, fmt.Errorf("the backup was made by an older Remora (schema %d; this one knows %d alone)", schema, schemaVersion)
	}
	if hash16(rest[13:]) != keys.storeID() {
		return 0, errors.New("the backup is of another store than this keyring")
	}
	return timeAt(rest[5:]), nil
}

// load writes the entries of a backup to restoringDir, up to its end.
func (s *Store) load(ctx context.Context, keys *keyring, frames *frameReader, done *Restored) error {
	if err := makeDir(s.restoringDir()); err != nil {
		return err
	}
	db, err := badgerdb.Open(badgerOptions(s.restoringDir(), largeSizes(), s.log)) // it may have been made with those
	if err != nil {
		return err
	}
	return errors.Join(s.loadInto(ctx, &session{db: db, sizes: largeSizes(), keys: keys, space: s.space}, frames, done), db.Close())
}

func (s *Store) loadInto(ctx context.Context, se *session, frames *frameReader, done *Restored) error {
	b := se.newBatch()
	defer b.discard()
	var scope *hash16 // nil before the first
	wanted := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, fields, err := frames.next()
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
			if wanted, err = se.keys.holds(h, keyID(fields[1])); err != nil {
				return err
			}
			if wanted {
				done.Scopes++
			} else {
				done.Erased++
			}
		case kind == frameEntry && len(fields) == 2 && scope != nil && entryOf(fields[0], *scope):
			if !wanted {
				continue
			}
			if err := se.space.take(uint64(len(fields[0])+len(fields[1])), 1); err != nil {
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

// entryOf says that a disk key is one of this scope.
func entryOf(key []byte, scope hash16) bool {
	return len(key) > scopeEnd && slices.Contains(levels(), key[0]) && hash16(key[1:scopeEnd]) == scope
}

// holds says that a scope has this very key, and that no erasure has destroyed it.
func (k *keyring) holds(h hash16, id keyID) (bool, error) {
	if gone, err := exists(k.destroyedPath(id)); gone || err != nil {
		return false, err
	}
	if marked, err := exists(k.markPath(h)); marked || err != nil { // an erasure is under way
		return false, err
	}
	key, err := k.find(h)
	if errors.Is(err, storage.ErrDamaged) {
		return false, nil
	}
	return key != nil && key.id == id, err
}
