package storage

import "context"

// MemoryRef names a memory.
type MemoryRef struct {
	Scope Scope
	ID    string
}

// Validate is like [Write.Validate].
func (r MemoryRef) Validate() error {
	if err := r.Scope.Validate(); err != nil {
		return err
	}
	return validateKey("id", r.ID)
}

// Prober is what a [Store] offers that can be asked about many memories at once, in place of a call of Memory for each.
type Prober interface {
	// Probe says of each reference, of at most [MaxRecords], whether there may be such a memory. Where it says no, Memory
	// would have returned [ErrNotFound]; where it says yes, Memory tells.
	Probe(ctx context.Context, refs []MemoryRef) ([]bool, error)
}

// RecordReader is what a [Local] offers that can read one record without a page of its bucket.
type RecordReader interface {
	// Record returns one record, or [ErrNotFound] also when it has expired, or [ErrDamaged].
	Record(ctx context.Context, ref RecordRef) (Record, error)
}
