package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// unnamedPrefix begins the ids of conversations that their callers did not
// name.
const unnamedPrefix = "unnamed-"

// Unnamed reports whether ReportConversation has made up the id of a
// conversation.
func Unnamed(conversation string) bool { return strings.HasPrefix(conversation, unnamedPrefix) }

// handInTimeout bounds how long a conversation waits for room in the queue.
const handInTimeout = 10 * time.Second

// longAgo is the age, in milliseconds, from which on what was said counts as
// imported: its retention begins when it is taken in.
const longAgo = storage.Time(24 * time.Hour / time.Millisecond)

// ReportConversation takes in the messages of a conversation, in order, and
// returns the ids of the turns that they are: a turn is what the user said and
// what was answered. Of each message Role, Content, Speaker, Model and Time
// count.
//
// The ids follow from what was said, not from when: the same messages again
// change nothing, and messages that continue those of an earlier call add only
// what is new. A conversation without a name gets one that follows from its
// first message.
//
// It fails like Report if the first turn can't be taken in, and waits for room
// in the queue for the others.
func (s *intake) ReportConversation(ctx context.Context, p Principal, t Target, conversation string, messages []Message) (turns []string, err error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	if err := checkLength("conversation", conversation, storage.MaxScopePart); err != nil {
		return nil, err
	}
	said, models, err := s.utterances(messages)
	if err != nil {
		return nil, err
	}
	secret, err := s.installSecret(ctx)
	if err != nil {
		return nil, err
	}
	if conversation == "" {
		conversation = unnamedPrefix + turnID(secret, scope, "conversation", string(said[0].Role), said[0].Text)
	}
	ctx, cancel := context.WithTimeout(ctx, handInTimeout)
	defer cancel()
	seen, from := map[string]int{}, 0
	for n, spoken := range turnsOf(said) {
		parts := []string{"conversation", conversation}
		for i := range spoken {
			parts = append(parts, string(spoken[i].Role), spoken[i].Speaker, spoken[i].Text)
		}
		id := turnID(secret, scope, parts...)
		if seen[id]++; seen[id] > 1 { // said twice
			id = turnID(secret, scope, append(parts, strconv.Itoa(seen[id]))...)
		}
		turn := persist.Turn{ID: id, Scope: scope, Conversation: conversation, Messages: spoken, Finish: "stop", Source: "api"}
		if now := storage.TimeOf(s.Now()); spoken[0].Time < now-longAgo { // or it would expire at once
			turn.Source, turn.KeptFrom = facts.SourceImport, now
		}
		for _, model := range models[from : from+len(spoken)] {
			if model != "" {
				turn.Model = model
			}
		}
		from += len(spoken)
		if n == 0 {
			err = s.Pipeline.Enqueue(turn)
		} else {
			err = s.Pipeline.Import(ctx, turn)
		}
		if err != nil {
			return turns, err
		}
		turns = append(turns, id)
	}
	return turns, nil
}

// utterances checks messages and gives those without a time one each, so that
// what is said later is later.
func (s *intake) utterances(messages []Message) (said []persist.Message, models []string, err error) {
	now := storage.TimeOf(s.Now())
	for i := range messages {
		m := &messages[i]
		at, err := parseTime(fmt.Sprintf("messages[%d].time", i), m.Time)
		if err != nil {
			return nil, nil, err
		}
		if at == 0 {
			at = now - storage.Time(len(messages)-1-i)
		}
		said = append(said, persist.Message{Role: storage.Role(m.Role), Speaker: m.Speaker, Text: m.Content, Time: at})
		models = append(models, m.Model)
	}
	return said, models, s.checkMessages(said)
}

// Owner returns the target that names all parts of what a principal reaches by
// t: those of the principal, or the defaults, where t is silent.
func (s *intake) Owner(p Principal, t Target) (Target, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return Target{}, err
	}
	return Target{identity.Show(scope.Tenant), identity.Show(scope.App), identity.Show(scope.Project), identity.Show(scope.User)}, nil
}

// Passages returns what was said in a turn, in order, without what was deleted.
// It is empty if nothing of the turn is remembered.
func (s *intake) Passages(ctx context.Context, p Principal, t Target, turn string) ([]Memory, error) {
	scope, err := s.scope(p, t)
	if err != nil {
		return nil, err
	}
	out := []Memory{}
	for seq := range storage.MaxWriteMemories {
		m, err := s.Store.Memory(ctx, scope, storage.TurnMemoryID(turn, seq))
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrInvalid) {
			break
		}
		if err != nil && !errors.Is(err, storage.ErrDamaged) {
			return nil, err
		}
		if err == nil && m.DeletedAt == 0 {
			out = append(out, s.show(&m))
		}
	}
	return out, nil
}
