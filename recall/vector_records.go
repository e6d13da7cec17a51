package recall

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// Vectors are kept in records of storage.BucketIndex under keys "v/" and a number, the segment; records under other keys
// are not touched. Segments are few, since a store lists a bucket by reading all of its names. A segment is
//
//	format 1 | length of model 2 | model | dimension 2 | entries
//
// and an entry, for one memory,
//
//	hash of id 8 | hash of text 8 | bytes of the vector
//
// in little endian. The hashes are the first bytes of SHA-256. A vector counts only for the memory that still has the same
// id and text, made by the model that the settings name, so a record can be old without harm.
const (
	segmentPrefix = "v/"
	segmentFormat = 1
	// segmentEntries bounds a segment: the last one is written anew for every turn, and so is one that loses a memory.
	segmentEntries = 64
	entryHead      = 16
)

func segmentKey(n uint32) string { return fmt.Sprintf("%s%08x", segmentPrefix, n) }

// segmentNumber reads a key; it is not ok for keys of others.
func segmentNumber(key string) (uint32, bool) {
	digits, ok := strings.CutPrefix(key, segmentPrefix)
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

func stableHash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// segment is a stored record, taken apart.
type segment struct {
	number  uint32
	model   string
	dim     int
	entries []byte
}

var errSegment = errors.New("vector record damaged")

func readSegment(number uint32, b []byte) (segment, error) {
	s := segment{number: number}
	if len(b) < 3 || b[0] != segmentFormat {
		return s, errSegment
	}
	n := int(binary.LittleEndian.Uint16(b[1:]))
	if b = b[3:]; len(b) < n+2 {
		return s, errSegment
	}
	s.model, s.dim = string(b[:n]), int(binary.LittleEndian.Uint16(b[n:]))
	s.entries = b[n+2:]
	if s.dim == 0 || len(s.entries)%(entryHead+s.dim) != 0 {
		return s, errSegment
	}
	return s, nil
}

func (s *segment) head() []byte {
	b := append(make([]byte, 0, 5+len(s.model)+len(s.entries)), segmentFormat)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s.model)))
	b = append(b, s.model...)
	return binary.LittleEndian.AppendUint16(b, uint16(s.dim))
}

func (s *segment) value() []byte { return append(s.head(), s.entries...) }

func (s *segment) len() int { return len(s.entries) / (entryHead + s.dim) }

// entry returns the hashes of id and text and the bytes of the vector.
func (s *segment) entry(i int) (id, text uint64, numbers []byte) {
	b := s.entries[i*(entryHead+s.dim):][:entryHead+s.dim]
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[entryHead:]
}

func (s *segment) add(id, text uint64, numbers []int8) {
	s.entries = binary.LittleEndian.AppendUint64(s.entries, id)
	s.entries = binary.LittleEndian.AppendUint64(s.entries, text)
	for _, n := range numbers {
		s.entries = append(s.entries, byte(n))
	}
}

func toInt8(b []byte) []int8 {
	n := make([]int8, len(b))
	for i, x := range b {
		n[i] = int8(x)
	}
	return n
}

// eachVectorRecord reads the records of a scope's vectors in the order of their numbers.
func eachVectorRecord(ctx context.Context, local storage.Local, scope storage.Scope, f func(number uint32, r storage.Record) error) error {
	for page, err := range storage.RecordPages(ctx, local, storage.BucketIndex, scope, 0) {
		if err != nil {
			return fmt.Errorf("read vectors: %w", err)
		}
		for _, r := range page.Records {
			if n, ok := segmentNumber(r.Key); ok {
				if err := f(n, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropVectorRecords removes the vectors of these ids from the records of a scope; without ids, all of its records of
// vectors.
func dropVectorRecords(ctx context.Context, local storage.Local, scope storage.Scope, ids ...string) error {
	gone := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		gone[stableHash(id)] = true
	}
	var remove []storage.RecordRef
	var rewrite []storage.Record
	err := eachVectorRecord(ctx, local, scope, func(number uint32, r storage.Record) error {
		old, err := readSegment(number, r.Value)
		if len(ids) == 0 || err != nil {
			remove = append(remove, r.Ref())
			return nil
		}
		left := segment{number: number, model: old.model, dim: old.dim}
		for i := range old.len() {
			if id, text, numbers := old.entry(i); !gone[id] {
				left.add(id, text, toInt8(numbers))
			}
		}
		switch left.len() {
		case old.len():
		case 0:
			remove = append(remove, r.Ref())
		default:
			r.Value = left.value()
			rewrite = append(rewrite, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(deleteRecords(ctx, local, remove), putRecords(ctx, local, rewrite))
}

func putRecords(ctx context.Context, local storage.Local, records []storage.Record) error {
	const most = 16 // of up to half a megabyte each
	for len(records) > 0 {
		n := min(len(records), most)
		if err := local.PutRecords(ctx, records[:n]); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
		records = records[n:]
	}
	return nil
}

func deleteRecords(ctx context.Context, local storage.Local, refs []storage.RecordRef) error {
	for len(refs) > 0 {
		n := min(len(refs), storage.MaxRecords)
		if err := local.DeleteRecords(ctx, refs[:n]); err != nil {
			return fmt.Errorf("delete vectors: %w", err)
		}
		refs = refs[n:]
	}
	return nil
}
