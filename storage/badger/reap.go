package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime/debug"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// What was deleted or replaced keeps its bytes in the files until Badger comes to compact them. Reap has them compacted
// where they are many, or where the oldest of them are older than wasteAge, which is counted over restarts.
const (
	wasteBytes = 8 << 20
	wasteAge   = 24 * time.Hour
)

// reapBatch is how many entries are removed before others get their turn to write.
const reapBatch = 500

// freshWaste is how long what was deleted may still be seen by a reader, for which Badger keeps it through a compaction.
const freshWaste = time.Minute

// waste is what has been deleted and is still in the files. Owned by the holder of the turn.
type waste struct {
	bytes int          // since the store was opened, without records, most of which are short-lived and compacted by themselves
	since storage.Time // the first deletion, 0 = none
	last  storage.Time // the last one since the store was opened
}

// wasted is about what the bytes of a memory that is going amount to.
func wasted(old stored) int { return len(old.plain) + pointerSize + 2*(scopeEnd+hashSize) }

// Reap implements [storage.Reaper]. Looking costs some microseconds per memory and keeps nobody waiting; writers wait for
// at most reapBatch removals, and while the newest writes are moved to where they can be compacted.
func (s *Store) Reap(ctx context.Context, now storage.Time) (removed int, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	n, err := se.reapLevel(ctx, levelIndex, now, se.reapMemories)
	if removed += n; err != nil {
		return removed, err
	}
	if _, err := se.reapLevel(ctx, levelTurn, now, se.reapEntries); err != nil {
		return removed, err
	}
	for _, b := range storage.Buckets() {
		n, err := se.reapLevel(ctx, levelOf(b), now, se.reapEntries)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, se.compactWaste(ctx, now)
}

// reapLevel hands the keys of a level that have expired to remove, some at a time, and the turn with them.
func (se *session) reapLevel(ctx context.Context, level byte, now storage.Time,
	remove func(keys [][]byte, now storage.Time) (int, error),
) (removed int, err error) {
	for seek := []byte{level}; seek != nil; {
		var keys [][]byte
		if keys, seek, err = se.expiredKeys(ctx, level, seek, now); err != nil || len(keys) == 0 {
			return removed, err
		}
		n, err := func() (int, error) {
			if err := se.acquire(ctx); err != nil {
				return 0, err
			}
			defer se.release()
			return remove(keys, now)
		}()
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// expiredKeys returns up to reapBatch keys from seek on, and where to go on, nil at the end.
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

// clearExpiry reads the expiry that stands in the clear in an entry, 0 if it has none or is not understood.
func clearExpiry(level byte, value []byte) storage.Time {
	switch {
	case level == levelIndex && len(value) == pointerSize:
		return pointerExpiry(value)
	case level == levelTurn && len(value) == 12:
		return timeAt(value[4:])
	case level != levelIndex && level != levelTurn && len(value) >= recordHeaderSize && value[0] == recordFormat:
		return storage.Time(binary.BigEndian.Uint64(value[recordExpiryAt:]))
	}
	return 0
}

// reapMemories removes the memories that these index entries point to, unless they have changed meanwhile. Needs the turn.
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
		place := memoryKey(h, timeAt(value), id)
		changes := []change{{key: place, remove: true}, {key: k, remove: true}}
		se.waste.bytes += sizeAt(b.txn, place)
		key, err := se.keys.find(h)
		if err != nil && !errors.Is(err, storage.ErrDamaged) {
			return 0, err
		}
		if err != nil || key == nil { // a lost key: should it come back, the digest is made of what is left then
			err = b.add(append(changes, change{key: digestKey(h), remove: true}))
		} else if p, ok := parsePointer(key, id, value); ok {
			err = b.addCounted(key, changes, minus(p.counted()))
		}
		if err != nil {
			return 0, err
		}
		removed++
	}
	return removed, se.commitWaste(b)
}

// reapEntries removes turns or records. Needs the turn.
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
			se.waste.bytes += len(value)
		}
	}
	_, stale := replacedAt(b.txn, removals)
	if err := b.add(removals); err != nil {
		return 0, err
	}
	if err := se.commitWaste(b); err != nil {
		return 0, err
	}
	se.dropChunks(stale)
	se.waste.bytes += len(stale) * inlineSize // at least
	return len(removals), nil
}

func sizeAt(txn *badgerdb.Txn, key []byte) int {
	if item, err := txn.Get(key); err == nil {
		return int(item.EstimatedSize())
	}
	return 0
}

// The level of marks holds two keys: that there is waste, with the time since when, and one that lives for a moment.
var (
	wasteKey = []byte{levelMark, 'w'}
	flushKey = []byte{levelMark, 'f'}
)

// commitWaste commits what deletes something, and notes in the same commit that there is waste now. Needs the turn.
func (se *session) commitWaste(b *batch) error { return se.commitWasteBy(b, b.commit) }

func (se *session) commitWasteBy(b *batch, commit func() error) error {
	since := se.waste.since
	if since == 0 && b.entries > 0 {
		since = now()
		if err := b.add([]change{{key: wasteKey, value: appendTime(nil, since)}}); err != nil {
			return err
		}
	}
	if err := commit(); err != nil {
		return err
	}
	if b.entries > 0 {
		se.waste.since, se.waste.last = since, now()
	}
	return nil
}

// loadWaste reads what commitWaste has noted.
func (se *session) loadWaste() error {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	value, err := get(txn, wasteKey)
	if len(value) == 8 {
		se.waste.since = timeAt(value)
	}
	return err
}

// compactWaste has Badger rewrite its files without what was deleted, if it is due.
func (se *session) compactWaste(ctx context.Context, now storage.Time) error {
	if err := se.acquire(ctx); err != nil {
		return err
	}
	w := se.waste
	due := w.since != 0 && (w.bytes >= wasteBytes || now >= w.since+storage.Time(wasteAge.Milliseconds()))
	if !due || se.backups.Load() > 0 { // a backup reads what was there when it began, and Badger keeps it
		se.release()
		return nil
	}
	started := storage.TimeOf(time.Now())
	if err := se.compact(); err != nil {
		return err
	}
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	left := waste{}
	if se.waste.last > started-storage.Time(freshWaste.Milliseconds()) { // some of it may have stayed: once more, a day on
		left = waste{since: started, last: se.waste.last}
	}
	b := se.newBatch()
	defer b.discard()
	mark := change{key: wasteKey, value: appendTime(nil, left.since), remove: left.since == 0}
	if err := b.add([]change{mark}); err != nil {
		return err
	}
	if err := b.commit(); err != nil {
		return err
	}
	se.waste = left
	return nil
}

// compact takes the turn over, and gives it back as soon as writes can go on beside it.
func (se *session) compact() error {
	se.files.Lock()
	defer se.files.Unlock()
	note, err := se.unnote()
	defer note()
	err = func() error {
		defer se.release()
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

// flush moves what is in memory tables and their logs to tables of the tree: Badger does so before it drops a prefix,
// and offers no other way. Needs the turn.
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
