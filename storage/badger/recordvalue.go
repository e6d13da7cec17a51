package badger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// The value of a local record is
//
//	format 1 | flags 1 | generation 8 | expiry 8 | length of name 2 | sealed name | sealed value
//
// The name (size, key) is sealed separately, so that a bucket can be listed in
// key order without opening its values. Both are bound to the header.
//
// With flagChunked the value is in chunks of up to chunkSize under the same
// generation, a random number. They are committed before the record that points
// to them; the record is the commit point. Chunks of another generation than
// their record's are left over, and removed after the commit or when the store
// is next opened.
const (
	recordFormat     = 2
	recordExpiryAt   = 1 + 1 + 8
	recordHeaderSize = recordExpiryAt + 8
	flagChunked      = 1

	// inlineSize is the longest value that is not chunked and chunkSize the
	// longest chunk, less if memory is limited. Badger's iterators copy a value
	// twice, and a chunk stays in the processor's cache meanwhile.
	inlineSize = 256 << 10
	chunkSize  = 32 << 10
	// recordOverhead is what a record takes of a transaction in addition to its
	// key and value, rounded up.
	recordOverhead = 160
)

// sealRecord returns the entry of a record at diskKey, and its chunks if the
// value is longer than limit.
func sealRecord(key *scopeKey, diskKey []byte, r storage.Record, limit, chunk int) (head change, chunks []change) {
	var random [8]byte
	rand.Read(random[:])
	generation := binary.BigEndian.Uint64(random[:])

	header := []byte{recordFormat, 0}
	chunked := len(r.Value) > limit
	if chunked {
		header[1] = flagChunked
	}
	header = append(header, random[:]...)
	header = binary.BigEndian.AppendUint64(header, uint64(r.ExpiresAt))
	name := binary.AppendUvarint(nil, uint64(len(r.Value)))
	name = append(name, r.Key...)

	value := slices.Clone(header)
	value = binary.BigEndian.AppendUint16(value, uint16(nonceSize+len(name)+tagSize))
	value = appendSealed(value, key.aead, name, valueAAD([]byte{'n'}, diskKey, header))
	if !chunked {
		value = appendSealed(value, key.aead, r.Value, valueAAD([]byte{'v'}, diskKey, header))
		return change{key: diskKey, value: value}, nil
	}
	n := uint32(0)
	for piece := range slices.Chunk(r.Value, chunk) {
		k := chunkKey(diskKey, generation, n)
		chunks = append(chunks, change{key: k, value: appendSealed(nil, key.aead, piece, k)})
		n++
	}
	return change{key: diskKey, value: value}, chunks
}

// recordHead is what opening the name of a record gives.
type recordHead struct {
	name    string
	expires storage.Time
	size    int
	chunked bool

	generation   uint64
	header, body []byte // parts of the value
}

func openHead(key *scopeKey, diskKey, value []byte) (h recordHead, err error) {
	if len(value) == 0 || value[0] != recordFormat {
		return h, fmt.Errorf("open record: unknown format: %w", storage.ErrDamaged)
	}
	if len(value) < recordHeaderSize+2 {
		return h, fmt.Errorf("open record: truncated: %w", storage.ErrDamaged)
	}
	h.header = value[:recordHeaderSize]
	h.chunked = value[1] == flagChunked
	h.generation = binary.BigEndian.Uint64(value[2:])
	h.expires = storage.Time(binary.BigEndian.Uint64(value[recordExpiryAt:]))
	n := int(binary.BigEndian.Uint16(value[recordHeaderSize:]))
	rest := value[recordHeaderSize+2:]
	if n > len(rest) {
		return h, fmt.Errorf("open record: truncated: %w", storage.ErrDamaged)
	}
	h.body = rest[n:]
	plain, err := appendOpened(nil, key.aead, rest[:n], valueAAD([]byte{'n'}, diskKey, h.header))
	if err != nil {
		return h, err
	}
	size, used := binary.Uvarint(plain)
	if used <= 0 || size > storage.MaxRecord {
		return h, fmt.Errorf("open record: %w", storage.ErrDamaged)
	}
	h.size, h.name = int(size), string(plain[used:])
	return h, nil
}

