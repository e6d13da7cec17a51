package badger

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// The value of a local record is
//
//	format 1 | flags 1 | generation 8 | expiry 8 | length of name 2 | sealed name | sealed value
//
// The name (size, key) is sealed apart so that a bucket can be listed in key order without opening its values. Both are
// bound to the header.
// With flagChunked the value lies in chunks of up to chunkSize under the same generation, a random number: they are committed
// before the record that points to them, and the record is the commit point. Chunks of another generation than their
// record's are left-overs, removed after the commit, or when the store is next opened.
const (
	recordFormat     = 2
	recordExpiryAt   = 1 + 1 + 8
	recordHeaderSize = recordExpiryAt + 8
	flagChunked      = 1

	// inlineSize is the longest value that is not chunked, and chunkSize the longest chunk; less where memory is short. Badger's
	// iterators copy a value twice on the way: a chunk stays in the processor's cache meanwhile.
	inlineSize = 256 << 10
	chunkSize  = 32 << 10
	// recordOverhead is what a record takes of a transaction beside its key and value, rounded up.
	recordOverhead = 160
)

// PutRecords implements [storage.Local].
func (s *Store) PutRecords(ctx context.Context, records []storage.Record) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if n := len(records); n > storage.MaxRecords {
		return fmt.Errorf("records: %d are more than %d: %w", n, storage.MaxRecords, storage.ErrInvalid)
	}
	total := 0
	for i, r := range records {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		total += len(r.Value) + storage.MaxID
	}
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	if err := se.space.take(uint64(total), 1); err != nil {
		return err
	}

	records = lastOfEach(records)
	longest := longestInline(records, se.sizes)
	b := se.newBatch()
	defer b.discard()
	heads := make([]change, 0, len(records))
	pace := background.Begin()
	for _, r := range records {
		pace.Yield()
		if err := ctx.Err(); err != nil {
			return err
		}
		key, err := se.writableKey(r.Scope)
		if err != nil {
			return err
		}
		head, chunks := se.sealRecord(key, r, longest)
		for _, c := range chunks {
			if err := b.add([]change{c}); err != nil {
				return err
			}
		}
		heads = append(heads, head)
	}
	replaced, stale := replacedAt(b.txn, heads)
	if err := b.add(heads); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	durable := slices.ContainsFunc(records, func(r storage.Record) bool { return !r.Bucket.Volatile() })
	if err := se.commitRecords(b, replaced, durable); err != nil {
		return err
	}
	se.dropChunks(stale)
	return nil
}

// lastOfEach drops records that a later one of the same call replaces.
func lastOfEach(records []storage.Record) []storage.Record {
	last := make(map[storage.RecordRef]int, len(records))
	for i, r := range records {
		last[r.Ref()] = i
	}
	if len(last) == len(records) {
		return records
	}
	var kept []storage.Record
	for i, r := range records {
		if last[r.Ref()] == i {
			kept = append(kept, r)
		}
	}
	return kept
}

// longestInline is the length up to which the values of a call stay inline, so that they fit one transaction with all names:
// those of storage.MaxRecords records do by themselves. Beyond it the largest values are chunked.
func longestInline(records []storage.Record, size sizes) int {
	lengths, room := make([]int, len(records)), size.maxTxn
	for i, r := range records {
		lengths[i] = len(r.Value)
		room -= len(r.Key) + recordOverhead
	}
	slices.Sort(lengths)
	for _, n := range lengths {
		if room -= n; room < 0 {
			return min(n-1, size.inline)
		}
	}
	return size.inline
}

