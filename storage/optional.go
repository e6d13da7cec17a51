package storage

import (
	"context"
	"io"
)

// The interfaces below are what a store may offer in addition to [Store] and
// [Local]. Callers discover them by type assertion. A client of a store in
// another process has all of their methods; where the store itself lacks one,
// the error wraps errors.ErrUnsupported.

// A Digester keeps a digest of each scope, which changes in the same commit as
// the scope's memories. An expired memory counts until the store has removed
// it. An unknown scope has the zero Digest.
type Digester interface {
	Digest(ctx context.Context, scope Scope) (Digest, error)
}

// A ScopeLister lists the scopes that it holds anything of, or has held
// anything of since they were last erased, in an order of its own. The cursor
// works as in [Page].
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

// Validate returns an error that wraps [ErrInvalid] and never quotes a value.
func (r MemoryRef) Validate() error {
	if err := r.Scope.Validate(); err != nil {
		return err
	}
	return validateKey("id", r.ID)
}

// A Prober can be asked about many memories at once.
type Prober interface {
	// Probe reports for each reference, of at most [MaxRecords], whether the
	// memory may exist. False means that Memory would return [ErrNotFound];
	// after true, only Memory can tell.
	Probe(ctx context.Context, refs []MemoryRef) ([]bool, error)
}

// A RecordReader reads one record without reading a page of its bucket.
type RecordReader interface {
	// Record returns one record, [ErrNotFound] also if it has expired, or
	// [ErrDamaged].
	Record(ctx context.Context, ref RecordRef) (Record, error)
}

// MaxKeys is the maximum number of keys that RecordKeys returns.
const MaxKeys = 100_000

// A PrefixReader reads a part of a bucket, or its keys alone.
type PrefixReader interface {
	// RecordsWithPrefix is [Local.Records] of the records whose keys begin with
	// prefix.
	RecordsWithPrefix(ctx context.Context, bucket Bucket, scope Scope, prefix, after string, limit int) (RecordPage, error)
	// RecordKeys returns the keys of the records of a bucket, in order; the
	// first limit of them, of at most [MaxKeys], if there are more.
	RecordKeys(ctx context.Context, bucket Bucket, scope Scope, limit int) ([]string, error)
}

// A Reaper removes expired memories and records. Until it has, they cannot be
// read but take space, and count in the scope's Digest.
type Reaper interface {
	// Reap removes what has expired by now and returns how much that was. From
	// time to time it also has the bytes of removed and deleted records dropped
	// from the disk, which may take seconds; the store serves meanwhile. If it
	// is cut short it has removed a part, and repeating it is safe.
	Reap(ctx context.Context, now Time) (removed int, err error)
	// Newest returns the newest EventTime of all memories, 0 if there are none.
	// It takes as long as Reap.
	Newest(ctx context.Context) (Time, error)
}

// A KeyRotator can replace the key-encryption key that wraps its data keys
// while it serves. Sealed records are not sealed again, and the secrets that
// names and ids derive from do not change.
type KeyRotator interface {
	// RotateKey generates a key and puts it where the store finds it. If
	// newKeyFile is not "", it uses the key in that file instead, and generates
	// it there if the file is missing. The old key is kept, because other
	// stores may use it. At every moment, also after a crash, the configured
	// key opens everything; repeating the call resumes it.
	RotateKey(ctx context.Context, newKeyFile string) (KeyRotation, error)
}

// KeyRotation is the result of RotateKey.
type KeyRotation struct {
	From, To string // ids of the keys, which reveal nothing about them
	Keys     int    // data keys now wrapped by the new key
	// Pending is set if the store cannot change where its key is configured.
	// Both keys then open everything until the store is opened with the new
	// one.
	Pending bool
	// NewFile holds the new key, OldFile the old one; both are "" if Pending.
	NewFile, OldFile string
	// Unreadable counts data keys that neither key opens. They are left as they
	// are.
	Unreadable int
}

// A BulkEraser can erase many scopes at once, each as [Store.Erase] does: its
// data key is destroyed first. If it is cut short, some are erased and some are
// not; repeating it is safe.
type BulkEraser interface {
	// EraseTenant erases every scope of a tenant. A scope whose data key cannot
	// be read is not known to belong to the tenant; only its own erasure or
	// EraseAll removes it.
	EraseTenant(ctx context.Context, tenant string) (Receipt, error)
	// EraseAll erases every scope. It leaves an empty store with the secrets
	// that names and ids derive from.
	EraseAll(ctx context.Context) (Receipt, error)
}

// A Backuper can write a copy of itself while it serves.
type Backuper interface {
	// Backup writes all memories and records as of one moment, sealed as they
	// are stored, without any key: restoring it needs the keyring too. Records
	// of volatile buckets may be left out. What was written is a backup only if
	// the error is nil.
	Backup(ctx context.Context, w io.Writer) error
}
