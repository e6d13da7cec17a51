package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/storage"
)

// Message is one message of a conversation that a program reports, for
// applications that do not send their traffic through the proxy.
type Message struct {
	UserID   string `json:"userId"`
	ThreadID string `json:"threadId"`
	MsgID    string `json:"msgId"`
	Role     string `json:"role"` // user or assistant
	Content  string `json:"content"`
	Speaker  string `json:"speaker,omitempty"`
	Model    string `json:"model,omitempty"`
	Time     string `json:"time,omitempty"` // when it was said; "" = now
	Tokens   struct {
		Input  int `json:"input"`
		Output int `json:"output"`
	} `json:"tokens"`
}

func (m *Message) turn() (persist.Turn, error) {
	for _, field := range [...]struct{ name, value string }{{"threadId", m.ThreadID}, {"msgId", m.MsgID}} {
		if field.value == "" {
			return persist.Turn{}, invalid(field.name, "is required")
		}
		if err := checkLength(field.name, field.value, storage.MaxID); err != nil {
			return persist.Turn{}, err
		}
	}
	role := storage.Role(m.Role)
	if role != storage.RoleUser && role != storage.RoleAssistant {
		return persist.Turn{}, invalid("role", "must be user or assistant")
	}
	switch {
	case strings.TrimSpace(m.Content) == "":
		return persist.Turn{}, invalid("content", "is empty")
	case len(m.Content) > MaxMessage || !utf8.ValidString(m.Content):
		return persist.Turn{}, invalid("content", "must have at most %d bytes of UTF-8", MaxMessage)
	case m.Tokens.Input < 0 || m.Tokens.Output < 0:
		return persist.Turn{}, invalid("tokens", "must not be negative")
	}
	for _, field := range [...]struct{ name, value string }{{"speaker", m.Speaker}, {"model", m.Model}} {
		if err := checkLength(field.name, field.value, storage.MaxID); err != nil {
			return persist.Turn{}, err
		}
	}
	at, err := parseTime("time", m.Time)
	if err != nil {
		return persist.Turn{}, err
	}
	return persist.Turn{
		Conversation: m.ThreadID, Model: m.Model, Finish: "stop", Source: "api",
		Messages: []persist.Message{{Role: role, Speaker: m.Speaker, Text: m.Content, Time: at}},
	}, nil
}

// Report takes in a message and returns its turn's id, without waiting for
// anything. The same msgId again replaces it.
func (s *intake) Report(ctx context.Context, p Principal, t Target, m Message) (turn string, err error) {
	if m.UserID != "" {
		if t.User != "" && t.User != m.UserID {
			return "", ErrNotFound
		}
		t.User = m.UserID
	}
	made, err := m.turn()
	if err != nil {
		return "", err
	}
	if made.Scope, err = s.scope(p, t); err != nil {
		if field, ok := userField(err); ok {
			return "", field
		}
		return "", err
	}
	secret, err := s.installSecret(ctx)
	if err != nil {
		return "", err
	}
	made.ID = turnID(secret, made.Scope, "event", m.ThreadID, m.MsgID)
	return made.ID, s.Pipeline.Enqueue(made)
}

// userField renames the field of an error about the user as events call it.
func userField(err error) (error, bool) {
	if field, ok := errors.AsType[*FieldError](err); ok && field.Field == "user" {
		return &FieldError{"userId", field.Why}, true
	}
	return nil, false
}

// turnID returns the id of what came in through the control plane: the same
// names give the same id, and nobody else can guess it.
func turnID(secret []byte, scope storage.Scope, parts ...string) string {
	m := hmac.New(sha256.New, secret)
	for _, part := range append([]string{"remora api turn", scope.Tenant, scope.App, scope.Project, scope.User}, parts...) {
		n := len(part)
		_, _ = m.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) // never fails
		_, _ = m.Write([]byte(part))
	}
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// Audits returns what audits of a user's conversations found, newest first.
func (s *intake) Audits(ctx context.Context, p Principal, t Target) ([]persist.AuditRecord, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	return s.Pipeline.Audits(ctx, scope)
}
