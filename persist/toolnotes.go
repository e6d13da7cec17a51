package persist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// ToolNotes saves what models save with a memory tool of the client's: each
// line is a fact. Save never blocks; Run saves. Beyond maxNotes that wait,
// notes are dropped and counted.
type ToolNotes struct {
	pipeline *Pipeline
	queue    chan toolNote
	dropped  atomic.Int64
}

type toolNote struct {
	scope                    storage.Scope
	conversation, call, text string
}

// Bounds of notes.
const (
	maxNotes     = 1024
	maxNoteLines = 100      // of one note; the rest is left out
	minNoteRunes = 8        // a shorter line is no statement
	maxNoteBytes = 64 << 10 // of one note
)

// NewToolNotes returns ToolNotes that save through p.
func NewToolNotes(p *Pipeline) *ToolNotes {
	return &ToolNotes{pipeline: p, queue: make(chan toolNote, maxNotes)}
}

// Save hands in what the call with this id saved. The same call again saves
// nothing more.
func (n *ToolNotes) Save(scope storage.Scope, conversation, call, text string) {
	note := toolNote{scope, conversation, strings.Clone(call), strings.Clone(text[:min(len(text), maxNoteBytes)])}
	select {
	case n.queue <- note:
	default:
		n.dropped.Add(1)
	}
}

// Dropped returns how many notes were not saved.
func (n *ToolNotes) Dropped() int64 { return n.dropped.Load() }

// Run saves until ctx ends.
func (n *ToolNotes) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case note := <-n.queue:
			n.save(ctx, note)
		}
	}
}

func (n *ToolNotes) save(ctx context.Context, note toolNote) {
	lines := 0
	for line := range strings.Lines(note.text) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#-*•>0123456789.) \t"))
		if len([]rune(line)) < minNoteRunes || len([]rune(line)) > PassageRunes || lines == maxNoteLines {
			continue
		}
		lines++
		sum := sha256.Sum256([]byte(note.call + "\x00" + line))
		_, err := n.pipeline.Remember(ctx, note.scope, storage.Memory{
			ID: "t" + hex.EncodeToString(sum[:16]), Kind: storage.KindFact, Text: line, Tags: []string{facts.TagRemembered},
			Conversation: note.conversation, Source: "memory-tool", Provenance: storage.Provenance{Role: storage.RoleAssistant},
		})
		if err != nil && !errors.Is(err, storage.ErrInvalid) {
			n.dropped.Add(1)
			return
		}
	}
}
