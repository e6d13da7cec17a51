package badger

import (
	"encoding/binary"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// pointer is the value of an index entry: event time 8 | version 8 |
// fingerprint 8 | expiry 8. It gives a memory's disk key; its latest version,
// so that an older one in its place is noticed; and its fingerprint, so that a
// damaged or missing memory can be taken out of the scope's digest. A
// fingerprint could confirm a guess at the text, so it is masked with a
// keystream of scope, id and version.
type pointer struct {
	at          storage.Time
	version     uint64
	fingerprint uint64
	expires     storage.Time
}

const pointerSize = 32

func (p pointer) encode(key *scopeKey, id hash16) []byte {
	b := appendTime(make([]byte, 0, pointerSize), p.at)
	b = binary.BigEndian.AppendUint64(b, p.version)
	b = binary.BigEndian.AppendUint64(b, p.fingerprint^key.maskOf(id, p.version))
	return binary.BigEndian.AppendUint64(b, uint64(p.expires))
}

func parsePointer(key *scopeKey, id hash16, value []byte) (p pointer, ok bool) {
	if len(value) != pointerSize {
		return p, false
	}
	p.at, p.version = parseTime(value), binary.BigEndian.Uint64(value[8:])
	p.fingerprint = binary.BigEndian.Uint64(value[16:]) ^ key.maskOf(id, p.version)
	p.expires = pointerExpiry(value)
	return p, true
}

// pointerExpiry needs no key.
func pointerExpiry(value []byte) storage.Time {
	return storage.Time(binary.BigEndian.Uint64(value[24:]))
}

// digest returns the digest of the memory alone.
func (p pointer) digest() storage.Digest { return storage.Digest{Memories: 1, Sum: p.fingerprint} }

func (k *scopeKey) maskOf(id hash16, version uint64) uint64 {
	var block [16]byte
	binary.BigEndian.PutUint64(block[:], version)
	copy(block[8:], id[:8])
	k.mask.Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[:])
}

// readDigest returns the stored digest of a scope. If it is lost or damaged, it
// returns the sum of the index entries.
func readDigest(txn *badgerdb.Txn, key *scopeKey) (d storage.Digest, err error) {
	diskKey := digestKey(key.hash)
	value, err := get(txn, diskKey)
	if err != nil {
		return d, err
	}
	if value != nil {
		if plain, _, err := openVersioned(nil, key, diskKey, value); err == nil && len(plain) == 16 {
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
				d = d.Plus(p.digest())
			}
			return nil
		})
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

func digestChange(key *scopeKey, d storage.Digest) change {
	plain := binary.BigEndian.AppendUint64(nil, uint64(d.Memories))
	plain = binary.BigEndian.AppendUint64(plain, d.Sum)
	diskKey := digestKey(key.hash)
	return change{key: diskKey, value: sealVersioned(key, diskKey, 0, plain)}
}

// maxDigestSize is what a digest may take of a transaction, in bytes.
const maxDigestSize = 128

// runningDigest is a scope's digest as of the running transaction.
type runningDigest struct {
	key    *scopeKey
	digest storage.Digest
	dirty  bool
}

// addWithDigest is add for changes of a scope's memories that change its digest
// by delta, in the same commit.
func (b *batch) addWithDigest(key *scopeKey, changes []change, delta storage.Digest) error {
	if delta == (storage.Digest{}) {
		return b.add(changes)
	}
	r := b.digests[key.hash]
	if r == nil {
		d, err := readDigest(b.txn, key)
		if err != nil {
			return err
		}
		r = &runningDigest{key: key, digest: d}
		b.digests[key.hash] = r
	}
	if err := b.addReserving(changes, 1, maxDigestSize); err != nil {
		return err
	}
	r.digest, r.dirty = r.digest.Plus(delta), true
	return nil
}

// writeDigests puts the changed digests into the running transaction, in which
// addWithDigest reserved room.
func (b *batch) writeDigests() error {
	for _, r := range b.digests {
		if !r.dirty {
			continue
		}
		if err := digestChange(r.key, r.digest).apply(b.txn); err != nil {
			return err
		}
		r.dirty = false
	}
	return nil
}
