// Package storage defines Remora's memories and the contract of the stores that
// keep them.
//
// It contains no database. Implementations live in packages below it
// (storage/badger embeds one, storage/process runs a store in a process of its
// own), and each must pass storage/storagetest. The engines (recall, persist)
// and the surfaces see stores only through this package. Every implementation
// guarantees:
//
//   - Scope. Every call names a [Scope] and neither reads nor writes outside it. An id of another scope is
//     [ErrNotFound], exactly like an id that never existed.
//   - Durability. A write that returned nil survives a crash of the process and of the machine. A write to a volatile
//     bucket survives a crash of the process, and of the machine once a durable write has followed it.
//   - Atomicity. One [Write] is applied whole or not at all. A batch of writes is not atomic.
//   - Copies. Arguments are not kept and results belong to the caller, so a store can live in another process.
//   - Failure. While a store cannot serve (locked, damaged, full, being opened, closed) every call returns, at once and
//     without effect, an error that wraps [ErrUnavailable]. Callers must cope: traffic continues without memory.
//
// All methods are safe for concurrent use and honour their context.
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that cross the package border. Test with errors.Is.
var (
	// ErrUnavailable: the store cannot serve now. Either the call had no
	// effect, or its effect is unknown; repeating it is safe.
	ErrUnavailable = errors.New("store unavailable")
	// ErrNotFound: no such record in this scope.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the arguments break the contract (empty scope part, oversized
	// key). Repeating the call will not help.
	ErrInvalid = errors.New("invalid argument")
	// ErrTooManyUsers: the scope is new, and the store admits no more. It wraps
	// ErrInvalid.
	ErrTooManyUsers = fmt.Errorf("too many users: %w", ErrInvalid)
	// ErrDamaged: the record exists but cannot be read back as it was written.
	// Scans skip and count such records.
	ErrDamaged = errors.New("record damaged")
)

// Time is milliseconds since the Unix epoch, UTC. 0 means not set.
type Time int64

// TimeOf converts t, truncated to milliseconds. The zero time.Time gives 0.
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

// Scope is the unit of isolation: index, data key, caps and erasure are per
// scope. Each part has 1 to [MaxScopePart] bytes, which may be any: a store
// never keeps them in the clear.
type Scope struct {
	Tenant  string
	App     string
	Project string
	User    string
}

// MaxScopePart is the maximum length of a part of a scope, in bytes.
const MaxScopePart = 512

// Validate returns an error that wraps [ErrInvalid] and names the first bad
// part, never its value.
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

// Kind is the kind of a memory.
type Kind string

const (
	KindEpisode  Kind = "episode"  // a passage of a finished turn, as it was said
	KindFact     Kind = "fact"     // a statement distilled from turns
	KindResource Kind = "resource" // a passage of a document that the user handed in
	KindCurated  Kind = "curated"  // MEMORY.md, USER.md
	KindEntry    Kind = "entry"    // keyed memory of a tool, with a mandatory TTL
)

// ProjectTag is the prefix of a tag that names the project of an episode, such
// as the directory that an agent works in. It affects ranking only, never
// access.
const ProjectTag = "project:"

// OutdatedTag marks an episode with a statement that the user has superseded
// since. It may still be recalled for the rest of its text, and is labelled as
// outdated.
const OutdatedTag = "outdated"

// QuotedTag marks an episode that mostly is a text which the user handed over
// to be worked on, or words of others. RolePlayTag marks one in which the user
// played a role. "I" is somebody else in both, so they answer no question about
// the user.
const (
	QuotedTag   = "quoted"
	RolePlayTag = "role-play"
)

// SpeaksOfOthers reports whether a tag is one of those.
func SpeaksOfOthers(tag string) bool { return tag == QuotedTag || tag == RolePlayTag }

// ResourceTag is the prefix of a tag that names the document of a resource, by
// its URI.
const ResourceTag = "resource:"

// PrivateTag marks a memory that goes only to upstreams that the policy names
// for it.
const PrivateTag = "private"

