package vector

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

const (
	segmentPrefix = "v/"
	segmentFormat = 1
	entryHead     = 16

	// SegmentEntries is the most entries of a segment: the newest segment is
	// rewritten for every turn, and any that loses a memory.
	SegmentEntries = 64
)

// Key returns the key of a segment's record in [storage.BucketIndex]: "v/" and
// its number.
func Key(segment uint32) string { return fmt.Sprintf("%s%08x", segmentPrefix, segment) }

// SegmentOf returns the number of the segment that is stored under a key. It is
// not ok for records of other kinds.
func SegmentOf(key string) (segment uint32, ok bool) {
	digits, ok := strings.CutPrefix(key, segmentPrefix)
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil
}

// Hash returns the first bytes of the SHA-256 of an id or a text, by which
// records know them.
func Hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.LittleEndian.Uint64(sum[:])
}

// Segment is a record of vectors. Segments are few, as a store lists a bucket
// by reading all of its names. One is stored as
//
//	format 1 | length of model 2 | model | dimension 2 | entries
//
// and an entry, for one memory, as
//
//	hash of id 8 | hash of text 8 | bytes of the vector
//
// in little endian. A vector counts only for a memory that still has the same
// id and text, and only if the model is the one that the settings name. So an
// outdated record does no harm.
type Segment struct {
	Number uint32
	Model  string
	Dim    int

	entries []byte
}

var errSegment = errors.New("vector record damaged")

// ReadSegment parses a record's value, to which it keeps referring.
func ReadSegment(number uint32, value []byte) (Segment, error) {
	s := Segment{Number: number}
	if len(value) < 3 || value[0] != segmentFormat {
		return s, errSegment
	}
	n := int(binary.LittleEndian.Uint16(value[1:]))
	if value = value[3:]; len(value) < n+2 {
		return s, errSegment
	}
	s.Model, s.Dim = string(value[:n]), int(binary.LittleEndian.Uint16(value[n:]))
	s.entries = value[n+2:]
	if s.Dim == 0 || len(s.entries)%(entryHead+s.Dim) != 0 {
		return s, errSegment
	}
	return s, nil
}

// Value returns what is stored of the segment.
func (s *Segment) Value() []byte {
	b := append(make([]byte, 0, 5+len(s.Model)+len(s.entries)), segmentFormat)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s.Model)))
	b = append(b, s.Model...)
	b = binary.LittleEndian.AppendUint16(b, uint16(s.Dim))
	return append(b, s.entries...)
}

// Len returns the number of entries.
func (s *Segment) Len() int { return len(s.entries) / (entryHead + s.Dim) }

// Bytes returns the size of the entries.
func (s *Segment) Bytes() int { return len(s.entries) }

// Mark returns the mark of entry i.
func (s *Segment) Mark(i int) Mark {
	b := s.entries[i*(entryHead+s.Dim):]
	return Mark{Memory: binary.LittleEndian.Uint64(b), Text: binary.LittleEndian.Uint64(b[8:]), Segment: s.Number}
}

// Numbers returns a copy of the vector of entry i.
func (s *Segment) Numbers(i int) []int8 {
	b := s.entries[i*(entryHead+s.Dim)+entryHead:][:s.Dim]
	numbers := make([]int8, s.Dim)
	for k, x := range b {
		numbers[k] = int8(x)
	}
	return numbers
}

// Add appends an entry. The first sets the dimension if there is none.
func (s *Segment) Add(m Mark, numbers []int8) {
	if s.Dim == 0 {
		s.Dim = len(numbers)
	}
	s.entries = binary.LittleEndian.AppendUint64(s.entries, m.Memory)
	s.entries = binary.LittleEndian.AppendUint64(s.entries, m.Text)
	for _, n := range numbers {
		s.entries = append(s.entries, byte(n))
	}
}