// readRecord opens a whole record.
func readRecord(txn *badgerdb.Txn, key *scopeKey, bucket storage.Bucket, diskKey []byte) (r storage.Record, err error) {
	var h recordHead
	err = view(txn, diskKey, func(value []byte) (err error) {
		if h, err = openHead(key, diskKey, value); err != nil {
			return err
		}
		r = storage.Record{Bucket: bucket, Scope: key.scope, Key: h.name, ExpiresAt: h.expires}
		r.Value = make([]byte, 0, h.size)
		if !h.chunked {
			r.Value, err = appendOpened(r.Value, key.aead, h.body, valueAAD([]byte{'v'}, diskKey, h.header))
		}
		return err
	})
	if err != nil || !h.chunked {
		return r, err
	}
	// An iterator gives access to the chunks in place; a get would copy each
	// before it can be opened.
	it := newIterator(txn, binary.BigEndian.AppendUint64(chunkPrefix(diskKey), h.generation))
	defer it.Close()
	it.Rewind()
	for n := uint32(0); len(r.Value) < h.size; n++ {
		k := chunkKey(diskKey, h.generation, n)
		if !it.Valid() || !bytes.Equal(it.Item().Key(), k) {
			return r, fmt.Errorf("read record: a chunk is missing: %w", storage.ErrDamaged)
		}
		err := it.Item().Value(func(sealed []byte) (err error) {
			r.Value, err = appendOpened(r.Value, key.aead, sealed, k)
			return err
		})
		if err != nil {
			return r, err
		}
		it.Next()
	}
	if len(r.Value) != h.size {
		return r, fmt.Errorf("read record: wrong size: %w", storage.ErrDamaged)
	}
	return r, nil
}

type recordName struct {
	key     string
	diskKey []byte
}

// listNames returns the first limit names after the cursor, in order.
func listNames(ctx context.Context, txn *badgerdb.Txn, key *scopeKey, bucket storage.Bucket, prefix string, from *cursor, limit int) (names []recordName, damaged int, err error) {
	at := now()
	order := func(a, b recordName) int { return cmp.Compare(a.key, b.key) }
	it := newIterator(txn, scopePrefix(levelOf(bucket), key.hash))
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n%64 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		item := it.Item()
		if len(item.Key()) != scopeEnd+hashSize {
			continue
		}
		err := item.Value(func(value []byte) error {
			head, err := openHead(key, item.Key(), value)
			if err != nil || expired(head.expires, at) || (from != nil && head.name <= from.id) || !strings.HasPrefix(head.name, prefix) {
				return err
			}
			names = append(names, recordName{head.name, item.KeyCopy(nil)})
			return nil
		})
		switch {
		case errors.Is(err, storage.ErrDamaged):
			damaged++
		case err != nil:
			return nil, 0, err
		}
		if len(names) > 2*limit {
			slices.SortFunc(names, order)
			names = names[:limit]
		}
	}
	slices.SortFunc(names, order)
	return names[:min(len(names), limit)], damaged, nil
}

// existing reports whether there are records at the keys of changes, and
// returns the keys of the chunked ones.
func existing(txn *badgerdb.Txn, changes []change) (any bool, chunked [][]byte) {
	pace := background.Begin()
	for _, c := range changes {
		pace.Yield()
		there, inChunks, err := recordAt(txn, c.key)
		any = any || there
		if err == nil && inChunks {
			chunked = append(chunked, c.key)
		}
	}
	return any, chunked
}

// recordAt reports whether there is a record, and whether its value is chunked.
func recordAt(txn *badgerdb.Txn, diskKey []byte) (there, chunked bool, err error) {
	item, err := txn.Get(diskKey)
	if errors.Is(err, badgerdb.ErrKeyNotFound) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	err = item.Value(func(value []byte) error {
		chunked = isChunked(value)
		return nil
	})
	return true, chunked, err
}

func isChunked(value []byte) bool {
	return len(value) >= recordHeaderSize && value[1] == flagChunked
}

// dropChunks removes left-over chunks of the records at these keys. Chunks that
// it fails to remove are unreachable, and removed at the next opening. Needs
// writeLock.
func (se *session) dropChunks(recordKeys [][]byte) {
	for _, k := range recordKeys {
		if se.sweepChunks(context.Background(), chunkPrefix(k)) != nil {
			return
		}
	}
}

// sweepChunks removes the left-over chunks under a prefix. Needs writeLock.
func (se *session) sweepChunks(ctx context.Context, prefix []byte) error {
	b := se.newBatch()
	defer b.discard()
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, prefix)
	defer it.Close()
	var current []byte // the record that live and generation are of
	var live bool
	var generation uint64
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := it.Item().KeyCopy(nil)
		recordKey, of := recordKeyOfChunk(k)
		if recordKey == nil {
			continue
		}
		if !bytes.Equal(recordKey, current) {
			value, err := get(txn, recordKey)
			if err != nil {
				return err
			}
			current, live = recordKey, isChunked(value)
			if live {
				generation = binary.BigEndian.Uint64(value[2:])
			}
		}
		if live && of == generation {
			continue
		}
		if err := b.add([]change{{key: k, remove: true}}); err != nil {
			return err
		}
	}
	return b.commit()
}
