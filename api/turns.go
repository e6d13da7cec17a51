package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// Retrieval asks for the memories that a request would be given, for programs
// that put them into requests themselves.
type Retrieval struct {
	Query        string
	Conversation string   // "" if it is unknown
	Scopes       []string // current_chat, resources, all_user_memory; empty = the configured ones
	TopK         int      // 1..100; 0 = the configured one
}

// Retrieve returns what passes the gate, best first. Private memories are never
// among it: where they go from here no policy can decide.
func (s *questions) Retrieve(ctx context.Context, p Principal, t Target, q Retrieval) ([]Found, error) {
	switch {
	case strings.TrimSpace(q.Query) == "":
		return nil, invalid("query", "is empty")
	case q.TopK < 0 || q.TopK > MaxTopK:
		return nil, invalid("topK", "must be 1..%d", MaxTopK)
	}
	if err := checkLength("query", q.Query, MaxMessage); err != nil {
		return nil, err
	}
	if err := checkLength("conversation", q.Conversation, storage.MaxScopePart); err != nil {
		return nil, err
	}
	scopes, err := searchScopes(q.Scopes)
	if err != nil {
		return nil, err
	}
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	res, err := patiently(ctx, s.Engine, recall.Request{
		Scope: scope, Conversation: q.Conversation, Newest: q.Query, Now: s.Now(), Scopes: scopes, TopK: q.TopK,
		BudgetTokens: 1 << 20, Screen: s.Redact, NoPrivate: true,
	})
	if err != nil {
		return nil, err
	}
	return s.results(ctx, scope, &res).Results, nil
}

// maxHandedIn bounds the messages of one call.
const maxHandedIn = 200

// maxAhead is how far a message's time may be ahead of the clock here.
const maxAhead = 24 * time.Hour

// AddTurns takes in messages of a conversation, in order, without waiting for
// anything, and returns how many turns they are: a turn is what the user said
// and what was answered. The same messages again, with their times, are the
// same turns. source names the face that they came in through.
func (s *intake) AddTurns(ctx context.Context, p Principal, t Target, conversation string, messages []persist.Message, source string) (int, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return 0, err
	}
	if conversation == "" {
		return 0, invalid("conversation", "is required")
	}
	if err := checkLength("conversation", conversation, storage.MaxScopePart); err != nil {
		return 0, err
	}
	if err := s.checkMessages(messages); err != nil {
		return 0, err
	}
	secret, err := s.installSecret(ctx)
	if err != nil {
		return 0, err
	}
	turns := turnsOf(messages)
	for _, said := range turns {
		parts := []string{"turn", conversation}
		for i := range said {
			m := &said[i]
			parts = append(parts, string(m.Role), m.Speaker, strconv.FormatInt(int64(m.Time), 10), m.Text)
		}
		made := persist.Turn{
			ID: turnID(secret, scope, parts...), Scope: scope, Conversation: conversation, Messages: said, Finish: "stop", Source: source,
		}
		if err := s.Pipeline.Enqueue(made); err != nil {
			return 0, err
		}
	}
	return len(turns), nil
}

func (s *intake) checkMessages(messages []persist.Message) error {
	if len(messages) == 0 || len(messages) > maxHandedIn {
		return invalid("messages", "must have 1 to %d messages", maxHandedIn)
	}
	last := storage.TimeOf(s.Now().Add(maxAhead))
	for i := range messages {
		m := &messages[i]
		bad := func(field, format string, args ...any) error {
			return invalid(fmt.Sprintf("messages[%d].%s", i, field), format, args...)
		}
		switch {
		case m.Role != storage.RoleUser && m.Role != storage.RoleAssistant:
			return bad("role", "must be user or assistant")
		case strings.TrimSpace(m.Text) == "":
			return bad("content", "is empty")
		case len(m.Text) > MaxMessage || !utf8.ValidString(m.Text):
			return bad("content", "must have at most %d bytes of UTF-8", MaxMessage)
		case len(m.Speaker) > storage.MaxScopePart || !utf8.ValidString(m.Speaker):
			return bad("sender_id", "must have at most %d bytes of UTF-8", storage.MaxScopePart)
		case m.Time <= 0 || m.Time > last:
			return bad("timestamp", "must be milliseconds since 1970, and not in the future")
		}
	}
	return nil
}

// turnsOf splits messages into turns. Each begins with what the user said.
func turnsOf(messages []persist.Message) (turns [][]persist.Message) {
	from := 0
	for i := 1; i < len(messages); i++ {
		if messages[i].Role == storage.RoleUser && messages[i-1].Role == storage.RoleAssistant {
			turns = append(turns, messages[from:i:i])
			from = i
		}
	}
	return append(turns, messages[from:])
}

// FlushTurns waits until the turns handed in so far are searchable.
func (s *intake) FlushTurns(ctx context.Context, p Principal, t Target) error {
	if _, err := s.scope(p, t); err != nil {
		return err
	}
	return s.Pipeline.Flush(ctx)
}