// PinnedTag marks a memory that a person wants to keep: it does not expire, is
// not evicted, and does not lose value with time. It can still be superseded.
const PinnedTag = "pinned"

// UnwantedTag is the prefix of a tag by which a memory is not recalled for a
// kind of question. It has hashes of the words of an example.
const UnwantedTag = "unwanted:"

// Role is the role of a speaker.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Provenance is the origin of a memory.
type Provenance struct {
	// Turn is the id of the turn that the memory came from ("" for resources
	// and entries).
	Turn string
	// Chain is the hash, in hex, of the request's messages up to and including
	// the turn's user message. A later request that carries the same messages
	// already shows the turn, so its memories are not recalled there.
	Chain string
	// Role and Speaker identify the speaker; Speaker is "" if no name is known.
	Role    Role
	Speaker string
	// Seq numbers the passages of one turn from 0, in order of speech.
	Seq int
	// Model is the model that answered, "" if unknown.
	Model string
}

// Memory is one memory. Its text is already redacted. The store sets CreatedAt,
// UpdatedAt and Version. Empty slices and maps are read back as nil.
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
	Source       string  // surface that it came in through: "proxy", "api", "import", ...
	Provenance   Provenance
	Redactions   map[string]string // sealed originals of personal data, never of secrets, by salted hash; nil if none are kept
	CreatedAt    Time
	UpdatedAt    Time
	EventTime    Time // when it was said or happened
	ValidFrom    Time
	ValidTo      Time   // when it was superseded; 0 = still valid
	SupersededBy string // id
	ExpiresAt    Time   // 0 = never; after it a store may stop returning the memory at any moment
	DeletedAt    Time   // set and read by callers; stores treat it like any other field
	Version      uint64 // 1 at creation, +1 with each change
}

// MaxID is the maximum length of an id or a record key, in bytes.
const MaxID = 256

// Write is one atomic change in one scope. Its [Write.Size] is at most
// [MaxWrite], and it has at most [MaxWriteMemories] memories with distinct ids.
// The Scope of each memory is the write's, or zero, which means the same.
type Write struct {
	Scope Scope
	// Turn, if set, makes the write replace that turn: memories of an earlier
	// write with this Turn that are not in Memories are deleted in the same
	// commit. A replay is then a no-op and a regenerated reply a replacement.
	// The ids of a turn's memories are TurnMemoryID(Turn, 0), (Turn, 1), ...
	// without gaps.
	Turn     string
	Memories []Memory
}

// Query selects memories of one scope.
type Query struct {
	Kinds        []Kind // empty = all
	Conversation string // "" = all
	Newest       bool   // the newest first
	After        string // Next of the previous page; "" = from the start
	Limit        int    // <= 0 or > MaxPage means MaxPage
}

// MaxPage is the maximum number of records in a page. Pages of large records
// are shorter, so only an empty Next ends a scan.
const MaxPage = 1000

// Page is one page of a scan.
type Page struct {
	Memories []Memory
	// Next continues the scan; "" = done. It is opaque and survives restarts.
	// Used with another scope, other kinds or another conversation, or altered,
	// it is [ErrInvalid].
	Next string
	// Damaged counts the records of this page that were skipped because they
	// cannot be read.
	Damaged int
	// Expired is the digest of the memories that were skipped because they have
	// expired and are not removed yet. Summed over a scan without kinds and
	// conversation, read, expired and damaged memories make up the scope's
	// Digest: see [Verify].
	Expired Digest
}

// Store keeps memories.
type Store interface {
	// Put applies the writes in order. All are durable once it returns nil.
	// After an error any number of leading writes may have been applied;
	// repeating the call is safe.
	Put(ctx context.Context, writes []Write) error
	// Memory returns one memory, [ErrNotFound] also if it has expired or been
	// deleted, or [ErrDamaged].
	Memory(ctx context.Context, scope Scope, id string) (Memory, error)
	// Scan pages through a scope in order of EventTime, then id: the oldest
	// first, or with Query.Newest the newest.
	Scan(ctx context.Context, scope Scope, q Query) (Page, error)
	// Delete removes memories and returns how many there were. Unknown ids are
	// not an error.
	Delete(ctx context.Context, scope Scope, ids ...string) (int, error)
	// Erase removes all memories and [Local] records of the scope and destroys
	// its data key.
	Erase(ctx context.Context, scope Scope) (Receipt, error)
}

