package gateway

import (
	"context"
	"errors"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// source is what memories have as their source.
const source = "gateway"

// add is the body of an add.
type add struct {
	caller
	SessionID string    `json:"session_id"`
	Messages  []message `json:"messages"`
}

type message struct {
	SenderID  string `json:"sender_id"`
	Role      string `json:"role"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
	Content   string `json:"content"`
}

// added is the answer to an add.
type added struct {
	Turns int `json:"turns"`
}

func (f *face) add(ctx context.Context, p api.Principal, t api.Target, q *add) (any, error) {
	said := make([]persist.Message, len(q.Messages))
	for i, m := range q.Messages {
		speaker := m.SenderID
		if speaker == q.UserID || speaker == m.Role { // it says no more than the role does
			speaker = ""
		}
		said[i] = persist.Message{Role: storage.Role(m.Role), Speaker: speaker, Text: m.Content, Time: storage.Time(m.Timestamp)}
	}
	turns, err := f.service.AddTurns(ctx, p, t, conversationOf(q.SessionID), said, source)
	if field, ok := errors.AsType[*api.FieldError](err); ok && field.Field == "conversation" {
		err = &api.FieldError{Field: "session_id", Why: field.Why}
	}
	return added{turns}, err
}

// flush is the body of a flush.
type flush struct{ caller }

// flushed is the answer to a flush.
type flushed struct {
	Flushed bool `json:"flushed"`
}

func (f *face) flush(ctx context.Context, p api.Principal, t api.Target, _ *flush) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, f.FlushTimeout)
	defer cancel()
	if err := f.service.FlushTurns(ctx, p, t); err != nil {
		return nil, err
	}
	return flushed{true}, nil
}