// sealRecord makes the entry of a record, and its chunks if the value is longer than longest.
func (se *session) sealRecord(key *scopeKey, r storage.Record, longest int) (head change, chunks []change) {
	var random [8]byte
	rand.Read(random[:])
	generation := binary.BigEndian.Uint64(random[:])
	diskKey := se.keys.record(key.hash, r.Bucket, r.Key)

	header := []byte{recordFormat, 0}
	chunked := len(r.Value) > longest
	if chunked {
		header[1] = flagChunked
	}
	header = append(header, random[:]...)
	header = binary.BigEndian.AppendUint64(header, uint64(r.ExpiresAt))
	name := binary.AppendUvarint(nil, uint64(len(r.Value)))
	name = append(name, r.Key...)

	value := slices.Clone(header)
	value = binary.BigEndian.AppendUint16(value, uint16(nonceSize+len(name)+tagSize))
	value = appendSealed(value, key.aead, name, placeAAD([]byte{'n'}, diskKey, header))
	if !chunked {
		value = appendSealed(value, key.aead, r.Value, placeAAD([]byte{'v'}, diskKey, header))
		return change{key: diskKey, value: value}, nil
	}
	n := uint32(0)
	for piece := range slices.Chunk(r.Value, se.sizes.chunk) {
		place := chunkKey(diskKey, generation, n)
		sealed := appendSealed(nil, key.aead, piece, place)
		chunks = append(chunks, change{key: place, value: sealed})
		n++
	}
	return change{key: diskKey, value: value}, chunks
}

// DeleteRecords implements [storage.Local].
func (s *Store) DeleteRecords(ctx context.Context, refs []storage.RecordRef) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if n := len(refs); n > storage.MaxRecords {
		return fmt.Errorf("records: %d are more than %d: %w", n, storage.MaxRecords, storage.ErrInvalid)
	}
	for i, r := range refs {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	if err := se.acquire(ctx); err != nil {
		return err
	}
	defer se.release()
	if err := se.space.take(uint64(len(refs))*100, 4); err != nil {
		return err
	}
	b := se.newBatch()
	defer b.discard()
	var removals []change
	var stale [][]byte
	pace := background.Begin()
	for _, r := range refs {
		pace.Yield()
		diskKey := se.keys.record(se.keys.scope(r.Scope), r.Bucket, r.Key)
		there, chunked, err := recordAt(b.txn, diskKey)
		if err != nil {
			return err
		}
		if there {
			removals = append(removals, change{key: diskKey, remove: true})
		}
		if chunked {
			stale = append(stale, diskKey)
		}
	}
	if err := b.add(removals); err != nil {
		return err
	}
	if err := se.commitWaste(b); err != nil {
		return err
	}
	se.dropChunks(stale)
	return nil
}

// replacedAt says whether the changes replace or remove anything, and returns the keys of the chunked records among that.
func replacedAt(txn *badgerdb.Txn, changes []change) (any bool, chunked [][]byte) {
	pace := background.Begin()
	for _, c := range changes {
		pace.Yield()
		there, pieces, err := recordAt(txn, c.key)
		any = any || there
		if err == nil && pieces {
			chunked = append(chunked, c.key)
		}
	}
	return any, chunked
}

// commitRecords commits records that were put. What a record said before it was replaced is waste like what was deleted: a
// segment of vectors is written anew when one of its memories is forgotten.
func (se *session) commitRecords(b *batch, replaced, durable bool) error {
	switch {
	case durable && replaced:
		return se.commitWaste(b)
	case durable:
		return b.commit()
	case replaced:
		return se.commitWasteBy(b, b.commitVolatile)
	}
	return b.commitVolatile()
}

// recordAt says whether there is a record, and whether its value lies in chunks.
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

// dropChunks removes left-over chunks of the records at these keys. What it fails to remove waits for the next opening:
// nothing points to it. Needs the turn.
func (se *session) dropChunks(recordKeys [][]byte) {
	for _, k := range recordKeys {
		if se.sweepChunks(context.Background(), chunkPrefix(k)) != nil {
			return
		}
	}
}

// sweepChunks removes the left-over chunks under a prefix. Needs the turn.
func (se *session) sweepChunks(ctx context.Context, prefix []byte) error {
	b := se.newBatch()
	defer b.discard()
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, prefix)
	defer it.Close()
	var current []byte // the record whose generation, if it has chunks, is known
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

// InstallSecret implements [storage.Local].
func (s *Store) InstallSecret(ctx context.Context) (secret []byte, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	return slices.Clone(se.keys.install), nil
}
