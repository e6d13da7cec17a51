package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// Deleted and replaced values keep their bytes in the files until Badger
// compacts them. Reap requests that when there are maxGarbage bytes of them, or
// when the oldest is older than maxGarbageAge, which is counted across
// restarts.
const (
	maxGarbage    = 8 << 20
	maxGarbageAge = 24 * time.Hour
)

// reapBatch is how many entries are removed before other writers get the write
// lock.
const reapBatch = 500

// readerGrace is how long a reader may still see what was deleted. Badger keeps
// such values through a compaction.
const readerGrace = time.Minute

// garbage is what was deleted and is still in the files. Guarded by writeLock.
type garbage struct {
	bytes int          // since the store was opened; without most records, which are short-lived and soon compacted anyway
	since storage.Time // the first deletion, 0 = none
	last  storage.Time // the last deletion since the store was opened
}

// garbageSize estimates the bytes of a memory that is being removed.
func garbageSize(old found) int { return len(old.plain) + pointerSize + 2*(scopeEnd+hashSize) }

// Reap implements [storage.Reaper]. Looking costs some microseconds per memory
// and delays no one. Writers wait for up to reapBatch removals, and while the
// last writes are moved to tables that can be compacted.
func (s *Store) Reap(ctx context.Context, now storage.Time) (removed int, err error) {
	err = s.do(ctx, func(se *session) error {
		if err := se.reapLevel(ctx, levelIndex, now, &removed, se.reapMemories); err != nil {
			return err
		}
		var turns int // which are no memories and no records
		if err := se.reapLevel(ctx, levelTurn, now, &turns, se.reapEntries); err != nil {
			return err
		}
		for _, b := range storage.Buckets() {
			if err := se.reapLevel(ctx, levelOf(b), now, &removed, se.reapEntries); err != nil {
				return err
			}
		}
		return se.compactIfDue(ctx, max(now, storage.Now())) // whatever the caller takes for now
	})
	return removed, err
}

