package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
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
		n := w.Size()
		if n > s.cfg.MaxWrite() {
			return fmt.Errorf("write %d: %d bytes are more than %d: %w", i, n, s.cfg.MaxWrite(), storage.ErrInvalid)
		}
		size += n
	}
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	if err := se.space.take(uint64(size), 1); err != nil {
		return err
	}

	b := se.newBatch()
	defer b.discard()
	wasted := se.waste.bytes
	pace := background.Begin()
	for i, w := range writes {
		pace.Yield()
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
		changes, counts, err := se.plan(b.txn, key, w)
		if err != nil {
			return err
		}
		if err := b.addCounted(key, changes, counts); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	if se.waste.bytes != wasted {
		return se.commitWaste(b)
	}
	return b.commit()
}

// plan works out what a write changes on disk, and in the digest. Needs the turn.
func (se *session) plan(txn *badgerdb.Txn, key *scopeKey, w storage.Write) (changes []change, counts storage.Digest, err error) {
	at := now()
	changes = make([]change, 0, 2*len(w.Memories)+1)
	for i := range w.Memories {
		m := w.Memories[i] // a copy, of which only store-owned fields are set
		old, err := se.stored(txn, key, m.ID, at)
		if err != nil {
			return nil, counts, err
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
			if bytes.Equal(storage.AppendMemory(nil, &m), old.plain) {
				continue
			}
			created, version = old.memory.CreatedAt, old.version+1
		}
		m.CreatedAt, m.UpdatedAt = created, updated

		id := old.id
		place := memoryKey(key.hash, m.EventTime, id)
		if old.found {
			counts = counts.Plus(minus(old.counted()))
			se.waste.bytes += wasted(old)
			if old.at != m.EventTime {
				changes = append(changes, change{key: memoryKey(key.hash, old.at, id), remove: true})
			}
		}
		p := pointer{at: m.EventTime, version: version, print: m.Fingerprint(), expires: m.ExpiresAt}
		counts = counts.Plus(p.counted())
		changes = append(changes,
			change{key: place, value: sealVersioned(key, place, version, storage.AppendMemory(nil, &m))},
			change{key: nameKey(levelIndex, key.hash, id), value: p.encode(key, id)})
	}
	if w.Turn == "" {
		return changes, counts, nil
	}
	turn, removed, err := se.planTurn(txn, key, w)
	return append(changes, turn...), counts.Plus(removed), err
}

// planTurn adds the removal of passages that the turn no longer has, and the count that the next replacement needs.
// The count, not the passages, tells how far to look: single passages may have been deleted or have expired.
func (se *session) planTurn(txn *badgerdb.Txn, key *scopeKey, w storage.Write) (changes []change, counts storage.Digest, err error) {
	turnKey := nameKey(levelTurn, key.hash, se.keys.turn(key.hash, w.Turn))
	had := 0
	old, err := get(txn, turnKey)
	if err != nil {
		return nil, counts, err
	}
	if len(old) == 12 {
		had = int(min(binary.BigEndian.Uint32(old), storage.MaxWriteMemories))
	}
	for seq := len(w.Memories); seq < had; seq++ {
		r, err := se.planRemoval(txn, key, storage.TurnMemoryID(w.Turn, seq))
		if err != nil {
			return nil, counts, err
		}
		changes, counts = append(changes, r.changes...), counts.Plus(r.counts)
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
		changes = append(changes, change{key: turnKey, value: value})
	}
	return changes, counts, nil
}

// stored is what is on disk under an id.
type stored struct {
	id      hash16 // hash of the id
	found   bool   // there is an index entry, which is
	pointer        // this
	live    bool   // readable and not expired; the fields below are set
	memory  storage.Memory
	plain   []byte
	damaged error
}

func (se *session) stored(txn *badgerdb.Txn, key *scopeKey, id string, at storage.Time) (stored, error) {
	idHash := se.keys.id(key.hash, id)
	value, err := get(txn, nameKey(levelIndex, key.hash, idHash))
	s := stored{id: idHash}
	if err != nil || value == nil {
		return s, err
	}
	if s.pointer, s.found = parsePointer(key, idHash, value); !s.found {
		return s, nil
	}
	place := memoryKey(key.hash, s.at, idHash)
	value, err = get(txn, place)
	if err != nil || value == nil {
		return s, err
	}
	version := uint64(0)
	s.plain, version, err = openVersioned(nil, key, place, value)
	if err == nil && version != s.version {
		err = fmt.Errorf("version %d in the place of %d: %w", version, s.version, storage.ErrDamaged)
	}
	if err == nil {
		s.memory, err = storage.DecodeMemory(s.plain)
	}
	if err != nil {
		s.damaged = err
		return s, nil
	}
	s.memory.Scope, s.memory.Version = key.scope, s.version
	s.live = s.memory.ID == id && !expired(s.memory.ExpiresAt, at)
	return s, nil
}

// removal is what to delete for an id.
type removal struct {
	changes []change
	counts  storage.Digest
	had     bool // a live memory, or a damaged one, is among it
}

func (se *session) planRemoval(txn *badgerdb.Txn, key *scopeKey, id string) (removal, error) {
	old, err := se.stored(txn, key, id, now())
	if err != nil || !old.found {
		return removal{}, err
	}
	se.waste.bytes += wasted(old)
	return removal{
		changes: []change{
			{key: memoryKey(key.hash, old.at, old.id), remove: true},
			{key: nameKey(levelIndex, key.hash, old.id), remove: true},
		},
		counts: minus(old.counted()),
		had:    old.live || old.damaged != nil,
	}, nil
}

// view lets see look at a value, which is not copied: it is valid until see returns. Where there is none it is nil.
func view(txn *badgerdb.Txn, key []byte, see func(value []byte) error) error {
	item, err := txn.Get(key)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return see(nil)
	}
	if err != nil {
		return err
	}
	return item.Value(see)
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
