package persist

import (
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Turn is one finished exchange: the user's newest message and the final answer to it. The proxy, events, imports and
// benchmarks all hand in this type. Its texts are raw; the pipeline redacts them before anything else sees them.
type Turn struct {
	// ID is idempotent: the same turn handed in again replaces what it left before.
	ID           string
	Scope        storage.Scope
	Conversation string
	// Chain is the provenance hash of the turn (storage.Provenance.Chain), "" where there is none.
	Chain    string
	Messages []Message
	Model    string
	Finish   string // finish reason as the upstream gave it
	Source   string // surface, e.g. "proxy"
	// Project is an opaque name of what the conversation works on (storage.ProjectTag), "" where nothing tells.
	Project string `json:",omitempty"`
}

// Message is one utterance of a turn.
type Message struct {
	Role    storage.Role
	Speaker string // "" unless known
	Text    string
	Time    storage.Time
	// Originals are what the placeholders of a redacted text stand for, personal data only. The pipeline sets them.
	Originals []redact.Original `json:",omitempty"`
}

// latest is when the last of it was said.
func (t *Turn) latest() (at storage.Time) {
	for i := range t.Messages {
		at = max(at, t.Messages[i].Time)
	}
	return at
}
