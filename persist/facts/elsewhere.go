package facts

import (
	"context"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/storage"
)

// When a conversation is forgotten its facts go. What the user said elsewhere,
// too, is still theirs: a fact that another conversation's passage bears out is
// made again, in the words and with the date of that passage. And what the
// conversation's facts had superseded holds again.

// scanPage is how many memories are read at a time: a millisecond's worth.
const scanPage = 200

// WithoutConversation returns the facts and passages to write before the facts
// of a conversation, gone, are deleted. It can be repeated after a failure.
func (c Config) WithoutConversation(ctx context.Context, store storage.Store, scope storage.Scope, conversation string, gone []storage.Memory) ([]storage.Memory, error) {
	if len(gone) == 0 {
		return nil, nil
	}
	kept, err := c.saidElsewhere(ctx, store, scope, conversation, gone)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*storage.Memory, len(gone))
	for i := range gone {
		byID[gone[i].ID] = &gone[i]
	}
	// successor returns the fact that takes the place of one that a statement
	// gave way to, "" if none does.
	successor := func(id string) string {
		for range gone { // a chain is no longer
			if byID[id] == nil || kept[id] != nil {
				break
			}
			id = byID[id].SupersededBy
		}
		if m := kept[id]; m != nil {
			return m.ID
		}
		return id
	}
	changed := map[string]*storage.Memory{}
	for id, m := range kept {
		changed[m.ID] = m
		if was, err := store.Memory(ctx, scope, m.ID); err == nil && was.SupersededBy != "" && byID[was.SupersededBy] == nil {
			m.SupersededBy, m.ValidTo = was.SupersededBy, was.ValidTo // set by an erasure that was cut short
			continue
		}
		if m.SupersededBy = successor(byID[id].SupersededBy); m.SupersededBy != "" {
			m.ValidTo = byID[id].ValidTo
		}
	}
	err = eachMemory(ctx, store, scope, storage.KindFact, func(m *storage.Memory) {
		if byID[m.ID] != nil || byID[m.SupersededBy] == nil {
			return
		}
		own, next := *m, changed[successor(m.SupersededBy)]
		own.SupersededBy, own.UpdatedAt = successor(m.SupersededBy), 0
		switch {
		case own.SupersededBy == "":
			own.ValidTo = 0
		case next != nil && LastSaid(next) < m.EventTime: // elsewhere it was said before this one
			own.SupersededBy, own.ValidTo = "", 0
			next.SupersededBy, next.ValidTo = own.ID, own.EventTime
		case next != nil:
			own.ValidTo = next.EventTime
		}
		changed[own.ID] = &own
	})
	if err != nil {
		return nil, err
	}
	out := make([]storage.Memory, 0, len(changed))
	for _, m := range changed {
		if m.SupersededBy == "" {
			holds := func(string, string) bool { return false }
			if out, err = retag(ctx, store, scope, m.Provenance.Turn, holds, out); err != nil {
				return nil, err
			}
		}
		out = append(out, *m)
	}
	return out, nil
}

// saidElsewhere finds the statements that reinforced facts of a conversation in
// the passages of others, and returns facts made of them, by the ids of those
// that they replace. Statements are recognised by their marks, so only what an
// audit took for the same counts. Where the passage has expired, the fact goes.
func (c Config) saidElsewhere(ctx context.Context, store storage.Store, scope storage.Scope, conversation string, gone []storage.Memory) (map[string]*storage.Memory, error) {
	byMark := map[string]*storage.Memory{}
	for i := range gone {
		for _, tag := range gone[i].Tags {
			if mark, ok := strings.CutPrefix(tag, tagSaid); ok && gone[i].Trust > 0 {
				byMark[mark] = &gone[i]
			}
		}
	}
	kept := map[string]*storage.Memory{}
	if len(byMark) == 0 {
		return kept, nil
	}
	err := eachMemory(ctx, store, scope, storage.KindEpisode, func(e *storage.Memory) {
		if e.Conversation == conversation || e.Provenance.Role != storage.RoleUser || e.Trust == 0 || e.DeletedAt != 0 {
			return
		}
		from := Origin{
			Conversation: e.Conversation, Turn: e.Provenance.Turn, Chain: e.Provenance.Chain, Source: e.Source,
			Model: e.Provenance.Model, Speaker: e.Provenance.Speaker,
		}
		text, _, _ := extract.Uncut(e.Text)
		extract.Statements(text, e.EventTime.Std(), func(said *extract.Candidate) {
			if said.Suspicious {
				return
			}
			id := ID(scope, from.Turn, said.Quote)
			old := byMark[statementMark(id)]
			if old == nil {
				return
			}
			said.Score.Total = old.Priority
			m := kept[old.ID]
			if m == nil {
				again := c.newFact(scope, said, from)
				for _, tag := range old.Tags { // what it superseded
					if strings.HasPrefix(tag, tagSupersedes) || strings.HasPrefix(tag, tagContradicts) {
						again.Tags = append(again.Tags, tag)
					}
				}
				if isPrivate := func(m *storage.Memory) bool { return slices.Contains(m.Tags, storage.PrivateTag) }; isPrivate(old) || isPrivate(e) {
					again.Tags = append(again.Tags, storage.PrivateTag)
				}
				if Pinned(old) {
					again.Tags, again.ExpiresAt = append(again.Tags, storage.PinnedTag), 0
				}
				kept[old.ID] = &again
			} else if m.ID != id { // passages come oldest first
				was := LastSaid(m)
				last := max(storage.TimeOf(said.Time), was)
				if !Pinned(m) {
					m.ExpiresAt += last - was
				}
				setLastSaid(m, last)
				m.Tags = append(m.Tags, tagSaid+statementMark(id))
				m.Confidence += (1 - m.Confidence) * confidenceGain
			}
		})
	})
	return kept, err
}

func eachMemory(ctx context.Context, store storage.Store, scope storage.Scope, kind storage.Kind, found func(*storage.Memory)) error {
	for page, err := range storage.ScanPages(ctx, store, scope, storage.Query{Kinds: []storage.Kind{kind}, Limit: scanPage}) {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			found(&page.Memories[i])
		}
	}
	return nil
}
