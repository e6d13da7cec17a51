package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// Put implements [storage.Store]. Small writes share a commit; a write that nothing differs in commits nothing.
func (s *Store) Put(ctx context.Context, writes []storage.Write) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	size := 0
	for i, w := range writes {
		if err := w.Validate(); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		size += w.Size()
	}
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	if err := se.space.take(uint64(size), 1); err != nil {
		return err
	}

	b := se.newBatch()
	defer func() { b.discard() }()
	for i, w := range writes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(w.Memories) == 0 && w.Turn == "" {
			continue
		}
		key, err := se.writableKey(w.Scope)
		if err != nil {
			return err
		}
		changes, err := se.plan(b.txn, key, w)
		if err != nil {
			return err
		}
		if err := b.add(changes); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	return b.commit()
}

// plan works out what a write changes on disk.
func (se *session) plan(txn *badgerdb.Txn, key *scopeKey, w storage.Write) ([]change, error) {
	at := now()
	changes := make([]change, 0, 2*len(w.Memories)+1)
	for i := range w.Memories {
		m := w.Memories[i] // a copy, of which only store-owned fields are set
		old, err := se.stored(txn, key, m.ID, at)
		if err != nil {
			return nil, err
		}
		created, updated, version := m.CreatedAt, m.UpdatedAt, uint64(1)
		if created == 0 {
			created = at
		}
		if updated == 0 {
			updated = at
		}
		if old.live {
			m.CreatedAt, m.UpdatedAt = old.memory.CreatedAt, old.memory.UpdatedAt
			if bytes.Equal(appendMemory(nil, &m), old.plain) {
				continue
			}
			created, version = old.memory.CreatedAt, old.version+1
		}
		m.CreatedAt, m.UpdatedAt = created, updated

		id := old.id
		place := memoryKey(key.hash, m.EventTime, id)
		if old.found && old.at != m.EventTime {
			changes = append(changes, change{key: memoryKey(key.hash, old.at, id), remove: true})
		}
		changes = append(changes,
			change{key: place, value: sealVersioned(key, place, version, appendMemory(nil, &m)), expires: m.ExpiresAt},
			change{key: nameKey(levelIndex, key.hash, id), value: appendTime(nil, m.EventTime), expires: m.ExpiresAt})
	}
	if w.Turn == "" {
		return changes, nil
	}
	return se.planTurn(txn, key, w, changes)
}

// planTurn adds the removal of passages that the turn no longer has, and the count that the next replacement needs.
// The count, not the passages, tells how far to look: single passages may have been deleted or have expired.
func (se *session) planTurn(txn *badgerdb.Txn, key *scopeKey, w storage.Write, changes []change) ([]change, error) {
	turnKey := nameKey(levelTurn, key.hash, se.keys.turn(key.hash, w.Turn))
	had := 0
	old, err := get(txn, turnKey)
	if err != nil {
		return nil, err
	}
	if len(old) == 12 {
		had = int(min(binary.BigEndian.Uint32(old), storage.MaxWriteMemories))
	}
	for seq := len(w.Memories); seq < had; seq++ {
		removal, _, err := se.planRemoval(txn, key, storage.TurnMemoryID(w.Turn, seq))
		if err != nil {
			return nil, err
		}
		changes = append(changes, removal...)
	}

	var last storage.Time // the count lives as long as the longest-lived passage
	for i, m := range w.Memories {
		if m.ExpiresAt == 0 {
			last = 0
			break
		}
		if i == 0 || m.ExpiresAt > last {
			last = m.ExpiresAt
		}
	}
	value := binary.BigEndian.AppendUint32(nil, uint32(len(w.Memories)))
	value = appendTime(value, last)
	switch {
	case len(w.Memories) == 0 && had > 0:
		changes = append(changes, change{key: turnKey, remove: true})
	case len(w.Memories) > 0 && !bytes.Equal(old, value):
		changes = append(changes, change{key: turnKey, value: value, expires: last})
	}
	return changes, nil
}

// stored is what is on disk under an id.
type stored struct {
	id      hash16       // hash of the id
	found   bool         // there is an index entry
	at      storage.Time // the event time that it points to
	live    bool         // readable and not expired; the fields below are set
	memory  storage.Memory
	plain   []byte
	version uint64
	damaged error
}

func (se *session) stored(txn *badgerdb.Txn, key *scopeKey, id string, at storage.Time) (stored, error) {
	idHash := se.keys.id(key.hash, id)
	pointer, err := get(txn, nameKey(levelIndex, key.hash, idHash))
	s := stored{id: idHash}
	if err != nil || len(pointer) != 8 {
		return s, err
	}
	s.found, s.at = true, timeAt(pointer)
	place := memoryKey(key.hash, s.at, idHash)
	value, err := get(txn, place)
	if err != nil || value == nil {
		return s, err
	}
	s.plain, s.version, err = openVersioned(nil, key, place, value)
	if err == nil {
		s.memory, err = decodeMemory(s.plain)
	}
	if err != nil {
		s.damaged = err
		return s, nil
	}
	s.memory.Scope, s.memory.Version = key.scope, s.version
	s.live = s.memory.ID == id && !expired(s.memory.ExpiresAt, at)
	return s, nil
}

// planRemoval lists what to delete for an id, and whether a live memory, or a damaged one, is among it.
func (se *session) planRemoval(txn *badgerdb.Txn, key *scopeKey, id string) ([]change, bool, error) {
	old, err := se.stored(txn, key, id, now())
	if err != nil || !old.found {
		return nil, false, err
	}
	return []change{
		{key: memoryKey(key.hash, old.at, old.id), remove: true},
		{key: nameKey(levelIndex, key.hash, old.id), remove: true},
	}, old.live || old.damaged != nil, nil
}

// get returns a copy of a value, nil if there is none.
func get(txn *badgerdb.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := item.ValueCopy(nil)
	if v == nil && err == nil {
		v = []byte{}
	}
	return v, err
}
