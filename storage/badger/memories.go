package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// Put implements [storage.Store]. Small writes share a commit; a write that
// changes nothing commits nothing.
func (s *Store) Put(ctx context.Context, writes []storage.Write) error {
	size := 0
	for i, w := range writes {
		if err := w.Validate(); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
		n := w.Size()
		if n > s.cfg.MaxWrite() {
			return fmt.Errorf("write %d: %d bytes, more than %d: %w", i, n, s.cfg.MaxWrite(), storage.ErrInvalid)
		}
		size += n
	}
	return s.write(ctx, size, forWrites, func(se *session, b *batch) error {
		garbageBefore := se.garbage.bytes
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
			changes, delta, err := se.plan(b.txn, key, w)
			if err != nil {
				return err
			}
			if err := b.addWithDigest(key, changes, delta); err != nil {
				return fmt.Errorf("write %d: %w", i, err)
			}
		}
		if se.garbage.bytes != garbageBefore {
			return se.commitDeletes(b, b.commit)
		}
		return b.commit()
	})
}

// plan returns what a write changes on disk and in the digest. Needs writeLock.
func (se *session) plan(txn *badgerdb.Txn, key *scopeKey, w storage.Write) (changes []change, delta storage.Digest, err error) {
	at := now()
	changes = make([]change, 0, 2*len(w.Memories)+1)
	for i := range w.Memories {
		m := w.Memories[i] // a copy, in which only the store's fields are set
		old, err := se.lookup(txn, key, m.ID, at)
		if err != nil {
			return nil, delta, err
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
		diskKey := memoryKey(key.hash, m.EventTime, id)
		if old.found {
			delta = delta.Minus(old.digest())
			se.garbage.bytes += garbageSize(old)
			if old.at != m.EventTime {
				changes = append(changes, change{key: memoryKey(key.hash, old.at, id), remove: true})
			}
		}
		p := pointer{at: m.EventTime, version: version, fingerprint: m.Fingerprint(), expires: m.ExpiresAt}
		delta = delta.Plus(p.digest())
		changes = append(changes,
			change{key: diskKey, value: sealVersioned(key, diskKey, version, storage.AppendMemory(nil, &m))},
			change{key: nameKey(levelIndex, key.hash, id), value: p.encode(key, id)})
	}
	if w.Turn == "" {
		return changes, delta, nil
	}
	turn, removed, err := se.planTurn(txn, key, w)
	return append(changes, turn...), delta.Plus(removed), err
}

// planTurn returns the removal of passages that the turn no longer has, and the
// new passage count. The removal relies on the stored count, because single
// passages may have been deleted or have expired.
func (se *session) planTurn(txn *badgerdb.Txn, key *scopeKey, w storage.Write) (changes []change, delta storage.Digest, err error) {
	turnKey := nameKey(levelTurn, key.hash, se.keys.turn(key.hash, w.Turn))
	had := 0
	old, err := get(txn, turnKey)
	if err != nil {
		return nil, delta, err
	}
	if len(old) == turnSize {
		had = int(min(binary.BigEndian.Uint32(old), storage.MaxWriteMemories))
	}
	for seq := len(w.Memories); seq < had; seq++ {
		r, err := se.planRemoval(txn, key, storage.TurnMemoryID(w.Turn, seq))
		if err != nil {
			return nil, delta, err
		}
		changes, delta = append(changes, r.changes...), delta.Plus(r.delta)
	}

	var last storage.Time // the count expires with the last passage
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
	return changes, delta, nil
}

// turnSize is the size of the value of a turn: passages 4 | expiry 8.
const turnSize = 12

// found is what is on disk under an id.
type found struct {
	id      hash16 // hash of the id
	found   bool   // there is an index entry:
	pointer        // this one
	live    bool   // readable and not expired, so that memory and plain are set
	memory  storage.Memory
	plain   []byte
	damaged error
}

func (se *session) lookup(txn *badgerdb.Txn, key *scopeKey, id string, at storage.Time) (found, error) {
	idHash := se.keys.id(key.hash, id)
	value, err := get(txn, nameKey(levelIndex, key.hash, idHash))
	f := found{id: idHash}
	if err != nil || value == nil {
		return f, err
	}
	if f.pointer, f.found = parsePointer(key, idHash, value); !f.found {
		return f, nil
	}
	diskKey := memoryKey(key.hash, f.at, idHash)
	value, err = get(txn, diskKey)
	if err != nil || value == nil {
		return f, err
	}
	version := uint64(0)
	f.plain, version, err = openVersioned(nil, key, diskKey, value)
	if err == nil && version != f.version {
		err = fmt.Errorf("version %d in the place of %d: %w", version, f.version, storage.ErrDamaged)
	}
	if err == nil {
		f.memory, err = storage.DecodeMemory(f.plain)
	}
	if err != nil {
		f.damaged = err
		return f, nil
	}
	f.memory.Scope, f.memory.Version = key.scope, f.version
	f.live = f.memory.ID == id && !expired(f.memory.ExpiresAt, at)
	return f, nil
}

// removal is the removal of a memory; it is empty if there is no index entry.
type removal struct {
	changes []change
	delta   storage.Digest
	existed bool // a live or damaged memory
}

func (se *session) planRemoval(txn *badgerdb.Txn, key *scopeKey, id string) (removal, error) {
	old, err := se.lookup(txn, key, id, now())
	if err != nil || !old.found {
		return removal{}, err
	}
	se.garbage.bytes += garbageSize(old)
	return removal{
		changes: []change{
			{key: memoryKey(key.hash, old.at, old.id), remove: true},
			{key: nameKey(levelIndex, key.hash, old.id), remove: true},
		},
		delta:   storage.Digest{}.Minus(old.digest()),
		existed: old.live || old.damaged != nil,
	}, nil
}

// Delete implements [storage.Store]. Calls with thousands of ids take several
// commits. See the package doc for what stays on disk.
func (s *Store) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	if err := scope.Validate(); err != nil {
		return 0, err
	}
	n := 0
	err := s.write(ctx, len(ids)*200, forDeletes, func(se *session, b *batch) error {
		key, err := se.keys.find(se.keys.scope(scope))
		if err != nil || key == nil {
			return err
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !validID(id) {
				continue
			}
			r, err := se.planRemoval(b.txn, key, id)
			if err != nil {
				return err
			}
			if r.existed {
				n++
			}
			if err := b.addWithDigest(key, r.changes, r.delta); err != nil {
				return err
			}
		}
		return se.commitDeletes(b, b.commit)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// validID reports whether there can be a memory with this id.
func validID(id string) bool { return id != "" && len(id) <= storage.MaxID }

// Memory implements [storage.Store].
func (s *Store) Memory(ctx context.Context, scope storage.Scope, id string) (m storage.Memory, err error) {
	err = s.read(ctx, scope, func(se *session, txn *badgerdb.Txn, key *scopeKey) error {
		if key == nil || !validID(id) {
			return storage.ErrNotFound
		}
		f, err := se.lookup(txn, key, id, now())
		switch {
		case err != nil:
			return err
		case f.damaged != nil:
			return f.damaged
		case !f.live:
			return storage.ErrNotFound
		}
		m = f.memory
		return nil
	})
	return m, err
}

// Probe implements [storage.Prober]. It looks only for the index entry; filters
// mostly answer if there is none.
func (s *Store) Probe(ctx context.Context, refs []storage.MemoryRef) ([]bool, error) {
	if err := validateAll(refs); err != nil {
		return nil, err
	}
	found := make([]bool, len(refs))
	err := s.do(ctx, func(se *session) error {
		txn := se.db.NewTransaction(false)
		defer txn.Discard()
		for i, r := range refs {
			if err := ctx.Err(); err != nil {
				return err
			}
			key, err := se.keys.find(se.keys.scope(r.Scope))
			if err != nil {
				return err
			}
			if key == nil {
				continue
			}
			_, err = txn.Get(nameKey(levelIndex, key.hash, se.keys.id(key.hash, r.ID)))
			if err != nil && !errors.Is(err, badgerdb.ErrKeyNotFound) {
				return err
			}
			found[i] = err == nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Digest implements [storage.Digester].
func (s *Store) Digest(ctx context.Context, scope storage.Scope) (d storage.Digest, err error) {
	err = s.read(ctx, scope, func(_ *session, txn *badgerdb.Txn, key *scopeKey) (err error) {
		if key != nil {
			d, err = readDigest(txn, key)
		}
		return err
	})
	return d, err
}

// Scan implements [storage.Store]. It opens every memory of the scope from the
// cursor on until the page is full.
func (s *Store) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (page storage.Page, err error) {
	err = s.read(ctx, scope, func(se *session, txn *badgerdb.Txn, key *scopeKey) error {
		tag := se.keys.scanTag(se.keys.scope(scope), q)
		after, err := parseCursor(q.After, tag)
		if err != nil || key == nil {
			return err
		}
		sc := scanner{key: key, query: q, after: after, now: now(), limit: storage.PageLimit(q.Limit)}
		if err := sc.run(ctx, txn); err != nil {
			return err
		}
		s.damaged.Add(uint64(sc.page.Damaged))
		if sc.more {
			last := sc.page.Memories[len(sc.page.Memories)-1]
			sc.page.Next = cursor{at: last.EventTime, id: last.ID}.encode(tag)
		}
		page = sc.page
		return nil
	})
	return page, err
}

// Scopes implements [storage.ScopeLister], in order of hashes. It reads the
// keyring only, except for the last page, which counts scopes with data and no
// key as damaged: their names are lost with the key.
func (s *Store) Scopes(ctx context.Context, after string, limit int) (page storage.ScopePage, err error) {
	err = s.do(ctx, func(se *session) error {
		tag := cursorTag{se.keys.namer, se.keys.hash("scopes")}
		from, err := parseCursor(after, tag)
		if err != nil {
			return err
		}
		last := ""
		err = se.keys.each(func(h hash16) error {
			name := string(h[:])
			if from != nil && name <= from.id {
				return ctx.Err()
			}
			if len(page.Scopes) >= storage.PageLimit(limit) {
				page.Next = cursor{id: last}.encode(tag)
				return fs.SkipAll
			}
			last = name
			scope, err := se.keys.scopeOf(h)
			switch {
			case errors.Is(err, fs.ErrNotExist): // it was just erased
			case errors.Is(err, storage.ErrDamaged):
				page.Damaged++
			case err != nil:
				return err
			default:
				page.Scopes = append(page.Scopes, scope)
			}
			return ctx.Err()
		})
		if err != nil || page.Next != "" {
			return err
		}
		lost, err := se.countKeyless(ctx)
		page.Damaged += lost
		return err
	})
	return page, err
}
