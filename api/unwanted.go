package api

import (
	"context"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// maxUnwanted bounds the kinds of questions that a memory is unwanted for.
const maxUnwanted = 8

// Unwanted has a memory not recalled any more for questions such as this one:
// those that have at least two thirds of its content words. What was said in
// the same exchange as a passage is left out with it. Of the question only
// short hashes of its words are kept, with the memory. Blocks that a
// conversation was given before stay as they are.
func (s *memories) Unwanted(ctx context.Context, p Principal, t Target, id, question string, why string) (Memory, error) {
	if err := checkLength("question", question, MaxMessage); err != nil {
		return Memory{}, err
	}
	if err := checkLength("why", why, MaxReason); err != nil {
		return Memory{}, err
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	return s.unwanted(ctx, &m, "question", question, persist.Cause{By: p.By, Why: why})
}

// UnwantedIn is Unwanted with the question of one of the user's exchanges.
func (s *memories) UnwantedIn(ctx context.Context, p Principal, t Target, id, exchangeID string, why string) (Memory, error) {
	if err := checkLength("why", why, MaxReason); err != nil {
		return Memory{}, err
	}
	if s.Receipts == nil {
		return Memory{}, ErrOff
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	if !receiptID(exchangeID) {
		return Memory{}, ErrNotFound
	}
	r, err := receipt.Get(ctx, s.Store, m.Scope, exchangeID)
	if err != nil {
		return Memory{}, err
	}
	return s.unwanted(ctx, &m, "exchange", r.Query, persist.Cause{By: p.By, Why: why})
}

func (s *memories) unwanted(ctx context.Context, m *storage.Memory, field, question string, cause persist.Cause) (Memory, error) {
	tag, ok := s.Engine.UnwantedTag(question)
	if !ok {
		return Memory{}, invalid(field, "has no word that other questions of its kind would share")
	}
	if m.DeletedAt == 0 && slices.Contains(m.Tags, tag) {
		return s.show(m), nil
	}
	changed, err := s.Pipeline.Edit(ctx, m.Scope, m.ID, 0, cause, func(m *storage.Memory) error {
		switch {
		case slices.Contains(m.Tags, tag): // somebody was faster
		case countUnwanted(m.Tags) >= maxUnwanted:
			return invalid(field, "the memory is unwanted for %d kinds of questions already", maxUnwanted)
		default:
			m.Tags = append(m.Tags, tag)
		}
		return nil
	})
	if err != nil {
		return Memory{}, err
	}
	return s.show(&changed), nil
}

// WantedAgain takes back all that Unwanted has said of a memory.
func (s *memories) WantedAgain(ctx context.Context, p Principal, t Target, id, why string) (Memory, error) {
	if err := checkLength("why", why, MaxReason); err != nil {
		return Memory{}, err
	}
	m, err := s.locate(ctx, p, t, id)
	if err != nil {
		return Memory{}, err
	}
	if m.DeletedAt == 0 && countUnwanted(m.Tags) == 0 {
		return s.show(&m), nil
	}
	m, err = s.Pipeline.Edit(ctx, m.Scope, id, 0, persist.Cause{By: p.By, Why: why}, func(m *storage.Memory) error {
		m.Tags = slices.DeleteFunc(m.Tags, isUnwantedTag)
		return nil
	})
	if err != nil {
		return Memory{}, err
	}
	return s.show(&m), nil
}

func isUnwantedTag(tag string) bool { return strings.HasPrefix(tag, storage.UnwantedTag) }

// countUnwanted returns for how many kinds of questions a memory with these
// tags is unwanted.
func countUnwanted(tags []string) (n int) {
	for _, tag := range tags {
		if isUnwantedTag(tag) {
			n++
		}
	}
	return n
}
