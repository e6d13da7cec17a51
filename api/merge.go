package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// MaxMerge bounds the facts that are merged into one.
const MaxMerge = 50

// Merged is what became of facts that were merged.
type Merged struct {
	Memory  Memory   `json:"memory"`  // the fact that stands for all
	Deleted []string `json:"deleted"` // the others
	// UndoUntil is until when the others can be brought back.
	UndoUntil string `json:"undoUntil,omitempty"`
}

// Merge makes one of several facts of a user, 2 to 50, which say the same or
// parts of it. The first one gets the text, or keeps its own if text is "", and
// the tags and the highest priority of all. The others are deleted. Each can be
// taken back on its own: undo each of the ids to restore what was before.
func (s *memories) Merge(ctx context.Context, p Principal, t Target, ids []string, text, why string) (Merged, error) {
	out := Merged{Deleted: []string{}}
	if err := checkMerge(ids, text, why); err != nil {
		return out, err
	}
	all, err := s.mergeable(ctx, p, t, ids)
	if err != nil {
		return out, err
	}
	tags, priority := union(all)
	if len(tags) > MaxTags {
		return out, invalid("ids", "have more than %d tags together", MaxTags)
	}
	first, cause := &all[0], persist.Cause{By: p.By, Why: why}
	m, err := s.edit(ctx, first, first.Version, cause, func(m *storage.Memory) error {
		if text != "" {
			m.Text = text
		}
		m.Tags, m.Priority = withTags(m.Tags, tags), priority
		facts.Absorb(m, all[1:])
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Memory = s.show(&m)
	cause.Why = "merged into " + first.ID
	for _, id := range ids[1:] { // each on its own, so that each can be undone
		_, err := s.Pipeline.Discard(ctx, m.Scope, cause, id)
		if errors.Is(err, storage.ErrNotFound) {
			continue // somebody else deletes it
		}
		if err != nil {
			return out, err
		}
		out.Deleted = append(out.Deleted, id)
	}
	out.UndoUntil = stamp(storage.TimeOf(s.Now().Add(persist.UndoTime)))
	return out, nil
}

func checkMerge(ids []string, text, why string) error {
	if len(ids) < 2 || len(ids) > MaxMerge {
		return invalid("ids", "must have 2 to %d ids", MaxMerge)
	}
	if err := checkIDs("ids", ids); err != nil {
		return err
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return invalid(fmt.Sprintf("ids[%d]", i), "is there twice")
		}
	}
	if text != "" {
		if err := checkText("text", text); err != nil {
			return err
		}
	}
	return checkLength("why", why, MaxReason)
}

// mergeable reads the facts to merge, and refuses what can't be merged.
func (s *memories) mergeable(ctx context.Context, p Principal, t Target, ids []string) ([]storage.Memory, error) {
	all := make([]storage.Memory, len(ids))
	for i, id := range ids {
		m, err := s.locate(ctx, p, t, id)
		if err == nil && m.DeletedAt != 0 {
			err = ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		all[i] = m
	}
	for i := range all {
		field := fmt.Sprintf("ids[%d]", i)
		switch m := &all[i]; {
		case m.Scope != all[0].Scope:
			return nil, invalid("ids", "are not all of the same user, app and project")
		case m.Kind != storage.KindFact:
			return nil, invalid(field, "is not a fact")
		case i == 0 && stateOf(m) != StateCurrent:
			return nil, invalid(field, "is superseded or in quarantine")
		}
	}
	return all, nil
}

// union returns the tags of the callers' on any of the facts, and the highest
// priority. The mark of quarantine does not spread.
func union(all []storage.Memory) (tags []string, priority float64) {
	for i := range all {
		priority = max(priority, all[i].Priority)
		for _, tag := range ownTags(all[i].Tags) {
			if tag != facts.TagQuarantined && !slices.Contains(tags, tag) {
				tags = append(tags, tag)
			}
		}
	}
	return tags, priority
}
