package storage

import (
	"context"
	"io"
)

// What a store may offer beside [Store] and [Local]. Callers find it out by asserting the interface. A store of another
// process offers all of it, with errors that wrap errors.ErrUnsupported where the store behind it does not.

// Digester is what a [Store] offers that keeps a digest of each scope, changed in the same commit as its memories. A
// record that has expired counts until the store has really removed it. A scope that nothing is known of has the zero
// Digest.
type Digester interface {
	Digest(ctx context.Context, scope Scope) (Digest, error)
}

// ScopeLister is what a [Store] offers that can name the scopes that it holds something of, or has held since they were
// last erased, in an order of its own. The cursor is as in [Page].
type ScopeLister interface {
	Scopes(ctx context.Context, after string, limit int) (ScopePage, error)
}

// ScopePage is one page of scopes.
type ScopePage struct {
	Scopes []Scope
	Next   string
	// Damaged counts scopes whose name cannot be read.
	Damaged int
}

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

// Reaper is what a [Store] offers that removes what has expired. Until it does, expired memories cannot be read but take
// their space, and count in the scope's Digest.
type Reaper interface {
	// Reap removes the memories and records that have expired by now, and returns how many there were. From time to time
	// it also has the bytes of what was removed or deleted taken off the disk, which may take seconds; the store serves
	// meanwhile. Cut short, it has removed a part; repeating it is safe.
	Reap(ctx context.Context, now Time) (removed int, err error)
}

// KeyRotator is what a [Store] offers whose keys lie wrapped by a key-encryption key, to wrap them by a new one while it
// serves. Nothing that is sealed is sealed anew, and no secret that names or ids derive from changes.
type KeyRotator interface {
	// RotateKey makes a new key and puts it where the store finds it or, where newKeyFile is not "", takes the key in
	// that file, which is generated if it is not there. No key file is lost: the old one is kept, since other stores may use it.
	// At every moment, also after a crash, the configured key opens everything; repeating the call carries on.
	RotateKey(ctx context.Context, newKeyFile string) (KeyRotation, error)
}

// KeyRotation is what RotateKey did.
type KeyRotation struct {
	From, To string // ids of the keys, which tell nothing of them
	Keys     int    // data keys that are wrapped by the new key
	// Pending: the store cannot change where its key is configured. Both keys open everything until the store is opened
	// with the new one.
	Pending bool
	// NewFile is where the new key lies, OldFile where the old one is kept; "" where Pending.
	NewFile, OldFile string
	// Unreadable counts data keys that neither key opens. They are left as they are.
	Unreadable int
}

// BulkEraser is what a [Store] offers that can erase many scopes at once. Each is erased as by [Store.Erase]: its data
// key is destroyed first. Cut short, some are erased and some are not; repeating it is safe.
type BulkEraser interface {
	// EraseTenant erases every scope of a tenant. One whose data key cannot be read is not known to be the tenant's: only
	// its own erasure, or that of all, removes it.
	EraseTenant(ctx context.Context, tenant string) (Receipt, error)
	// EraseAll erases every scope. What remains is an empty store with the secrets that names and ids derive from.
	EraseAll(ctx context.Context) (Receipt, error)
}

// Backuper is what a [Store] offers that can write a copy of itself while it serves.
type Backuper interface {
	// Backup writes all memories and records as they are at one moment, sealed as they are stored, without any key: who
	// restores it needs the keyring too. Records of volatile buckets may be left out. What was written is a backup only if
	// the error is nil.
	Backup(ctx context.Context, w io.Writer) error
}
