package badger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/storage"
)

// Records implements [storage.Local]. On disk a bucket lies in order of hashes, so each page opens the names of the
// whole bucket of the scope, about a microsecond each, and then the values of the page alone.
func (s *Store) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (page storage.RecordPage, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return page, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if err := (storage.RecordRef{Bucket: bucket, Scope: scope, Key: "any"}).Validate(); err != nil {
		return page, err
	}
	h := se.keys.scope(scope)
	tag := se.keys.recordsTag(h, bucket)
	from, err := parseCursor(after, tag)
	if err != nil {
		return page, err
	}
	key, err := se.keys.find(h)
	if err != nil || key == nil {
		return page, err
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	names, damaged, err := listNames(ctx, txn, key, bucket, from, storage.PageLimit(limit)+1)
	if err != nil {
		return page, err
	}
	if from == nil { // else the first page has counted them
		page.Damaged = damaged
	}
	size := 0
	last := ""
	for i, n := range names {
		if i > 0 && (i >= storage.PageLimit(limit) || size > maxPageBytes) {
			page.Next = cursor{id: last}.encode(tag)
			break
		}
		last = n.key
		r, err := readRecord(txn, key, bucket, n.diskKey)
		if errors.Is(err, storage.ErrDamaged) {
			page.Damaged++
			continue
		}
		if err != nil {
			return storage.RecordPage{}, err
		}
		size += len(r.Value)
		page.Records = append(page.Records, r)
	}
	s.damaged.Add(uint64(page.Damaged))
	return page, nil
}

type recordName struct {
	key     string
	diskKey []byte
}

// listNames returns the first most names behind the cursor, in order.
func listNames(ctx context.Context, txn *badgerdb.Txn, key *scopeKey, bucket storage.Bucket, from *cursor, most int) (names []recordName, damaged int, err error) {
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
			if err != nil || expired(head.expires, at) || (from != nil && head.name <= from.id) {
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
		if len(names) > 2*most {
			slices.SortFunc(names, order)
			names = names[:most]
		}
	}
	slices.SortFunc(names, order)
	return names[:min(len(names), most)], damaged, nil
}

// AllRecords implements [storage.Local], in order of disk keys.
func (s *Store) AllRecords(ctx context.Context, bucket storage.Bucket, after string, limit int) (page storage.RecordPage, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return page, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	level := levelOf(bucket)
	if level == 0 {
		return page, fmt.Errorf("record: unknown bucket: %w", storage.ErrInvalid)
	}
	tag := se.keys.allRecordsTag(bucket)
	from, err := parseCursor(after, tag)
	if err != nil {
		return page, err
	}
	seek := []byte{level}
	if from != nil {
		seek = append([]byte(from.id), 0)
	}
	at := now()
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, []byte{level})
	defer it.Close()
	size, last := 0, ""
	for it.Seek(seek); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return storage.RecordPage{}, err
		}
		diskKey := it.Item().KeyCopy(nil)
		if len(diskKey) != scopeEnd+hashSize {
			continue
		}
		if n := len(page.Records); n > 0 && (n >= storage.PageLimit(limit) || size > maxPageBytes) {
			page.Next = cursor{id: last}.encode(tag)
			break
		}
		last = string(diskKey)
		key, err := se.keys.find(hash16(diskKey[1:scopeEnd]))
		var r storage.Record
		if err == nil && key == nil {
			err = storage.ErrDamaged
		}
		if err == nil {
			r, err = readRecord(txn, key, bucket, diskKey)
		}
		switch {
		case errors.Is(err, storage.ErrDamaged):
			page.Damaged++
		case err != nil:
			return storage.RecordPage{}, err
		case !expired(r.ExpiresAt, at):
			page.Records = append(page.Records, r)
			size += len(r.Value)
		}
	}
	s.damaged.Add(uint64(page.Damaged))
	return page, nil
}

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
		return h, fmt.Errorf("open record: cut short: %w", storage.ErrDamaged)
	}
	h.header = value[:recordHeaderSize]
	h.chunked = value[1] == flagChunked
	h.generation = binary.BigEndian.Uint64(value[2:])
	h.expires = storage.Time(binary.BigEndian.Uint64(value[recordExpiryAt:]))
	n := int(binary.BigEndian.Uint16(value[recordHeaderSize:]))
	rest := value[recordHeaderSize+2:]
	if n > len(rest) {
		return h, fmt.Errorf("open record: cut short: %w", storage.ErrDamaged)
	}
	h.body = rest[n:]
	plain, err := appendOpened(nil, key.aead, rest[:n], placeAAD([]byte{'n'}, diskKey, h.header))
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
			r.Value, err = appendOpened(r.Value, key.aead, h.body, placeAAD([]byte{'v'}, diskKey, h.header))
		}
		return err
	})
	if err != nil || !h.chunked {
		return r, err
	}
	// An iterator shows the chunks where they lie; a get would copy each before it can be opened.
	it := newIterator(txn, binary.BigEndian.AppendUint64(chunkPrefix(diskKey), h.generation))
	defer it.Close()
	it.Rewind()
	for n := uint32(0); len(r.Value) < h.size; n++ {
		place := chunkKey(diskKey, h.generation, n)
		if !it.Valid() || !bytes.Equal(it.Item().Key(), place) {
			return r, fmt.Errorf("read record: a part is missing: %w", storage.ErrDamaged)
		}
		err := it.Item().Value(func(sealed []byte) (err error) {
			r.Value, err = appendOpened(r.Value, key.aead, sealed, place)
			return err
		})
		if err != nil {
			return r, err
		}
		it.Next()
	}
	if len(r.Value) != h.size {
		return r, fmt.Errorf("read record: size differs: %w", storage.ErrDamaged)
	}
	return r, nil
}
