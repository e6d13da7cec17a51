// Package dialect reads and extends the request bodies of LLM APIs and reads their replies.
//
// Everything here is a pure function of bytes: no I/O, no clock, no randomness, no state but room that is used again. A body is never decoded and
// encoded again; extending it means inserting bytes at offsets, and every other byte stays as it was. Input is
// untrusted: nothing here panics, recurses without bound or allocates more than a small multiple of its input.
//
// What Parse accepts is JSON by RFC 8259 but for one thing: the insides of strings that nobody here reads are not looked
// at, so they may hold escapes that JSON does not know and bare control characters, and leave as they came, for the server
// to judge. Such a string ends at the first quote that an even number of backslashes stands before. Read, and so checked,
// are: keys, at any depth; the role of a message, the type of an item and of a content part; the values of the body that
// [Request] tells (the model, ids, metadata, bounds); the texts of the newest turn. A message before it that has a broken
// text has no text. Invalid UTF-8 is refused in keys alone. Replies are checked whole.
package dialect

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

// Reasons why a body gets no memory. Parse returns errors that wrap one of them; none quotes the body.
var (
	ErrMalformed = errors.New("malformed body")          // not JSON, as far as it is read, of the shape that the dialect expects
	ErrTooDeep   = errors.New("body nested too deep")    // more than MaxDepth levels
	ErrAmbiguous = errors.New("ambiguous key in body")   // a key that decides what the messages are stands twice, or is escaped
	ErrNoUser    = errors.New("no user message in body") // nothing to recall for
)

// ErrNoPlace is wrapped by the errors of Insert: the request has no content of the kind that the placement extends.
var ErrNoPlace = errors.New("no place for a block")

// MaxDepth is the deepest nesting of a body that is read.
const MaxDepth = 512

// MaxMessages is the longest conversation that is read, so that a body of empty messages can't make memory grow to many
// times its size. Parse fails with ErrMalformed beyond it.
const MaxMessages = 1 << 14

// Dialect is one API's shape.
type Dialect interface {
	// Name is the dialect's name in settings, logs and traces.
	Name() string
	// Parse finds the messages of a request body. The Request keeps body and refers to its bytes.
	Parse(body []byte) (*Request, error)
	// Insert returns the insertions that put text into req at message turn (an index into req.Messages, a user message).
	// The result depends on nothing else, so the same call on a longer conversation inserts the same bytes. Its errors
	// wrap ErrNoPlace.
	Insert(req *Request, turn int, p Placement, text string) ([]Insertion, error)
	// Reply reads a complete JSON response body.
	Reply(body []byte) (Reply, error)
	// ReplyStream reads a complete streamed response body: server-sent events, or for Ollama one JSON value a line. A
	// stream that ends early gives a Reply that is not Final.
	ReplyStream(body []byte) (Reply, error)
}

// Placement says where a block goes.
type Placement uint8

const (
	// BeforeUser inserts one message with role user right before the turn's message. Messages, whose turns are merged by
	// the server, gets a text block inside it instead.
	BeforeUser Placement = iota
	// InUser puts the block in front of the turn's own content: as a first text part where content is an array, at the
	// start of the string where it is a string. For chat templates that refuse two user messages in a row.
	InUser
	// System appends the block to the end of the system prompt (Responses: of the instructions), or adds one where there
	// is none. It costs the prompt cache.
	System
)

// Role is the role of a message, folded to what matters here.
type Role uint8

const (
	RoleOther     Role = iota // unknown: kept, never touched
	RoleSystem                // system, developer
	RoleUser                  //
	RoleAssistant             //
	RoleTool                  // tool, function; a message or item that only hands over what tools gave
)

// Message is one message of a request.
type Message struct {
	Start, End int // byte range of its JSON value in the body
	Role       Role
	// Hash is over all of the message but insignificant whitespace. Cache markers do not count, wherever in it they stand,
	// and string content hashes like a single text part with the same text (in the same JSON spelling), so a client that
	// changes only these keeps its chain.
	Hash xxh3.Uint128
	// Calls: an assistant message or an item that calls tools.
	Calls bool
	// Results: a user message that has tool results beside other content, or stands right behind a message that hands them
	// over. Whether it is a turn of a human's is decided by what it says; see [Request.Demote].
	Results bool
	// content is the byte range of the value of its content key; empty range = absent.
	contentStart, contentEnd int
}

