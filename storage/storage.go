// Package storage is the vocabulary of Remora's memory and the contract of the stores that keep it.
//
// It holds no technology: implementations live in packages below it (storage/badger, ...), each of which must pass
// storage/storagetest. What every implementation guarantees:
//
//   - Scope. Every call names a [Scope]; nothing is read or written outside it. An id of another scope is
//     [ErrNotFound], exactly like an id that never existed.
//   - Durability. A write that returned nil survives a crash of the process and of the machine. What is put into a
//     volatile bucket survives a crash of the process, and of the machine once a durable write has followed.
//   - Atomicity. One [Write] is applied whole or not at all. A batch of writes is not atomic across its writes.
//   - Copies. Values passed in are not kept, values returned are the caller's: no pointer is shared, so that a store
//     can live in another process.
//   - Failure. While the store cannot serve (locked, damaged, full, still opening, closed) every call returns an error
//     that wraps [ErrUnavailable], at once and without side effects. Callers must bear it: traffic goes on without memory.
//
// All methods are safe for concurrent use and honour their context.
package storage

import (
	"context"
	"errors"
	"time"
)

// Errors that cross the package border. Test with errors.Is.
var (
	// ErrUnavailable: the store cannot serve now. The call had no effect, or its effect is unknown and repeating it is safe.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNotFound: no such record in this scope.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the arguments break the contract (empty scope part, oversized key, ...). Repeating the call will not help.
	ErrInvalid = errors.New("invalid argument")
	// ErrDamaged: the record is there but cannot be read back as it was written. Scans skip and count such records.
	ErrDamaged = errors.New("record damaged")
)

// Time is milliseconds since the Unix epoch, UTC. 0 means not set.
type Time int64

// TimeOf converts t, dropping what is finer than a millisecond. The zero time.Time gives 0.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std converts t to a time.Time in UTC. 0 gives the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// Scope is the unit of isolation: index, data key, caps and erasure are per scope. All four parts are non-empty and at
// most [MaxScopePart] bytes each; they may hold any bytes, since a store never uses them in the clear.
type Scope struct {
	Tenant  string
	App     string
	Project string
	User    string
}

// MaxScopePart is the longest part of a scope, in bytes.
const MaxScopePart = 512

// Validate returns an error wrapping [ErrInvalid] that names the first bad part, never its value.
func (s Scope) Validate() error {
	for _, p := range [...]struct{ name, value string }{
		{"tenant", s.Tenant}, {"app", s.App}, {"project", s.Project}, {"user", s.User},
	} {
		if p.value == "" {
			return &partError{p.name, "is empty"}
		}
		if len(p.value) > MaxScopePart {
			return &partError{p.name, "is longer than 512 bytes"}
		}
	}
	return nil
}

type partError struct{ part, what string }

func (e *partError) Error() string { return "scope: " + e.part + " " + e.what }
func (e *partError) Unwrap() error { return ErrInvalid }

// Kind says what a memory is.
type Kind string

const (
	KindEpisode  Kind = "episode"  // a passage of a finished turn, as it was said
	KindFact     Kind = "fact"     // a statement distilled from turns
	KindResource Kind = "resource" // a passage of a document that the user handed in
	KindCurated  Kind = "curated"  // MEMORY.md, USER.md
	KindEntry    Kind = "entry"    // keyed memory of a tool, with a mandatory TTL
)

// ProjectTag begins the tag that names the project which an episode is about, such as the directory that an agent works in.
// It ranks memories, and keeps none from anybody.
const ProjectTag = "project:"

// OutdatedTag is on an episode that holds a statement of the user's which a later one supersedes. It may still be recalled, for what else
// it says, and is shown as what it is.
const OutdatedTag = "outdated"

// Role says who spoke.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Provenance ties a memory to what it came from.
type Provenance struct {
	// Turn is the id of the turn that the memory came from ("" for resources and entries).
	Turn string
	// Chain is the hash, as hex, of the request's messages up to and including the turn's user message. A later request
	// that carries the same messages shows the turn already, so its memories are not recalled there.
	Chain string
	// Role and Speaker say whose words they are; Speaker is "" where there is no name.
	Role    Role
	Speaker string
	// Seq numbers the passages of one turn from 0, in order of speech.
	Seq int
	// Model that answered, "" if unknown.
	Model string
}

// Embedding is a vector and what made it.
type Embedding struct {
	Model  string
	Vector []float32
}

// Memory is one record. Its text is already redacted. CreatedAt, UpdatedAt and Version are the store's: see [Store.Put].
// Empty slices and maps come back as nil.
type Memory struct {
	ID           string // opaque, unique in its tenant, <= [MaxID] bytes
	Scope        Scope
	Conversation string
	Kind         Kind
	Text         string
	Entities     []string
	Tags         []string
	Priority     float64 // quality score, 0..1
	Confidence   float64 // 0..1
	Trust        float64 // 0 quarantined (never recalled) .. 1 the user's own words
	Source       string  // surface that it came in by: "proxy", "api", "import", ...
	Provenance   Provenance
	Redactions   map[string]string // sealed originals of personal data by salted hash; never a secret's. nil when none are kept
	Embedding    *Embedding
	CreatedAt    Time
	UpdatedAt    Time
	EventTime    Time // when it was said or happened
	ValidFrom    Time
	ValidTo      Time   // superseded at; 0 = still valid
	SupersededBy string // id
	ExpiresAt    Time   // 0 = never. Past it a store may stop returning the record at any moment
	DeletedAt    Time   // a caller's own mark; to a store a field like any other
	Version      uint64 // 1 at creation, +1 with each change
}