// EachRecord calls f with the records of a scope's segments in the order of
// their numbers.
func EachRecord(ctx context.Context, local storage.Local, scope storage.Scope, f func(segment uint32, r storage.Record) error) error {
	for page, err := range storage.RecordPages(ctx, local, storage.BucketIndex, scope, 0) {
		if err != nil {
			return fmt.Errorf("read vectors: %w", err)
		}
		for _, r := range page.Records {
			if n, ok := SegmentOf(r.Key); ok {
				if err := f(n, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Forget removes the vectors of memories with these ids from the stored
// segments of a scope; without ids it removes all segments.
func Forget(ctx context.Context, local storage.Local, scope storage.Scope, ids ...string) error {
	gone := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		gone[Hash(id)] = true
	}
	var remove []storage.RecordRef
	var rewrite []storage.Record
	err := EachRecord(ctx, local, scope, func(number uint32, r storage.Record) error {
		old, err := ReadSegment(number, r.Value)
		if len(ids) == 0 || err != nil {
			remove = append(remove, r.Ref())
			return nil
		}
		left := Segment{Number: number, Model: old.Model, Dim: old.Dim}
		for i := range old.Len() {
			if m := old.Mark(i); !gone[m.Memory] {
				left.Add(m, old.Numbers(i))
			}
		}
		switch left.Len() {
		case old.Len():
		case 0:
			remove = append(remove, r.Ref())
		default:
			r.Value = left.Value()
			rewrite = append(rewrite, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(DeleteRecords(ctx, local, remove), PutRecords(ctx, local, rewrite))
}

// PutRecords stores segments, a few at a time.
func PutRecords(ctx context.Context, local storage.Local, records []storage.Record) error {
	const batch = 16 // of up to half a megabyte each
	for len(records) > 0 {
		n := min(len(records), batch)
		if err := local.PutRecords(ctx, records[:n]); err != nil {
			return fmt.Errorf("store vectors: %w", err)
		}
		records = records[n:]
	}
	return nil
}

// DeleteRecords deletes segments.
func DeleteRecords(ctx context.Context, local storage.Local, refs []storage.RecordRef) error {
	for len(refs) > 0 {
		n := min(len(refs), storage.MaxRecords)
		if err := local.DeleteRecords(ctx, refs[:n]); err != nil {
			return fmt.Errorf("delete vectors: %w", err)
		}
		refs = refs[n:]
	}
	return nil
}

// Stored is what the store has of a scope's vectors that can still be used.
type Stored struct {
	Segments []Segment
	Outdated []storage.RecordRef // damaged, or of another model or dimension: to be deleted
	Last     uint32              // the highest number; new segments follow it

	at map[uint64]place
}

type place struct{ segment, entry int }

// ReadStored reads the segments of a scope that were made by a model. dim is
// the dimension they must have, 0 for that of the newest. If they take more
// than maxBytes it leaves the oldest out.
func ReadStored(ctx context.Context, local storage.Local, scope storage.Scope, model string, dim int, maxBytes int64) (*Stored, error) {
	out := &Stored{at: map[uint64]place{}}
	bytes := int64(0)
	err := EachRecord(ctx, local, scope, func(number uint32, r storage.Record) error {
		out.Last = max(out.Last, number)
		s, err := ReadSegment(number, r.Value)
		if err != nil || s.Model != model || dim != 0 && s.Dim != dim {
			out.Outdated = append(out.Outdated, r.Ref())
			return nil
		}
		out.Segments = append(out.Segments, s)
		for bytes += int64(s.Bytes()); bytes > maxBytes; {
			bytes -= int64(out.Segments[0].Bytes())
			out.Segments = slices.Delete(out.Segments, 0, 1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(out.Segments); n > 0 && dim == 0 {
		dim = out.Segments[n-1].Dim
		out.Segments = slices.DeleteFunc(out.Segments, func(s Segment) bool {
			if s.Dim != dim {
				out.Outdated = append(out.Outdated, storage.RecordRef{Bucket: storage.BucketIndex, Scope: scope, Key: Key(s.Number)})
			}
			return s.Dim != dim
		})
	}
	if len(out.Outdated) > 0 { // they are deleted while new ones are being written
		out.Last++
	}
	for i := range out.Segments {
		for k := range out.Segments[i].Len() {
			out.at[out.Segments[i].Mark(k).Memory] = place{i, k}
		}
	}
	return out, nil
}

// Find returns the newest vector that was made of a memory with this id and
// text, and the index of its segment.
func (s *Stored) Find(id, text string) (segment int, m Mark, numbers []int8, ok bool) {
	memory := Hash(id)
	at, ok := s.at[memory]
	if !ok {
		return 0, Mark{}, nil, false
	}
	seg := &s.Segments[at.segment]
	if m = seg.Mark(at.entry); m.Text != Hash(text) {
		return 0, Mark{}, nil, false
	}
	return at.segment, m, seg.Numbers(at.entry), true
}
