package storage

import (
	"fmt"
	"slices"
	"strconv"
)

// Limits of a [Write]. Larger ones are [ErrInvalid]. A store may be configured
// to accept less than MaxWrite, but no less than 128 KiB.
const (
	MaxWrite         = 768 << 10 // bytes, by Write.Size
	MaxWriteMemories = 2000
)

// TurnMemoryID returns the id of passage seq, from 0, of a turn.
func TurnMemoryID(turn string, seq int) string { return turn + "." + strconv.Itoa(seq) }

// Size returns what w counts against [MaxWrite], in bytes: 256 for each memory,
// the bytes of its strings, 8 for each element of a list or map, 4 for each
// dimension of a vector.
func (w Write) Size() int {
	n := 0
	for i := range w.Memories {
		n += w.Memories[i].size()
	}
	return n
}

func (m *Memory) size() int {
	n := 256 + len(m.ID) + len(m.Conversation) + len(m.Kind) + len(m.Text) + len(m.Source) + len(m.SupersededBy) +
		len(m.Provenance.Turn) + len(m.Provenance.Chain) + len(m.Provenance.Role) + len(m.Provenance.Speaker) +
		len(m.Provenance.Model)
	for _, s := range m.Entities {
		n += 8 + len(s)
	}
	for _, s := range m.Tags {
		n += 8 + len(s)
	}
	for k, v := range m.Redactions {
		n += 8 + len(k) + len(v)
	}
	return n
}

// Validate returns an error that wraps [ErrInvalid] and never quotes a value.
func (w Write) Validate() error {
	if err := w.Scope.Validate(); err != nil {
		return err
	}
	if n := len(w.Memories); n > MaxWriteMemories {
		return fmt.Errorf("write: %d memories, more than %d: %w", n, MaxWriteMemories, ErrInvalid)
	}
	if n := w.Size(); n > MaxWrite {
		return fmt.Errorf("write: %d bytes, more than %d: %w", n, MaxWrite, ErrInvalid)
	}
	if len(w.Turn) > MaxID {
		return fmt.Errorf("write: turn is longer than %d bytes: %w", MaxID, ErrInvalid)
	}
	ids := make([]string, len(w.Memories))
	for i := range w.Memories {
		m := &w.Memories[i]
		if err := validateKey("id", m.ID); err != nil {
			return fmt.Errorf("write: memory %d: %w", i, err)
		}
		if m.Scope != (Scope{}) && m.Scope != w.Scope {
			return fmt.Errorf("write: memory %d has another scope: %w", i, ErrInvalid)
		}
		if w.Turn != "" && m.ID != TurnMemoryID(w.Turn, i) {
			return fmt.Errorf("write: memory %d does not have the id of passage %d of the turn: %w", i, i, ErrInvalid)
		}
		ids[i] = m.ID
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(w.Memories) {
		return fmt.Errorf("write: duplicate id: %w", ErrInvalid)
	}
	return nil
}

// Validate returns an error that wraps [ErrInvalid] and never quotes a value.
func (r RecordRef) Validate() error {
	if !slices.Contains(Buckets(), r.Bucket) {
		return fmt.Errorf("record: unknown bucket: %w", ErrInvalid)
	}
	if err := r.Scope.Validate(); err != nil {
		return err
	}
	return validateKey("key", r.Key)
}

// Ref returns the reference of r.
func (r Record) Ref() RecordRef { return RecordRef{Bucket: r.Bucket, Scope: r.Scope, Key: r.Key} }

// Validate returns an error that wraps [ErrInvalid] and never quotes a value.
func (r Record) Validate() error {
	if n := len(r.Value); n > MaxRecord {
		return fmt.Errorf("record: %d bytes, more than %d: %w", n, MaxRecord, ErrInvalid)
	}
	return r.Ref().Validate()
}

func validateKey(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty: %w", name, ErrInvalid)
	}
	if len(value) > MaxID {
		return fmt.Errorf("%s is longer than %d bytes: %w", name, MaxID, ErrInvalid)
	}
	return nil
}

// PageLimit returns the page size for a requested limit: see [Query].
func PageLimit(limit int) int {
	if limit <= 0 || limit > MaxPage {
		return MaxPage
	}
	return limit
}

// KeyLimit is PageLimit for RecordKeys.
func KeyLimit(limit int) int {
	if limit <= 0 || limit > MaxKeys {
		return MaxKeys
	}
	return limit
}