// Request is a parsed request body.
type Request struct {
	Body   []byte
	Model  string
	Stream bool
	// Tools: tools are offered to the model. MaxTokens bounds the answer; 0 = the request does not.
	Tools     bool
	MaxTokens int64
	Messages  []Message

	// Ids that the body carries, "" where absent: the end user (safety_identifier, else user), the server-side
	// conversation, the cache key, and the metadata user id.
	User         string
	Conversation string
	CacheKey     string
	MetadataUser string

	// PreviousID is the response that this request continues, "" = none. The server holds all that went before it, with
	// what was inserted there. Only then may Messages be empty and Turn be -1.
	PreviousID string
	// Held: the server keeps the conversation itself (Responses with conversation), for good and beyond our reach.
	Held bool
	// Background: the answer is fetched later, by other requests.
	Background bool
	// Warmup: nothing is to be generated; the server only reads what it is given.
	Warmup bool
	// Unstored: the server was asked not to keep the answer, so no later request over HTTP can continue it.
	Unstored bool

	// Room is where Insert may write, behind its length, as far as it has room. Insertions stand there then.
	Room []byte

	// Turn is the index in Messages of the newest user message; Parse fails with ErrNoUser where there is none. -1 = the
	// newest one is at the server: the request adds to it, as a step of a tool loop does.
	Turn int
	// Loop: tool calls or tool results follow the newest user message, so the request is a step of a tool loop.
	Loop bool

	arrayStart, arrayEnd int // byte range of the messages array, brackets included
	systemStart          int // byte range of the value of the key that holds the system prompt; empty range = absent
	systemEnd            int
	firstKey             int // offset of the first key of the body
	parts                partTypes
	texts                []string              // of the newest turn
	one                  [1]string             // room for texts
	lent                 *[messageRoom]Message // room for Messages, as long as they fit; nil = there is none
}

// messageRoom is of how many messages the room is used again, for another request. It is 8 KiB.
const messageRoom = 128

var messageRooms = sync.Pool{New: func() any { return new([messageRoom]Message) }}

// Release lets another request have the room of r's messages, which r has no more. It may be left out. A nil r has none.
func (r *Request) Release() {
	if r == nil || r.lent == nil {
		return
	}
	messageRooms.Put(r.lent)
	r.Messages, r.lent = nil, nil
}

// settle finds the newest turn once all messages are known. What it says must be readable.
func (r *Request) settle() error {
	r.Turn, r.Loop = -1, false
	for i, m := range r.Messages {
		if m.Role == RoleUser {
			r.Turn = i
		}
	}
	switch {
	case r.Turn >= 0:
		var err error
		if r.texts, err = r.textsOf(r.Turn, r.one[:0]); err != nil {
			return err
		}
	case r.PreviousID == "" && !r.Held:
		return ErrNoUser
	}
	for _, m := range r.Messages[r.Turn+1:] {
		if m.Calls || m.Role == RoleTool {
			r.Loop = true
		}
	}
	return nil
}

