package badger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/remora-proxy/remora/background"
	"github.com/remora-proxy/remora/storage"
)

// PutRecords implements [storage.Local].
func (s *Store) PutRecords(ctx context.Context, records []storage.Record) error {
	if err := validateAll(records); err != nil {
		return err
	}
	total := 0
	for _, r := range records {
		total += len(r.Value) + storage.MaxID
	}
	return s.write(ctx, total, forWrites, func(se *session, b *batch) error {
		records := lastOfEach(records)
		limit := inlineLimit(records, se.sizes)
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
			head, chunks := sealRecord(key, se.keys.record(key.hash, r.Bucket, r.Key), r, limit, se.sizes.chunk)
			for _, c := range chunks {
				if err := b.add([]change{c}); err != nil {
					return err
				}
			}
			heads = append(heads, head)
		}
		replaces, staleChunks := existing(b.txn, heads)
		if err := b.add(heads); err != nil {
			return fmt.Errorf("records: %w", err)
		}
		commit := b.commit
		if !slices.ContainsFunc(records, func(r storage.Record) bool { return !r.Bucket.Volatile() }) {
			commit = b.commitVolatile
		}
		var err error
		if replaces { // the old value is garbage: it may be a vector of a memory that was forgotten
			err = se.commitDeletes(b, commit)
		} else {
			err = commit()
		}
		if err != nil {
			return err
		}
		se.dropChunks(staleChunks)
		return nil
	})
}

// validateAll checks the records or references of one call.
func validateAll[T interface{ Validate() error }](all []T) error {
	if n := len(all); n > storage.MaxRecords {
		return fmt.Errorf("%d records or references, more than %d: %w", n, storage.MaxRecords, storage.ErrInvalid)
	}
	for i, r := range all {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("record or reference %d: %w", i, err)
		}
	}
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

// inlineLimit returns the length up to which the values of a call are not
// chunked, so that they and all names fit one transaction. The names of
// storage.MaxRecords records alone fit.
func inlineLimit(records []storage.Record, size sizes) int {
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

// DeleteRecords implements [storage.Local].
func (s *Store) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	if err := validateAll(refs); err != nil {
		return err
	}
	return s.write(ctx, len(refs)*100, forDeletes, func(se *session, b *batch) error {
		var removals []change
		var staleChunks [][]byte
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
				staleChunks = append(staleChunks, diskKey)
			}
		}
		if err := b.add(removals); err != nil {
			return err
		}
		if err := se.commitDeletes(b, b.commit); err != nil {
			return err
		}
		se.dropChunks(staleChunks)
		return nil
	})
}

// Record implements [storage.RecordReader].
func (s *Store) Record(ctx context.Context, ref storage.RecordRef) (r storage.Record, err error) {
	if err := ref.Validate(); err != nil {
		return r, err
	}
	err = s.read(ctx, ref.Scope, func(se *session, txn *badgerdb.Txn, key *scopeKey) error {
		if key == nil {
			return storage.ErrNotFound
		}
		diskKey := se.keys.record(key.hash, ref.Bucket, ref.Key)
		there, _, err := recordAt(txn, diskKey)
		if err == nil && there {
			r, err = readRecord(txn, key, ref.Bucket, diskKey)
		}
		if err == nil && (!there || expired(r.ExpiresAt, now())) {
			err = storage.ErrNotFound
		}
		return err
	})
	if err != nil {
		return storage.Record{}, err
	}
	return r, nil
}

// Records implements [storage.Local].
func (s *Store) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	return s.RecordsWithPrefix(ctx, bucket, scope, "", after, limit)
}

// RecordsWithPrefix implements [storage.PrefixReader]. On disk a bucket is in
// order of hashes, so each page opens the names of the scope's whole bucket, about a microsecond
// each, and the values of the page only.
func (s *Store) RecordsWithPrefix(ctx context.Context, bucket storage.Bucket, scope storage.Scope, prefix, after string, limit int) (storage.RecordPage, error) {
	var page storage.RecordPage
	if err := (storage.RecordRef{Bucket: bucket, Scope: scope, Key: "any"}).Validate(); err != nil {
		return page, err
	}
	limit = storage.PageLimit(limit)
	err := s.read(ctx, scope, func(se *session, txn *badgerdb.Txn, key *scopeKey) error {
		tag := se.keys.recordsTag(se.keys.scope(scope), bucket)
		from, err := parseCursor(after, tag)
		if err != nil || key == nil {
			return err
		}
		names, damaged, err := listNames(ctx, txn, key, bucket, prefix, from, limit+1)
		if err != nil {
			return err
		}
		if from == nil { // else the first page has counted them
			page.Damaged = damaged
		}
		size, last := 0, ""
		for i, n := range names {
			if i > 0 && (i >= limit || size > maxPageBytes) {
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
				return err
			}
			size += len(r.Value)
			page.Records = append(page.Records, r)
		}
		return nil
	})
	return s.counted(page, err)
}

// RecordKeys implements [storage.PrefixReader].
func (s *Store) RecordKeys(ctx context.Context, bucket storage.Bucket, scope storage.Scope, limit int) (keys []string, err error) {
	if err := (storage.RecordRef{Bucket: bucket, Scope: scope, Key: "any"}).Validate(); err != nil {
		return nil, err
	}
	err = s.read(ctx, scope, func(_ *session, txn *badgerdb.Txn, key *scopeKey) error {
		if key == nil {
			return nil
		}
		names, _, err := listNames(ctx, txn, key, bucket, "", nil, storage.KeyLimit(limit))
		for _, n := range names {
			keys = append(keys, n.key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// counted counts the damaged records of a page that was read without an error.
func (s *Store) counted(page storage.RecordPage, err error) (storage.RecordPage, error) {
	if err != nil {
		return storage.RecordPage{}, err
	}
	s.damaged.Add(uint64(page.Damaged))
	return page, nil
}

// AllRecords implements [storage.Local], in order of disk keys.
func (s *Store) AllRecords(ctx context.Context, bucket storage.Bucket, after string, limit int) (storage.RecordPage, error) {
	var page storage.RecordPage
	level := levelOf(bucket)
	if level == 0 {
		return page, fmt.Errorf("record: unknown bucket: %w", storage.ErrInvalid)
	}
	err := s.do(ctx, func(se *session) error {
		tag := se.keys.allRecordsTag(bucket)
		from, err := parseCursor(after, tag)
		if err != nil {
			return err
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
				return err
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
				return err
			case !expired(r.ExpiresAt, at):
				page.Records = append(page.Records, r)
				size += len(r.Value)
			}
		}
		return nil
	})
	return s.counted(page, err)
}
