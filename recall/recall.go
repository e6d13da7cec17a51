// Package recall finds the memories that are relevant to a message.
//
// An [Engine] holds one index per scope in memory. It loads an index when it is
// first needed, from a snapshot or from the memories in the store; Add and
// Forget keep it up to date. A request searches exactly one scope.
//
// Below a calibrated relevance nothing is returned. A failure of any kind is an
// error, never an empty result. Everything is bounded: a request by its
// deadline, the indexes by Config.MaxBytes and Config.MaxScopeBytes, and all
// background work ends before Close returns.
//
// With an [Embedder] memories get vectors in the background, and a result
// combines words and vectors. If the embedder fails or is late, the result is
// that of the words, and [Result.Vectors] reports it.
package recall

import (
	"context"
	"errors"
	"time"

	"github.com/remora-proxy/remora/recall/query"
	"github.com/remora-proxy/remora/storage"
)

// ErrTimeout is returned when the deadline passes first. The load of the
// scope's index continues in the background.
var ErrTimeout = errors.New("recall deadline exceeded")

// Source is what an engine loads indexes from, for example a storage.Store.
type Source interface {
	Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error)
}

// HumanWords is query.HumanWords, for callers that apply it themselves
// (Request.HumanOnly).
func HumanWords(message string) string { return query.HumanWords(message) }

// SearchScope is a part of a user's memories.
type SearchScope string

const (
	CurrentChat   SearchScope = "current_chat"
	Resources     SearchScope = "resources"
	AllUserMemory SearchScope = "all_user_memory"
)

// MaxTopK is the largest number of memories that a request may ask for.
const MaxTopK = 100

// Request asks for memories.
type Request struct {
	Scope        storage.Scope
	Conversation string
	// Newest is the text of the newest user message. If HumanOnly, it contains
	// only what a person typed; otherwise the engine removes the wrappers that
	// agents add.
	Newest    string
	HumanOnly bool
	// Previous returns the text of the user's previous message as the client
	// sent it, or "". It is called only for short messages, before Recall
	// returns, on its goroutine, at most twice. It may be nil.
	Previous func() string
	// VisibleChains are provenance chain hashes of turns that the request
	// itself carries, decoded from hex. VisibleIDs are memories in earlier
	// blocks that it carries. Neither are returned, and the engine keeps no
	// reference to them.
	VisibleChains [][16]byte
	// VisibleTurns is the number of the newest turns of Conversation that the
	// request carries under unknown chain hashes: a client that sends a window
	// of its history has others. At most 256 count.
	VisibleTurns int
	VisibleIDs   map[string]struct{}
	// NoPrivate leaves out turns with memories that have storage.PrivateTag.
	// Allow, if not nil, leaves out turns with memories for whose kind and tags
	// it returns false; it is called for every candidate, so it must be fast.
	NoPrivate bool
	Allow     func(kind storage.Kind, tags []string) bool
	// RolePlay says that the user plays a role. Only then, or where a question
	// is not about the user or names a text, are turns returned that have
	// storage.RolePlayTag or storage.QuotedTag.
	RolePlay bool
	// Unwanted returns also what is not wanted for questions such as this one:
	// see [Engine.UnwantedTag].
	Unwanted bool
	// Project is what the request is about, as in storage.ProjectTag, or "" if
	// that is unknown. Conversations about it rank higher.
	Project      string
	Now          time.Time
	Scopes       []SearchScope // the configured ones if empty
	TopK         int           // the configured one if 0
	BudgetTokens int           // the configured one if 0; shortened texts have "..." where they were cut
	// Screen, if not nil, is applied to the whole of a text before the text is
	// shortened, since a part may not show what must be redacted. It is called
	// before Recall returns. Texts that are returned whole are not screened.
	Screen  func(text string) string
	NoGate  bool // rank whatever matches, for benchmarks and explanations
	Cuts    bool // fill Result.Cut, with at most TopK candidates
	Explain bool // fill Result.Cut and Scored.Parts, which takes several times as long
	// Lines asks only for what the line of a block shows: ID, Kind, Text and
	// EventTime, the Role and Speaker of the Provenance, and of the Tags
	// storage.OutdatedTag and storage.PrivateTag. Reading the rest takes as long as reading the text.
	// The IDs are substrings of one string, which contains nothing else.
	Lines bool
	// Into is overwritten and used for Result.Memories if its capacity is at
	// least TopK.
	Into []Scored
}

// Result is what was found, best first.
type Result struct {
	Memories []Scored
	// Considered is the number of candidates that matched, Gated of those below
	// the gate.
	Considered int
	Gated      int
	// Relevance, 0 to 1, is what the gate compared; 0 without candidates.
	Relevance float64
	// Terms is the number of terms of the query.
	Terms int
	// Vectors is the part that embeddings had in the result.
	Vectors VectorStatus
	Took    time.Duration
	// Cut lists candidates that ranked high and were not returned, at most
	// MaxTopK. It is filled if Request.Cuts or Request.Explain is set.
	Cut []Cut
}

// Reason is why a candidate was not returned.
type Reason string

const (
	CutGate      Reason = "gate"      // below the calibrated relevance
	CutVisible   Reason = "visible"   // the request carries it
	CutDuplicate Reason = "duplicate" // says the same as one that ranked higher
	CutBudget    Reason = "budget"    // did not fit in the token budget
	CutTopK      Reason = "topK"      // ranked below the last
	CutFloor     Reason = "floor"     // far below the best
	CutEmpty     Reason = "empty"     // small talk
	CutPolicy    Reason = "policy"    // Request.NoPrivate or Request.Allow leaves it out
	CutUnwanted  Reason = "unwanted"  // not wanted for questions such as this one: see Engine.UnwantedTag
)

// Cut is a candidate that was not returned.
type Cut struct {
	ID     string
	Score  float64
	Reason Reason
}

// Scored is a memory and why it ranked.
type Scored struct {
	Memory storage.Memory
	Score  float64
	Parts  []Part
}

// Part is an addend or a factor of a score.
type Part struct {
	Name  string // of the field or factor
	Term  string // the stem that it came from; "" for factors and the vector
	Value float64
}

// VectorStatus is the part that embeddings had in one request.
type VectorStatus string

const (
	VectorsOff    VectorStatus = "off"    // not configured, or the request asks nothing
	VectorsNone   VectorStatus = "none"   // the scope has no vectors yet
	VectorsUsed   VectorStatus = "used"   // vectors are part of the scores
	VectorsLate   VectorStatus = "late"   // the query's vector came too late
	VectorsFailed VectorStatus = "failed" // the query has no vector, or one of another dimension
)