// Newest implements [storage.Reaper].
func (s *Store) Newest(ctx context.Context) (newest storage.Time, err error) {
	err = s.do(ctx, func(se *session) error {
		txn := se.db.NewTransaction(false)
		defer txn.Discard()
		it := newIterator(txn, []byte{levelIndex})
		defer it.Close()
		n, pace := 0, background.Begin()
		for it.Seek([]byte{levelIndex}); it.Valid(); it.Next() {
			pace.Yield()
			if n++; n%64 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := it.Item().Value(func(value []byte) error {
				if len(value) == pointerSize {
					newest = max(newest, parseTime(value))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return newest, err
}

// reapLevel calls remove with the expired keys of a level, some at a time,
// holding writeLock, and adds to removed what it returns.
func (se *session) reapLevel(ctx context.Context, level byte, now storage.Time, removed *int,
	remove func(keys [][]byte, now storage.Time) (int, error),
) error {
	for seek := []byte{level}; seek != nil; {
		keys, next, err := se.expiredKeys(ctx, level, seek, now)
		if err != nil || len(keys) == 0 {
			return err
		}
		seek = next
		err = func() error {
			if err := se.lockWrites(ctx); err != nil {
				return err
			}
			defer se.unlockWrites()
			n, err := remove(keys, now)
			*removed += n
			return err
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// expiredKeys returns up to reapBatch keys from seek on, and where to continue,
// nil at the end.
func (se *session) expiredKeys(ctx context.Context, level byte, seek []byte, now storage.Time) (keys [][]byte, next []byte, err error) {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, []byte{level})
	defer it.Close()
	n, pace := 0, background.Begin()
	for it.Seek(seek); it.Valid(); it.Next() {
		pace.Yield()
		if n++; n%64 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		item := it.Item()
		if len(item.Key()) != scopeEnd+hashSize {
			continue
		}
		if len(keys) == reapBatch {
			return keys, item.KeyCopy(nil), nil
		}
		err := item.Value(func(value []byte) error {
			if expired(clearExpiry(level, value), now) {
				keys = append(keys, item.KeyCopy(nil))
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return keys, nil, nil
}

// clearExpiry returns the expiry that an entry has in the clear, 0 if it has
// none or is malformed.
func clearExpiry(level byte, value []byte) storage.Time {
	switch {
	case level == levelIndex && len(value) == pointerSize:
		return pointerExpiry(value)
	case level == levelTurn && len(value) == turnSize:
		return parseTime(value[4:])
	case level != levelIndex && level != levelTurn && len(value) >= recordHeaderSize && value[0] == recordFormat:
		return storage.Time(binary.BigEndian.Uint64(value[recordExpiryAt:]))
	}
	return 0
}

// reapMemories removes the memories of these index entries, unless they have
// changed meanwhile. Needs writeLock.
func (se *session) reapMemories(keys [][]byte, now storage.Time) (removed int, err error) {
	b := se.newBatch()
	defer b.discard()
	for _, k := range keys {
		value, err := get(b.txn, k)
		if err != nil {
			return 0, err
		}
		if !expired(clearExpiry(levelIndex, value), now) {
			continue
		}
		h, id := hash16(k[1:scopeEnd]), hash16(k[scopeEnd:])
		diskKey := memoryKey(h, parseTime(value), id)
		changes := []change{{key: diskKey, remove: true}, {key: k, remove: true}}
		if item, err := b.txn.Get(diskKey); err == nil {
			se.garbage.bytes += int(item.EstimatedSize())
		}
		key, err := se.keys.find(h)
		if err != nil && !errors.Is(err, storage.ErrDamaged) {
			return 0, err
		}
		if err != nil || key == nil { // the key is lost; if it comes back, the digest is computed from what is left
			err = b.add(append(changes, change{key: digestKey(h), remove: true}))
		} else if p, ok := parsePointer(key, id, value); ok {
			err = b.addWithDigest(key, changes, storage.Digest{}.Minus(p.digest()))
		}
		if err != nil {
			return 0, err
		}
		removed++
	}
	return removed, se.commitDeletes(b, b.commit)
}

// reapEntries removes turns or records. Needs writeLock.
func (se *session) reapEntries(keys [][]byte, now storage.Time) (removed int, err error) {
	b := se.newBatch()
	defer b.discard()
	var removals []change
	for _, k := range keys {
		value, err := get(b.txn, k)
		if err != nil {
			return 0, err
		}
		if expired(clearExpiry(k[0], value), now) {
			removals = append(removals, change{key: k, remove: true})
			se.garbage.bytes += len(value)
		}
	}
	_, staleChunks := existing(b.txn, removals)
	if err := b.add(removals); err != nil {
		return 0, err
	}
	if err := se.commitDeletes(b, b.commit); err != nil {
		return 0, err
	}
	se.dropChunks(staleChunks)
	se.garbage.bytes += len(staleChunks) * inlineSize // at least
	return len(removals), nil
}

// garbageKey holds the time since when there is garbage; flushKey exists only
// while flush runs.
var (
	garbageKey = []byte{levelMark, 'w'}
	flushKey   = []byte{levelMark, 'f'}
)

// commitDeletes commits, with b.commit or b.commitVolatile, changes that leave
// garbage, and records in the same commit that there is some. Needs writeLock.
func (se *session) commitDeletes(b *batch, commit func() error) error {
	since := se.garbage.since
	if since == 0 && b.entries > 0 {
		since = now()
		if err := b.add([]change{{key: garbageKey, value: appendTime(nil, since)}}); err != nil {
			return err
		}
	}
	if err := commit(); err != nil {
		return err
	}
	if b.entries > 0 {
		se.garbage.since, se.garbage.last = since, now()
	}
	return nil
}

// loadGarbage reads what commitDeletes has recorded.
func (se *session) loadGarbage() error {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	value, err := get(txn, garbageKey)
	if len(value) == 8 {
		se.garbage.since = parseTime(value)
	}
	return err
}

// compactIfDue makes Badger rewrite its files without the garbage.
func (se *session) compactIfDue(ctx context.Context, now storage.Time) error {
	if err := se.lockWrites(ctx); err != nil {
		return err
	}
	g := se.garbage
	due := g.since != 0 && (g.bytes >= maxGarbage || now >= g.since+storage.Time(maxGarbageAge.Milliseconds()))
	if !due || se.backups.Load() > 0 { // Badger keeps what a running backup can still read
		se.unlockWrites()
		return nil
	}
	started := storage.Now()
	if err := se.compact(); err != nil {
		return err
	}
	if err := se.lockWrites(ctx); err != nil {
		return err
	}
	defer se.unlockWrites()
	left := garbage{}
	if se.garbage.last > started-storage.Time(readerGrace.Milliseconds()) { // some may be left: compact again in a day
		left = garbage{since: started, last: se.garbage.last}
	}
	b := se.newBatch()
	defer b.discard()
	mark := change{key: garbageKey, value: appendTime(nil, left.since), remove: left.since == 0}
	if err := b.add([]change{mark}); err != nil {
		return err
	}
	if err := b.commit(); err != nil {
		return err
	}
	se.garbage = left
	return nil
}

// compact is called with writeLock held, and releases it as soon as writes can
// continue.
func (se *session) compact() error {
	se.compacting.Lock()
	defer se.compacting.Unlock()
	resume, err := se.inventory.suspend()
	defer resume()
	err = func() error {
		defer se.unlockWrites() // also if Badger panics
		if err != nil {
			return err
		}
		return se.flush()
	}()
	if err != nil {
		return err
	}
	return se.db.Flatten(1)
}

// flush moves what is in memory tables and their logs to tables on disk. Badger
// does so before it drops a prefix, and offers no other way. Needs writeLock.
func (se *session) flush() error {
	b := se.newBatch()
	defer b.discard()
	if err := b.add([]change{{key: flushKey, value: bytes.Clone(flushKey)}}); err != nil {
		return err
	}
	if err := b.commit(); err != nil {
		return err
	}
	return se.db.DropPrefix(flushKey)
}
