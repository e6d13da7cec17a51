package persist

import (
	"fmt"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Turn is one finished exchange: the user's newest message and the final
// answer. Its texts are raw; the pipeline redacts them before anything else
// sees them.
type Turn struct {
	// ID is idempotent: the same turn again replaces its earlier version.
	ID           string
	Scope        storage.Scope
	Conversation string
	// Chain is the provenance hash of the turn, "" if there is none.
	Chain    string
	Messages []Message
	Model    string
	Finish   string // finish reason as the upstream gave it
	Source   string // surface, e.g. "proxy"
	// Project names what the conversation works on, "" if unknown.
	Project string `json:",omitempty"`
	// Private turns have storage.PrivateTag: the answer may repeat what a private
	// memory says.
	Private bool `json:",omitempty"`
	// RolePlay turns belong to a role play that the system prompt sets up: what
	// the user says in them is fiction.
	RolePlay bool `json:",omitempty"`
	// KeptFrom is when retention begins to count, for conversations that were
	// held long ago and are imported now; 0 = from when they were said.
	KeptFrom storage.Time `json:",omitempty"`
}

// Message is one utterance of a turn.
type Message struct {
	Role    storage.Role
	Speaker string // "" unless known
	Text    string
	Time    storage.Time
	// Originals are what placeholders stand for, set by the pipeline.
	Originals []redact.Original `json:",omitempty"`
}

// Limits of a turn, in bytes. Spool and store append a suffix to ids.
const (
	MaxTurnID       = storage.MaxID - 32
	maxConversation = 512
	maxName         = 256 // speaker, model, chain, source, finish reason; longer ones are cut
	maxMessages     = 1000
)

// validate checks what Enqueue can check without looking at texts.
func (t *Turn) validate() error {
	if err := t.Scope.Validate(); err != nil {
		return err
	}
	switch {
	case t.ID == "" || len(t.ID) > MaxTurnID:
		return fmt.Errorf("turn: id is empty or longer than %d bytes: %w", MaxTurnID, storage.ErrInvalid)
	case len(t.Conversation) > maxConversation:
		return fmt.Errorf("turn: conversation is longer than %d bytes: %w", maxConversation, storage.ErrInvalid)
	case len(t.Messages) == 0 || len(t.Messages) > maxMessages:
		return fmt.Errorf("turn: not 1 to %d messages: %w", maxMessages, storage.ErrInvalid)
	}
	return nil
}

// latest returns when the last of it was said.
func (t *Turn) latest() (at storage.Time) {
	for i := range t.Messages {
		at = max(at, t.Messages[i].Time)
	}
	return at
}
