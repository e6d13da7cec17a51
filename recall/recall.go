// Package recall finds the memories that matter for a message.
//
// An [Engine] keeps one in-memory index per scope, built lazily from the store and kept current by Add and Forget. It
// searches one scope at a time, never a pool of users. It refuses to guess: below a calibrated relevance nothing is
// returned, and a failure of any kind is an error that the caller passes on as a status, never as an empty result.
//
// With an [Embedder] memories get vectors in the background, and likeness counts beside words. Embeddings fail open: late
// or failed, what words have found stands, and [Result.Vectors] says so.
package recall

import (
	"context"
	"errors"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Errors of Recall, beside those that wrap storage.ErrUnavailable.
var (
	// ErrTimeout: the deadline passed first. Loading of the scope's index goes on in the background.
	ErrTimeout = errors.New("recall deadline exceeded")
)

// Source is what the engine loads an index from; storage.Store is one.
type Source interface {
	Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error)
}

// SearchScope narrows where memories may come from.
type SearchScope string

const (
	CurrentChat   SearchScope = "current_chat"
	Resources     SearchScope = "resources"
	AllUserMemory SearchScope = "all_user_memory"
)

// MaxTopK is the most memories that one request may ask for.
const MaxTopK = 100

// Request asks for memories.
type Request struct {
	Scope        storage.Scope
	Conversation string
	// Newest is the text of the newest user message as the client sent it. The engine cuts the wrappers of agents away
	// itself, but where HumanWords has been applied to it: HumanOnly.
	Newest    string
	HumanOnly bool
	// Previous returns the text of the user turn before as the client sent it, or ""; nil = there is none. Few messages are
	// so short that it is asked for, and then before Recall returns, on its goroutine, perhaps twice.
	Previous func() string
	// VisibleChains are provenance chain hashes of turns that the request carries itself, as the bytes whose lower-case hex
	// they are in memories; VisibleIDs are memories that stand in blocks replayed in it. Neither is returned, and neither kept.
	VisibleChains [][16]byte
	// VisibleTurns is how many of the newest turns of Conversation the request carries besides, under chain hashes that nobody knows: a
	// client that sends a window of its history has others. At most 256 count.
	VisibleTurns int
	VisibleIDs   map[string]struct{}
	// Project is what the request is about, as in storage.ProjectTag; "" = unknown. Conversations about it rank higher.
	Project      string
	Now          time.Time
	Scopes       []SearchScope // empty = the configuration's
	TopK         int           // 0 = the configuration's
	BudgetTokens int           // 0 = the configuration's; for its sake texts may be parts, with "..." where they were cut
	// Screen, if not nil, is applied to the whole of a text before a part of it is taken: what is no more to be shown may not be known
	// by its part. It is called before Recall returns. Texts that are returned whole are left to the caller.
	Screen  func(text string) string
	NoGate  bool // rank whatever matches: benchmarks and explanations
	Explain bool // fill Scored.Parts and Result.Cut, which takes longer
	// Lines asks for no more of the memories than a line of a block shows: ID, Kind, Text, EventTime, and the Role and the Speaker of
	// their Provenance, and storage.OutdatedTag where it has that. What else a memory has lies scattered, and takes as long to read as its text.
	// The IDs are parts of one string, which holds nothing else.
	Lines bool
	// Into is room for Result.Memories, which stand in its array, from the start, if that has room for TopK. Whatever is
	// there is overwritten.
	Into []Scored
}

// Result is what was found, best first.
type Result struct {
	Memories []Scored
	// Considered counts the candidates that matched at all; Gated those that fell below the gate.
	Considered int
	Gated      int
	// Relevance, 0..1, is what the gate judged the best candidate by; 0 without candidates.
	Relevance float64
	// Vectors says what embeddings did.
	Vectors VectorStatus
	Took    time.Duration
	// Cut says why candidates that ranked high were not returned. Only with Request.Explain, at most MaxTopK of them.
	Cut []Cut
}

// Reason says why a candidate was not returned.
type Reason string

const (
	CutGate      Reason = "gate"      // below the calibrated relevance
	CutVisible   Reason = "visible"   // stands in the request already
	CutDuplicate Reason = "duplicate" // says the same as a memory that ranked higher
	CutBudget    Reason = "budget"    // did not fit the token budget
	CutTopK      Reason = "topK"      // ranked below the last that was asked for
	CutFloor     Reason = "floor"     // far below the best
	CutEmpty     Reason = "empty"     // small talk
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

// Part is one addend or factor of a score.
type Part struct {
	Name  string // field or multiplier
	Term  string // the stem it came from, "" for multipliers and the vector
	Value float64
}
