package dialect

import (
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

// Role is the role of a message, reduced to the roles that matter here.
type Role uint8

const (
	RoleOther     Role = iota // unknown: kept, never changed
	RoleSystem                // system, developer
	RoleUser                  //
	RoleAssistant             //
	RoleTool                  // tool, function; a message or item that only returns tool results
)

// Message is one message of a request.
type Message struct {
	Start, End int // byte range of its JSON value in the body
	Role       Role
	// Hash covers the whole message without insignificant whitespace and
	// without cache markers at any depth. String content hashes like a single
	// text part with the same text (in the same JSON spelling). A client that
	// changes only these keeps its conversation.
	Hash xxh3.Uint128
	// Calls is set on an assistant message or item that calls tools.
	Calls bool
	// Results is set on a user message that has tool results in addition to
	// other content, or that directly follows a message with tool results. Its
	// text decides whether it is a person's turn; see [Request.Demote].
	Results bool
	// Thinking is set on an assistant message with thinking in it; see
	// [Binder].
	Thinking bool

	contentStart, contentEnd int // byte range of the value of its content key; empty = absent
}

// Request is a parsed request body.
type Request struct {
	Body      []byte
	Model     string
	Stream    bool
	Tools     bool  // tools are offered to the model
	Thinks    bool  // the model is asked to think, by a key of the body
	MaxTokens int64 // limit of the answer; 0 = none given
	Messages  []Message

	// Ids in the body, "" if absent: the end user (safety_identifier, else
	// user), the server-side conversation, the cache key and the metadata user
	// id.
	User         string
	Conversation string
	CacheKey     string
	MetadataUser string

	// PreviousID is the response that this request continues, "" = none. The
	// server holds everything before it, including what was inserted there.
	// Only then may Messages be empty and Turn be -1.
	PreviousID string
	// Threaded is set if the server keeps the conversation for some minutes, to
	// be continued once by each answer's id (Messages with thread). Its system
	// prompt is fixed from the first request on.
	Threaded bool
	// Held is set if the server stores the conversation itself, permanently
	// (Responses with conversation).
	Held bool
	// Background is set if the answer is fetched later, by other requests.
	Background bool
	// Warmup is set if nothing is to be generated: the server only reads its
	// input.
	Warmup bool
	// Unstored is set if the server does not keep the answer, so that no later
	// HTTP request can continue it.
	Unstored bool

	// Buffer is where Insert writes, between its length and its capacity.
	// Insertions refer to it.
	Buffer []byte

	// Compacted is the number of messages up to the last compaction, by which
	// the server replaces them: nothing is inserted there any more.
	Compacted int
	// Compacts is set if the request only asks for a compaction.
	Compacts bool

	// Turn is the index in Messages of the newest user message. Parse fails
	// with ErrNoUser if there is none. -1 means that the newest one is at the
	// server: the request continues it, as a step of a tool loop does.
	Turn int
	// Loop is set if tool calls or tool results follow the newest user message,
	// so that the request is a step of a tool loop.
	Loop bool

	arrayStart, arrayEnd int // byte range of the messages array, brackets included
	systemStart          int // byte range of the value of the system prompt's key; empty = absent
	systemEnd            int
	firstKey             int // offset of the first key of the body
	thinkingStart        int // byte range of the value of the key that turns thinking on; empty = absent
	thinkingEnd          int
	parts                partTypes
	texts                []string                 // of the newest turn
	textBuffer           [1]string                // backs texts if there is only one
	pooled               *[pooledMessages]Message // backs Messages while they fit; nil = none
}

// pooledMessages is the size of the message arrays that requests share. It is 8
// KiB. Bodies of less than minPooledBody have few messages, and a thousand of
// them at a time would leave the pool with as many arrays.
const (
	pooledMessages = 128
	minPooledBody  = 8 << 10
)

var messagePool = sync.Pool{New: func() any { return new([pooledMessages]Message) }}

// Release returns the array of r's messages, if it is pooled, and clears
// r.Messages. Calling it is optional. A nil r is allowed.
func (r *Request) Release() {
	if r == nil {
		return
	}
	if r.pooled != nil {
		messagePool.Put(r.pooled)
	}
	r.Messages, r.pooled = nil, nil
}

// findTurn sets Turn and Loop once all messages are known. The texts of the
// turn must be readable.
func (r *Request) findTurn() error {
	r.Turn, r.Loop = -1, false
	for i, m := range r.Messages {
		if m.Role == RoleUser {
			r.Turn = i
		}
	}
	switch {
	case r.Turn >= 0:
		var err error
		if r.texts, err = r.textsOf(r.Turn, r.textBuffer[:0]); err != nil {
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

// Demote gives RoleTool to user messages that come with tool results and that
// human rejects. What a harness adds to results (such as an image that a tool
// has read) is part of the loop; what a person adds is a turn. Of consecutive
// messages, those before the first human one are demoted. The newest are asked
// about first. It fails with ErrNoUser if no turn is left.
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
	return r.findTurn()
}

// DemoteTexts gives RoleTool to the newest user messages, as long as each
// directly follows an assistant's message and isResult holds for it: results of
// calls that are written as text. It leaves the first user message.
func (r *Request) DemoteTexts(isResult func(i int) bool) error {
	changed := false
	for i := r.Turn; i > 0 && r.Messages[i-1].Role == RoleAssistant && isResult(i); {
		next := r.Previous(i)
		if next < 0 {
			break
		}
		r.Messages[i].Role, changed = RoleTool, true
		i = next
	}
	if !changed {
		return nil
	}
	return r.findTurn()
}

// Previous returns the index of the last user message before message i, or -1.
func (r *Request) Previous(i int) int {
	for i--; i >= 0; i-- {
		if r.Messages[i].Role == RoleUser {
			return i
		}
	}
	return -1
}

// Answer returns the text of the first assistant message in from..last that has
// any, without reasoning.
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

// Text returns the decoded text of message i: its string content, or its text
// parts joined by LF. Other parts have none.
func (r *Request) Text(i int) string { return strings.Join(r.Texts(i), "\n") }

// Texts returns the texts of message i: its string content, or its text parts.
// A message with a malformed one has none. The newest turn never has one.
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

func (r *Request) textsOf(i int, buffer []string) ([]string, error) {
	m := r.Messages[i]
	return contentTexts(r.Body, span{m.contentStart, m.contentEnd}, r.parts, noLimit, buffer)
}

// systemValues is an iterator over the values that hold the system prompt, as
// far as it precedes the conversation.
func (r *Request) systemValues(yield func(span) bool) {
	if r.systemEnd > r.systemStart {
		yield(span{r.systemStart, r.systemEnd})
		return
	}
	for _, m := range r.Messages {
		switch m.Role {
		case RoleSystem:
			if !yield(span{m.contentStart, m.contentEnd}) {
				return
			}
		case RoleUser, RoleAssistant:
			return
		}
	}
}

// SystemPrefixes returns the first n bytes, or a few more, of each text of the
// system prompt.
func (r *Request) SystemPrefixes(n int) []string {
	var all []string
	for v := range r.systemValues {
		texts, _ := contentTexts(r.Body, v, r.parts, n, nil)
		if all == nil {
			all = texts
		} else {
			all = append(all, texts...)
		}
	}
	return all
}

// SystemMayStartWith returns false if no text of the system prompt, as
// SystemPrefixes returns them, starts with prefix, ignoring white space. It
// decodes nothing, so it is also true where escapes hide the first letters.
func (r *Request) SystemMayStartWith(prefix string) bool {
	for v := range r.systemValues {
		raw := r.Body[v.start:v.end]
		if len(raw) < 2 || raw[0] != '"' {
			if len(raw) > 0 && raw[0] == '[' {
				return true
			}
			continue
		}
		raw = raw[1 : len(raw)-1]
		n := min(len(raw), len(prefix))
		seen := plainPrefix(raw[:n])
		if seen > 0 && raw[0] == ' ' || string(raw[:seen]) == prefix[:seen] && (seen < n || n == len(prefix)) {
			return true
		}
	}
	return false
}

// System returns the text of the system prompt if it precedes the conversation,
// else "".
func (r *Request) System() string {
	for v := range r.systemValues {
		texts, err := contentTexts(r.Body, v, r.parts, noLimit, nil)
		if err != nil && r.systemEnd == r.systemStart {
			return ""
		}
		return strings.Join(texts, "\n")
	}
	return ""
}