// MaxID is the longest id or record key, in bytes.
const MaxID = 256

// Write is one atomic change in one scope. Its [Write.Size] is at most [MaxWrite] and it holds at most
// [MaxWriteMemories] memories, no id twice. The Scope of each memory is that of the write, or zero, which means the same.
type Write struct {
	Scope Scope
	// Turn, if set, makes the write the whole truth about that turn: memories that an earlier write with this Turn left
	// in the scope and that are not in Memories are deleted in the same commit. That makes a replay a no-op and a
	// regenerated reply a replacement. Ids of a turn's memories are then TurnMemoryID(Turn, 0), (Turn, 1), ... without gaps.
	Turn     string
	Memories []Memory
}

// Query selects memories of one scope.
type Query struct {
	Kinds        []Kind // empty = all
	Conversation string // "" = all
	After        string // cursor of the page before; "" = from the start
	Limit        int    // <= 0 or > MaxPage means MaxPage
}

// MaxPage is the largest page that Scan returns. Pages of large records are cut shorter, so only an empty Next says
// that a scan is done.
const MaxPage = 1000

// Page is one page of a scan.
type Page struct {
	Memories []Memory
	// Next continues the scan; "" = done. It is opaque, valid across restarts, and only for the same scope, kinds and
	// conversation; with others, or altered, it is [ErrInvalid].
	Next string
	// Damaged counts records of this page that could not be read and were skipped.
	Damaged int
	// Expired is the digest of the memories that were passed over because they have expired and are not removed yet. Over
	// all pages of a scan without kinds and conversation, the memories, those expired and those damaged are the scope's
	// whole Digest: see [Verify].
	Expired Digest
}

// Store keeps memories.
type Store interface {
	// Put applies the writes in order. All are durable once it returns nil. On an error any number of leading writes may
	// have been applied; repeating the call is safe.
	Put(ctx context.Context, writes []Write) error
	// Memory returns one record, or [ErrNotFound] also when it has expired or been deleted, or [ErrDamaged].
	Memory(ctx context.Context, scope Scope, id string) (Memory, error)
	// Scan pages through a scope in order of EventTime, oldest first, then id.
	Scan(ctx context.Context, scope Scope, q Query) (Page, error)
	// Delete removes records and returns how many there were; unknown ids are not an error.
	Delete(ctx context.Context, scope Scope, ids ...string) (int, error)
	// Erase removes everything of the scope, in memories and in [Local] records, and destroys its data key.
	Erase(ctx context.Context, scope Scope) (Receipt, error)
}

// Receipt counts what an erasure removed, expired memories and records that were not removed yet included.
type Receipt struct {
	Scopes   int // that held anything, or could have: of Erase 0 or 1
	Memories int
	Records  map[Bucket]int
	At       Time
}

// Bucket names a kind of local record.
type Bucket string

const (
	BucketSpool   Bucket = "spool"   // turns waiting to become memories
	BucketLedger  Bucket = "ledger"  // what was inserted where
	BucketIndex   Bucket = "index"   // what recall derives from memories: snapshots of indexes, vectors
	BucketSummary Bucket = "summary" // conversation summaries
	BucketAudit   Bucket = "audit"   // audit records
)

// Buckets lists all buckets; a store refuses any other with [ErrInvalid].
func Buckets() []Bucket {
	return []Bucket{BucketSpool, BucketLedger, BucketIndex, BucketSummary, BucketAudit}
}

// Volatile says that records of this bucket can be made again, or done without: those put last may be lost when the
// machine crashes, though not when a process does, and not those put before the last durable write. Deleting them is
// durable like everything else.
func (b Bucket) Volatile() bool { return b == BucketLedger || b == BucketIndex }

// Record is a local value. Values are sealed like memories.
type Record struct {
	Bucket    Bucket
	Scope     Scope
	Key       string // 1..MaxID bytes
	Value     []byte // <= MaxRecord bytes
	ExpiresAt Time   // 0 = never
}

// MaxRecord is the largest value of a local record, in bytes. Larger ones are refused with [ErrInvalid].
const MaxRecord = 16 << 20

// MaxRecords is the most records, or references, that one atomic call takes.
const MaxRecords = 500

// RecordRef names a local record.
type RecordRef struct {
	Bucket Bucket
	Scope  Scope
	Key    string
}

// RecordPage is one page of local records. Next as in [Page].
type RecordPage struct {
	Records []Record
	Next    string
	Damaged int
}

// Local keeps what belongs to this machine even where memories live elsewhere: spool, ledger, index snapshots,
// summaries, audits. Memory and Local records of one scope share its data key and its erasure.
type Local interface {
	// PutRecords writes all records in one atomic commit, durable unless all of their buckets are [Bucket.Volatile]; a
	// record with the same reference is replaced. Of records with the same reference in one call the last one counts.
	PutRecords(ctx context.Context, records []Record) error
	// Records pages through one bucket of one scope in key order. Limits and short pages are as in [Query] and [MaxPage].
	Records(ctx context.Context, bucket Bucket, scope Scope, after string, limit int) (RecordPage, error)
	// AllRecords pages through one bucket over all scopes, in an order of the store's own. Used to recover the spool.
	AllRecords(ctx context.Context, bucket Bucket, after string, limit int) (RecordPage, error)
	// DeleteRecords removes records in one atomic, durable commit. Unknown references are not an error.
	DeleteRecords(ctx context.Context, refs []RecordRef) error
	// InstallSecret is a 32-byte secret made once for this installation. It never rotates: tenants and turn ids derive from it.
	InstallSecret(ctx context.Context) ([]byte, error)
}
