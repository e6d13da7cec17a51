package backend

import (
	"context"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// sessionPrefix is before the conversation in the id of a session.
const sessionPrefix = "chat:"

// Limits of a message, in bytes: what is sent of it, and what is read, so that
// what the cut goes through was redacted whole.
const (
	maxContent = 64 << 10
	maxRead    = maxContent + 8<<10
)

// turn is the body of an add.
type turn struct {
	identity
	SessionID string       `json:"session_id"`
	Messages  [2]utterance `json:"messages"` // the user's, then the final answer
}

type utterance struct {
	SenderID  string `json:"sender_id"`
	Role      string `json:"role"`
	Timestamp int64  `json:"timestamp"`
	Content   string `json:"content"`
}

// remember adds a turn and, if that has succeeded, flushes. It makes one attempt
// of each.
func (g *Gateway) remember(ctx context.Context, t *persist.Turn) {
	defer func() {
		if recover() != nil { // its value may hold content
			g.skipped.Add(1)
			g.deps.Log.Error("panic", "in", "memory gateway", "stack", string(debug.Stack()))
		}
	}()
	body, ok := g.prepare(t)
	if !ok {
		g.skipped.Add(1)
		return
	}
	if _, _, failed := g.post(ctx, opAdd, body); failed != nil {
		g.noteAddFailed(body.SessionID, failed)
		return
	}
	g.noteAdd(body.SessionID, len(body.Messages))
	if _, _, failed := g.post(ctx, opFlush, g.identity()); failed != nil {
		g.noteFlushFailed(body.SessionID, failed)
		return
	}
	g.noteFlush(body.SessionID)
}

// prepare returns what is sent of a turn. ok is false if one side of it has
// nothing that may be sent.
func (g *Gateway) prepare(t *persist.Turn) (body turn, ok bool) {
	if t.Conversation == "" {
		return body, false
	}
	var user, assistant []string
	var asked, answered storage.Time
	for i := range t.Messages {
		m := &t.Messages[i]
		text := fence.Strip(strings.ToValidUTF8(m.Text, string(utf8.RuneError))) // before redaction could change a block
		switch m.Role {
		case storage.RoleUser:
			if extract.Declined(text) {
				return body, false
			}
			user, asked = append(user, text), m.Time
		case storage.RoleAssistant:
			assistant, answered = append(assistant, extract.CutThoughts(text)), m.Time
		}
	}
	body = turn{identity: g.identity(), SessionID: sessionPrefix + t.Conversation}
	body.Messages[0] = utterance{SenderID: g.cfg.UserID, Role: string(storage.RoleUser), Timestamp: g.timestamp(asked), Content: g.content(user)}
	body.Messages[1] = utterance{
		SenderID: string(storage.RoleAssistant), Role: string(storage.RoleAssistant), Timestamp: g.timestamp(answered), Content: g.content(assistant),
	}
	return body, body.Messages[0].Content != "" && body.Messages[1].Content != ""
}

// content returns texts as one that may leave: redacted, and not too long.
func (g *Gateway) content(texts []string) string {
	text := strings.ReplaceAll(strings.Join(texts, "\n\n"), "\x00", "")
	text = strings.TrimSpace(cut(g.deps.Redact(text), maxContent))
	if g.deps.OnlyPlaceholders != nil && g.deps.OnlyPlaceholders(text) {
		return ""
	}
	return text
}

// maxClockBack is how far the clock may be set back without a later message
// getting an earlier timestamp than the one before.
const maxClockBack = time.Minute

// timestamp returns when a message was said, as it is sent: positive, and not
// before what was sent earlier.
func (g *Gateway) timestamp(at storage.Time) int64 {
	ms := int64(at)
	if ms <= 0 {
		ms = int64(storage.TimeOf(g.deps.Now()))
	}
	if ms = max(ms, 1); ms < g.last && g.last-ms <= maxClockBack.Milliseconds() {
		ms = g.last
	}
	g.last = ms
	return ms
}
