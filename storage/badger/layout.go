package badger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// Disk keys. Names are truncated HMAC-SHA256 under a secret of the keyring; |
// joins parts of fixed length; numbers are big-endian.
//
//	key                                             value
//	'm' | scope 16 | event time 8 | id 16           sealed memory; in order of event time within the scope
//	'i' | scope 16 | id 16                          the memory's place and fingerprint: see pointer
//	'd' | scope 16 | 0                              sealed digest of the scope's memories: count 8 | sum 8
//	't' | scope 16 | turn 16                        passages of the turn 4 | expiry 8
//	b   | scope 16 | key 16                         sealed local record; b names the bucket: s l x y a r u e o
//	'c' | scope 16 | b | key 16 | generation 8 | n 4   sealed n-th piece of a record's value
//	'z' | 'w'                                       time 8 of the oldest deletion whose bytes are still in the files
//
// An id or key is hashed together with its scope, so the same id has unrelated
// hashes in two scopes. Each level of a scope can be dropped by the first 17
// bytes of its keys, which is how Erase works. The sign bit of the event time
// is flipped so that it sorts. It is in the clear, and so are the values of 'i'
// and 't', which carry no content.
//
// Badger's own expiry is not used: an expired memory must leave the digest in
// the same commit, and its bytes must be compacted away, both of which Reap
// does. So index entries, turns and records have their expiry in the clear.
const (
	levelMemory = 'm'
	levelIndex  = 'i'
	levelTurn   = 't'
	levelDigest = 'd'
	levelChunk  = 'c'
	levelMark   = 'z'
)

const (
	hashSize   = 16
	scopeEnd   = 1 + hashSize
	chunkIDEnd = scopeEnd + 1 + hashSize // end of the record's name in a chunk's key
)

// hash16 is a keyed hash of a name.
type hash16 [hashSize]byte

// levelOf returns the level of a bucket, 0 if there is no such bucket.
func levelOf(b storage.Bucket) byte {
	switch b {
	case storage.BucketSpool:
		return 's'
	case storage.BucketLedger:
		return 'l'
	case storage.BucketIndex:
		return 'x'
	case storage.BucketSummary:
		return 'y'
	case storage.BucketAudit:
		return 'a'
	case storage.BucketRevision:
		return 'r'
	case storage.BucketTrash:
		return 'u'
	case storage.BucketEntry:
		return 'e'
	case storage.BucketExchange:
		return 'o'
	}
	return 0
}

// levels returns all levels that a scope can have keys in.
func levels() []byte {
	all := []byte{levelMemory, levelIndex, levelTurn, levelDigest, levelChunk}
	for _, b := range storage.Buckets() {
		all = append(all, levelOf(b))
	}
	return all
}

func scopePrefix(level byte, scope hash16) []byte {
	return append([]byte{level}, scope[:]...)
}

func memoryKey(scope hash16, at storage.Time, id hash16) []byte {
	k := make([]byte, 0, scopeEnd+8+hashSize)
	k = append(k, levelMemory)
	k = append(k, scope[:]...)
	k = appendTime(k, at)
	return append(k, id[:]...)
}

// digestKey is a byte longer than the bare prefix, which Erase uses as a mark.
func digestKey(scope hash16) []byte { return append(scopePrefix(levelDigest, scope), 0) }

// nameKey returns the disk key of an index entry, a turn or a record: scope and
// one hash.
func nameKey(level byte, scope, name hash16) []byte {
	k := make([]byte, 0, scopeEnd+hashSize)
	k = append(k, level)
	k = append(k, scope[:]...)
	return append(k, name[:]...)
}

// chunkPrefix returns the prefix of all chunks of all generations of the record
// at recordKey.
func chunkPrefix(recordKey []byte) []byte {
	k := make([]byte, 0, chunkIDEnd+12)
	k = append(k, levelChunk)
	k = append(k, recordKey[1:scopeEnd]...)
	k = append(k, recordKey[0])
	return append(k, recordKey[scopeEnd:]...)
}

func chunkKey(recordKey []byte, generation uint64, n uint32) []byte {
	k := binary.BigEndian.AppendUint64(chunkPrefix(recordKey), generation)
	return binary.BigEndian.AppendUint32(k, n)
}

// recordKeyOfChunk is the inverse of chunkKey; recordKey is nil if k is not the
// key of a chunk.
func recordKeyOfChunk(k []byte) (recordKey []byte, generation uint64) {
	if len(k) != chunkIDEnd+12 {
		return nil, 0
	}
	recordKey = append([]byte{k[scopeEnd]}, k[1:scopeEnd]...)
	recordKey = append(recordKey, k[scopeEnd+1:chunkIDEnd]...)
	return recordKey, binary.BigEndian.Uint64(k[chunkIDEnd:])
}

func appendTime(b []byte, t storage.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)^1<<63)
}

func parseTime(b []byte) storage.Time {
	return storage.Time(binary.BigEndian.Uint64(b) ^ 1<<63)
}

// namer hashes names under the keyring's HMAC secret.
type namer struct {
	secret []byte
	macs   *sync.Pool // of keyed hash.Hash: setting up the key costs as much as hashing a name
}

func newNamer(secret []byte) namer {
	return namer{secret: secret, macs: &sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}}
}

// hash covers the use and the parts with their lengths, so that no two lists of
// parts collide.
func (n namer) hash(use string, parts ...string) hash16 {
	mac := n.macs.Get().(hash.Hash)
	defer n.macs.Put(mac)
	mac.Reset()
	var stack [256]byte
	buf := append(stack[:0], use...)
	for _, p := range parts {
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(p)))
		buf = append(buf, p...)
	}
	mac.Write(buf)
	return hash16(mac.Sum(stack[:0])[:hashSize])
}

func (n namer) scope(s storage.Scope) hash16 {
	return n.hash("scope", s.Tenant, s.App, s.Project, s.User)
}

func (n namer) id(scope hash16, id string) hash16     { return n.hash("id", string(scope[:]), id) }
func (n namer) turn(scope hash16, turn string) hash16 { return n.hash("turn", string(scope[:]), turn) }

// record returns the disk key of a record.
func (n namer) record(scope hash16, b storage.Bucket, key string) []byte {
	return nameKey(levelOf(b), scope, n.hash("record", string(scope[:]), string(b), key))
}