// Demote makes tool messages of those user messages that come with tool results and whose texts are not human: what a
// harness adds to results (a picture that a tool has read, where a tool's message can't carry it) is a part of the loop,
// what a person adds is a turn. Several messages in a row are judged up to the first human one, behind which all are the
// person's. It asks for what stands behind the newest results first, and fails with ErrNoUser where no turn is left.
func (r *Request) Demote(human func(i int) bool) error {
	changed := false
	for first := range slices.Backward(r.Messages) {
		for i := first; i < len(r.Messages); i++ {
			m := &r.Messages[i]
			if m.Role != RoleUser || m.Results != (i == first) || human(i) {
				break
			}
			m.Role = RoleTool
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return r.settle()
}

// Answer is the text of the first of messages from to last that is the assistant's and has any, as a [Reply] has it.
func (r *Request) Answer(from, last int) string {
	for i := from; i <= last; i++ {
		if r.Messages[i].Role == RoleAssistant {
			if text := withoutThinking(r.Text(i)); text != "" {
				return text
			}
		}
	}
	return ""
}

// Text is the decoded text of message i: its string content, or its text parts joined by LF. Other parts have none.
func (r *Request) Text(i int) string { return strings.Join(r.Texts(i), "\n") }

// Texts are the texts of message i: its string content, or its text parts. A message that has a broken one has none; the
// newest turn is never such.
func (r *Request) Texts(i int) []string {
	if i == r.Turn {
		return r.texts
	}
	texts, err := r.textsOf(i, nil)
	if err != nil {
		return nil
	}
	return texts
}

func (r *Request) textsOf(i int, room []string) ([]string, error) {
	m := r.Messages[i]
	return contentPieces(r.Body, span{m.contentStart, m.contentEnd}, r.parts, whole, room)
}

// SystemBegins are the beginnings, of at most n bytes or a little more, of the texts that the system prompt consists of,
// as far as they stand before the conversation.
func (r *Request) SystemBegins(n int) []string {
	if r.systemEnd > r.systemStart {
		texts, _ := contentPieces(r.Body, span{r.systemStart, r.systemEnd}, r.parts, n, nil)
		return texts
	}
	var all []string
	for _, m := range r.Messages {
		switch m.Role {
		case RoleSystem:
			texts, _ := contentPieces(r.Body, span{m.contentStart, m.contentEnd}, r.parts, n, nil)
			if all == nil {
				all = texts
			} else {
				all = append(all, texts...)
			}
		case RoleUser, RoleAssistant:
			return all
		}
	}
	return all
}

// SystemMayBegin is false where no text of the system prompt, as SystemBegins has them, begins with prefix, white space
// aside. It decodes nothing, so it is true also where the first letters are not plain to see.
func (r *Request) SystemMayBegin(prefix string) bool {
	may := func(start, end int) bool {
		raw := r.Body[start:end]
		if len(raw) < 2 || raw[0] != '"' {
			return len(raw) > 0 && raw[0] == '['
		}
		raw = raw[1 : len(raw)-1]
		n := min(len(raw), len(prefix))
		seen := plain(raw[:n])
		if seen > 0 && raw[0] == ' ' {
			return true
		}
		return string(raw[:seen]) == prefix[:seen] && (seen < n || n == len(prefix))
	}
	if r.systemEnd > r.systemStart {
		return may(r.systemStart, r.systemEnd)
	}
	for _, m := range r.Messages {
		switch m.Role {
		case RoleSystem:
			if may(m.contentStart, m.contentEnd) {
				return true
			}
		case RoleUser, RoleAssistant:
			return false
		}
	}
	return false
}

// System is the text of the system prompt, as far as it stands before the conversation; "" where there is none.
func (r *Request) System() string {
	if r.systemEnd > r.systemStart {
		text, _ := contentText(r.Body, span{r.systemStart, r.systemEnd}, r.parts)
		return text
	}
	for i := range r.Messages {
		switch r.Messages[i].Role {
		case RoleSystem:
			return r.Text(i)
		case RoleUser, RoleAssistant:
			return ""
		}
	}
	return ""
}

// Previous is the index of the user message before message i, or -1.
func (r *Request) Previous(i int) int {
	for i--; i >= 0; i-- {
		if r.Messages[i].Role == RoleUser {
			return i
		}
	}
	return -1
}

// Insertion is text to be inserted before body[At].
type Insertion struct {
	At   int
	Text []byte
}

// Reply is what an upstream answered.
type Reply struct {
	ID    string
	Model string
	Text  string // the final assistant text (of choice 0); no reasoning, no tool calls, no refusal
	// Finish is the finish reason in the words of Chat Completions: stop, length, tool_calls, content_filter; reasons of
	// other dialects that mean none of these as given. "" where the stream ended before it.
	Finish string
	Calls  bool   // the reply calls tools
	Call   string // the id of the first call, "" where none is told or it is longer than 256 bytes
	Ended  bool   // a stream said that it is at its end
	Usage  Usage
}

// calls notes a call with that id.
func (r *Reply) calls(id string) {
	r.Calls = true
	if r.Call == "" && len(id) <= 256 {
		r.Call = id
	}
}

// Final says that the reply ends a turn with an answer: it stopped by itself or by length, calls no tools and has text.
func (r Reply) Final() bool {
	return (r.Finish == "stop" || r.Finish == "length") && !r.Calls && r.Text != ""
}

// Usage is what the upstream billed, in tokens; 0 where it did not say. Input is all of it: Cached was read from the prompt
// cache, Written was written to it.
type Usage struct {
	Input, Output, Cached, Written int64
}
