package badger

import (
	"context"
	"encoding/binary"
	"runtime/debug"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// pointer is the value of an index entry: event time 8 | version 8 | fingerprint 8 | expiry 8. It says where a memory
// lies, which of its versions is the last, so that an older one put in its place is noticed, and what it counts for in
// the scope's digest, so that a memory that is damaged or missing can be taken out of it. The fingerprint would let a
// guess at the text be confirmed, so it is masked with a keystream of scope, id and version.
type pointer struct {
	at      storage.Time
	version uint64
	print   uint64
	expires storage.Time
}

const pointerSize = 32

func (p pointer) encode(key *scopeKey, id hash16) []byte {
	b := appendTime(make([]byte, 0, pointerSize), p.at)
	b = binary.BigEndian.AppendUint64(b, p.version)
	b = binary.BigEndian.AppendUint64(b, p.print^key.maskOf(id, p.version))
	return binary.BigEndian.AppendUint64(b, uint64(p.expires))
}

func parsePointer(key *scopeKey, id hash16, value []byte) (p pointer, ok bool) {
	if len(value) != pointerSize {
		return p, false
	}
	p.at, p.version = timeAt(value), binary.BigEndian.Uint64(value[8:])
	p.print = binary.BigEndian.Uint64(value[16:]) ^ key.maskOf(id, p.version)
	p.expires = pointerExpiry(value)
	return p, true
}

// pointerExpiry needs no key.
func pointerExpiry(value []byte) storage.Time {
	return storage.Time(binary.BigEndian.Uint64(value[24:]))
}

func (k *scopeKey) maskOf(id hash16, version uint64) uint64 {
	var block [16]byte
	binary.BigEndian.PutUint64(block[:], version)
	copy(block[8:], id[:8])
	k.mask.Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[:])
}

// Digest implements [storage.Digester].
func (s *Store) Digest(ctx context.Context, scope storage.Scope) (d storage.Digest, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return d, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := scope.Validate(); err != nil {
		return d, err
	}
	key, err := se.keys.find(se.keys.scope(scope))
	if err != nil || key == nil {
		return d, err
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	return readDigest(txn, key)
}

// readDigest returns what is kept or, where that is lost or damaged, what the index entries add up to.
func readDigest(txn *badgerdb.Txn, key *scopeKey) (d storage.Digest, err error) {
	place := digestKey(key.hash)
	value, err := get(txn, place)
	if err != nil {
		return d, err
	}
	if value != nil {
		if plain, _, err := openVersioned(nil, key, place, value); err == nil && len(plain) == 16 {
			d.Memories = int(binary.BigEndian.Uint64(plain))
			d.Sum = binary.BigEndian.Uint64(plain[8:])
			return d, nil
		}
	}
	it := newIterator(txn, scopePrefix(levelIndex, key.hash))
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().Key()
		if len(k) != scopeEnd+hashSize {
			continue
		}
		err := it.Item().Value(func(value []byte) error {
			if p, ok := parsePointer(key, hash16(k[scopeEnd:]), value); ok {
				d = d.Plus(p.counted())
			}
			return nil
		})
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// counted is what the memory counts for.
func (p pointer) counted() storage.Digest { return storage.Digest{Memories: 1, Sum: p.print} }

func minus(d storage.Digest) storage.Digest {
	return storage.Digest{Memories: -d.Memories, Sum: -d.Sum}
}

func digestChange(key *scopeKey, d storage.Digest) change {
	plain := binary.BigEndian.AppendUint64(nil, uint64(d.Memories))
	plain = binary.BigEndian.AppendUint64(plain, d.Sum)
	place := digestKey(key.hash)
	return change{key: place, value: sealVersioned(key, place, 0, plain)}
}

// digestRoom is what a digest may take of a transaction, in bytes.
const digestRoom = 128

// tally is a scope's digest as of the running transaction.
type tally struct {
	key    *scopeKey
	digest storage.Digest
	dirty  bool
}

// addCounted is add for changes of a scope's memories, by which its digest changes in the same commit.
func (b *batch) addCounted(key *scopeKey, changes []change, by storage.Digest) error {
	if by == (storage.Digest{}) {
		return b.add(changes)
	}
	t := b.tallies[key.hash]
	if t == nil {
		d, err := readDigest(b.txn, key)
		if err != nil {
			return err
		}
		t = &tally{key: key, digest: d}
		b.tallies[key.hash] = t
	}
	if err := b.addBeside(changes, 1, digestRoom); err != nil {
		return err
	}
	t.digest, t.dirty = t.digest.Plus(by), true
	return nil
}

// writeTallies puts the digests that have changed into the running transaction, for which addCounted kept room.
func (b *batch) writeTallies() error {
	for _, t := range b.tallies {
		if !t.dirty {
			continue
		}
		if err := digestChange(t.key, t.digest).apply(b.txn); err != nil {
			return err
		}
		t.dirty = false
	}
	return nil
}