// Receipt counts what an erasure removed, including what had expired and was
// not removed yet.
type Receipt struct {
	Scopes   int // that held anything, or might have; 0 or 1 for Erase
	Memories int
	Records  map[Bucket]int
	At       Time
}

// Bucket is a kind of local record.
type Bucket string

const (
	BucketSpool   Bucket = "spool"   // turns waiting to become memories
	BucketLedger  Bucket = "ledger"  // what was inserted, and where
	BucketIndex   Bucket = "index"   // derived from memories by recall: index snapshots, vectors
	BucketSummary Bucket = "summary" // conversation summaries
	BucketAudit   Bucket = "audit"   // audit records

	BucketRevision Bucket = "revision" // memories as they were before somebody changed them
	BucketTrash    Bucket = "trash"    // what somebody deleted, until its bytes go
	BucketEntry    Bucket = "entry"    // keyed memory of tools
	BucketExchange Bucket = "exchange" // receipts: what requests were given, and why
)

// Buckets lists all buckets; a store refuses any other with [ErrInvalid].
func Buckets() []Bucket {
	return []Bucket{
		BucketSpool, BucketLedger, BucketIndex, BucketSummary, BucketAudit, BucketRevision, BucketTrash, BucketEntry, BucketExchange,
	}
}

// Volatile reports whether records of this bucket can be rebuilt or done
// without. A crash of the machine may lose those that were put after the last
// durable write; a crash of the process loses none. Deleting them is always
// durable.
func (b Bucket) Volatile() bool {
	return b == BucketLedger || b == BucketIndex || b == BucketExchange
}

// Record is a local record. Values are sealed like memories.
type Record struct {
	Bucket    Bucket
	Scope     Scope
	Key       string // 1..MaxID bytes
	Value     []byte // <= MaxRecord bytes
	ExpiresAt Time   // 0 = never
}

// MaxRecord is the maximum size of a record's value, in bytes. Larger ones are
// [ErrInvalid].
const MaxRecord = 16 << 20

// MaxRecords is the maximum number of records or references in one call.
const MaxRecords = 500

// RecordRef names a local record.
type RecordRef struct {
	Bucket Bucket
	Scope  Scope
	Key    string
}

// RecordPage is one page of local records. Next works as in [Page].
type RecordPage struct {
	Records []Record
	Next    string
	Damaged int
}

// Local keeps the records that stay on this machine even if memories live
// elsewhere: spool, ledger, index snapshots, summaries, audits. Memories and
// records of one scope share its data key and its erasure.
type Local interface {
	// PutRecords writes all records in one atomic commit, which is durable
	// unless all of their buckets are [Bucket.Volatile]. It replaces records
	// with the same reference; within one call the last one counts.
	PutRecords(ctx context.Context, records []Record) error
	// Records pages through one bucket of one scope in key order. Limits and
	// short pages: see [Query] and [MaxPage].
	Records(ctx context.Context, bucket Bucket, scope Scope, after string, limit int) (RecordPage, error)
	// AllRecords pages through one bucket of all scopes, in an order of the
	// store's own. It serves to recover the spool.
	AllRecords(ctx context.Context, bucket Bucket, after string, limit int) (RecordPage, error)
	// DeleteRecords removes records in one atomic, durable commit. Unknown
	// references are not an error.
	DeleteRecords(ctx context.Context, refs []RecordRef) error
	// InstallSecret returns the 32-byte secret of this installation. It never
	// rotates: tenants and turn ids derive from it.
	InstallSecret(ctx context.Context) ([]byte, error)
}
