// Package dialect reads and extends the request bodies of LLM APIs and reads
// their replies.
//
// It hides the wire format of each API: callers see messages, turns, insertions
// and final answers. Every function is a pure function of bytes: no I/O, no
// clock, no randomness. The only shared state is a pool of message slices, so
// everything is safe for concurrent use except a single [Request].
//
// A body is never decoded and encoded again. Extending it means inserting bytes
// at offsets ([Splice]), and every other byte stays as it was. Input is
// untrusted: nothing panics, recurses without bound, or allocates more than a
// small multiple of its input. Nesting is limited by [MaxDepth], messages by
// [MaxMessages].
//
// Parse accepts JSON by RFC 8259 with one exception: the contents of strings
// that are not read are not checked, so they may hold unknown escapes and bare
// control characters, which are forwarded for the server to judge. Such a
// string ends at the first quote after an even number of backslashes. Read, and
// therefore checked, are keys at any depth; roles, item types and part types;
// the values in [Request] (model, ids, metadata, limits); and the texts of the
// newest turn. An earlier message with a malformed text has no text. Invalid
// UTF-8 is refused only in keys. Replies are checked in full.
//
// To add a dialect, implement [Dialect] in three files: parsing (on
// requestReader), inserting (on the helpers of insert.go) and replies.
package dialect

import (
	"cmp"
	"errors"
	"slices"
)

// Reasons why a body gets no memory. Parse returns errors that wrap one of
// them. None quotes the body.
var (
	ErrMalformed = errors.New("malformed body")          // invalid JSON, or not the shape that the dialect expects
	ErrTooDeep   = errors.New("body nested too deep")    // more than MaxDepth levels
	ErrAmbiguous = errors.New("ambiguous key in body")   // a key that decides what the messages are is duplicated or escaped
	ErrNoUser    = errors.New("no user message in body") // nothing to recall for
)

// ErrNoPlace is wrapped by the errors of Insert: the request has no content
// that the placement could extend.
var ErrNoPlace = errors.New("no place for a block")

// MaxDepth is the deepest nesting of a body that is read.
const MaxDepth = 512

// MaxMessages is the longest conversation that is read, in messages. It keeps a
// body of empty messages from growing to many times its size in memory. Parse
// fails with ErrMalformed beyond it.
const MaxMessages = 1 << 14

// Dialect is the wire format of one API.
type Dialect interface {
	// Name returns the dialect's name in settings, logs and traces.
	Name() string
	// Parse finds the messages of a request body. The Request keeps body and
	// refers to its bytes.
	Parse(body []byte) (*Request, error)
	// Insert returns the insertions that put text into req at message turn (an
	// index into req.Messages of a user message). The result depends on nothing
	// else, so the same call on a longer conversation inserts the same bytes.
	// Its errors wrap ErrNoPlace.
	Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error)
	// Reply reads a complete JSON response body.
	Reply(body []byte) (Reply, error)
	// ReplyStream reads a complete streamed response body: server-sent events,
	// or for Ollama one JSON value a line. A stream that ends early gives a
	// Reply that is not Final.
	ReplyStream(body []byte) (Reply, error)
}

// Placement selects where a block is inserted.
type Placement uint8

const (
	// BeforeUser inserts one message with role user right before the turn's
	// message. Messages, whose server merges consecutive user messages, gets a
	// text block inside the turn's message instead.
	BeforeUser Placement = iota
	// InUser inserts the block at the start of the turn's own content: as a
	// first text part of an array, or at the start of a string. It serves chat
	// templates that refuse two user messages in a row.
	InUser
	// System appends the block to the system prompt (Responses: to the
	// instructions), or adds one. It invalidates the prompt cache.
	System
)

// String returns the name of the placement: beforeUser, inUser or system.
func (p Placement) String() string { return [...]string{"beforeUser", "inUser", "system"}[p] }

// Insertion is text to be inserted before body[At]. Cut bytes of the body
// behind it are left out, which only [Binder] asks for.
type Insertion struct {
	At   int
	Text []byte
	Cut  int
}

// Splice returns the pieces of body with the insertions made: concatenated they
// are the new body. The pieces refer to body and to the insertions; nothing is
// copied. Insertions may come in any order. Those at the same offset keep their
// order, so [System] insertions should come first. Every At and At+Cut must be
// in 0..len(body). What is cut twice is left out once.
func Splice(body []byte, insertions []Insertion) [][]byte {
	byAt := func(a, b Insertion) int { return cmp.Compare(a.At, b.At) }
	if !slices.IsSortedFunc(insertions, byAt) {
		insertions = slices.Clone(insertions)
		slices.SortStableFunc(insertions, byAt)
	}
	pieces := make([][]byte, 0, 2*len(insertions)+1)
	done := 0
	for _, in := range insertions {
		if in.At > done {
			pieces = append(pieces, body[done:in.At])
			done = in.At
		}
		if len(in.Text) > 0 {
			pieces = append(pieces, in.Text)
		}
		done = max(done, in.At+in.Cut)
	}
	if done < len(body) {
		pieces = append(pieces, body[done:])
	}
	return pieces
}
