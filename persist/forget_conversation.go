package persist

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// ForgetConversation removes all that was said in a conversation and all that was made of it, as if it had never been: what
// it had superseded holds again, and nothing that was said in it is made a fact of again. What the user said elsewhere, too,
// is theirs still: a fact that rests on a passage of another conversation stays, in the words of that.
func (p *Pipeline) ForgetConversation(ctx context.Context, scope storage.Scope, conversation string) (Erasure, error) {
	var out Erasure
	open, err := p.closeFor(ctx, scope)
	if err != nil {
		return out, err
	}
	defer open()
	of := func(s storage.Scope, c string) bool { return s == scope && c == conversation }
	items := p.itemsOf(func(t *Turn) bool { return of(t.Scope, t.Conversation) })
	spooled, err := p.spooledOf(ctx, scope, func(e *spoolEntry, readable bool) bool {
		return !readable || e.conversation() == conversation // it may be of it
	})
	if err != nil {
		return out, err
	}
	latest := spooled.latest
	for _, it := range items {
		latest = max(latest, it.turn.latest())
	}
	var ids []string
	var facts []storage.Memory
	err = p.eachMemory(ctx, scope, storage.Query{Conversation: conversation}, func(m *storage.Memory) {
		if m.Conversation == conversation && m.Kind != storage.KindResource {
			ids, latest = append(ids, m.ID), max(latest, lastSaid(m))
			if m.Kind == storage.KindFact {
				facts = append(facts, *m)
			}
		}
	})
	if err != nil {
		return out, err
	}
	// Before anything goes: whoever repeats an erasure that was cut short must find that there was something.
	if len(ids)+len(items)+spooled.turns > 0 {
		if err := p.buryConversation(ctx, scope, conversation, latest); err != nil {
			return out, err
		}
	}
	out.Derived = len(facts)
	out.Queued = p.dropItems(items)
	p.auditor.forget(of)
	if err := p.dropSpooled(ctx, spooled, &out); err != nil {
		return out, err
	}
	if err := p.keepElsewhere(ctx, scope, conversation, facts); err != nil {
		return out, err
	}
	if err := p.erase(ctx, scope, ids, &out); err != nil {
		return out, err
	}
	refs := []storage.RecordRef{}
	err = p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if !strings.HasPrefix(r.Key, tombstonePrefix) && auditedConversation(r) == conversation {
			refs = append(refs, r.Ref())
		}
	})
	if err != nil {
		return out, err
	}
	err = p.eachRecord(ctx, storage.BucketSummary, scope, func(r storage.Record) {
		if r.Key == recordKey(conversation) {
			refs = append(refs, r.Ref())
		}
	})
	if err != nil {
		return out, err
	}
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := p.local.DeleteRecords(ctx, batch); err != nil {
			return out, err
		}
	}
	for _, ref := range refs {
		out.record(ref.Bucket, 1)
	}
	out.At = storage.TimeOf(time.Now())
	p.stats.erasures.Add(1)
	return out, nil
}

// auditedConversation is the conversation that a record in BucketAudit is about.
func auditedConversation(r storage.Record) string {
	var named struct{ Conversation string }
	if err := json.Unmarshal(r.Value, &named); err != nil {
		return ""
	}
	return named.Conversation
}

// keepElsewhere brings what is left of a user's facts in order before those of a conversation go. It can be repeated.
// The gate is closed.
func (p *Pipeline) keepElsewhere(ctx context.Context, scope storage.Scope, conversation string, gone []storage.Memory) error {
	if len(gone) == 0 {
		return nil
	}
	kept, err := p.saidElsewhere(ctx, scope, conversation, gone)
	if err != nil {
		return err
	}
	byID := make(map[string]*storage.Memory, len(gone))
	for i := range gone {
		byID[gone[i].ID] = &gone[i]
	}
	// stands says which fact is now in the place of one that a statement gave way to, "" if none.
	stands := func(id string) string {
		for range gone { // at most
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
		if was, err := p.store.Memory(ctx, scope, m.ID); err == nil && was.SupersededBy != "" && byID[was.SupersededBy] == nil {
			m.SupersededBy, m.ValidTo = was.SupersededBy, was.ValidTo // by an erasure that was cut short
			changed[m.ID] = m
			continue
		}
		if m.SupersededBy = stands(byID[id].SupersededBy); m.SupersededBy != "" {
			m.ValidTo = byID[id].ValidTo
		}
		changed[m.ID] = m
	}
	err = p.eachMemory(ctx, scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) {
		if byID[m.ID] != nil || byID[m.SupersededBy] == nil {
			return
		}
		own, next := *m, changed[stands(m.SupersededBy)]
		own.SupersededBy, own.UpdatedAt = stands(m.SupersededBy), 0
		switch {
		case own.SupersededBy == "":
			own.ValidTo = 0
		case next != nil && lastSaid(next) < m.EventTime: // said elsewhere before this was, and after it only where it goes
			own.SupersededBy, own.ValidTo = "", 0
			next.SupersededBy, next.ValidTo = own.ID, own.EventTime
		case next != nil:
			own.ValidTo = next.EventTime
		}
		changed[own.ID] = &own
	})
	if err != nil || len(changed) == 0 {
		return err
	}
	facts := make([]storage.Memory, 0, len(changed))
	for _, m := range changed {
		if m.SupersededBy == "" {
			holds := func(string, string) bool { return false }
			if facts, err = p.retagged(ctx, scope, m.Provenance.Turn, holds, facts); err != nil {
				return err
			}
		}
		facts = append(facts, *m)
	}
	for batch := range slices.Chunk(facts, factsPerWrite) {
		if err := p.store.Put(ctx, []storage.Write{{Scope: scope, Memories: batch}}); err != nil {
			return err
		}
	}
	p.tell(func(x Indexer) { x.Add(scope, "", withoutOriginals(facts)) })
	return nil
}

// saidElsewhere looks for the statements that reinforced facts of a conversation in the passages of others, and makes
// facts of them, by the ids of those in whose place they come. A statement is known by its mark, so there is nothing but
// what an audit took for the same; one whose passage has expired is not found, and its fact goes.
func (p *Pipeline) saidElsewhere(ctx context.Context, scope storage.Scope, conversation string, gone []storage.Memory) (map[string]*storage.Memory, error) {
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
	g := p.newMerging(newDossier(scope))
	q := storage.Query{Kinds: []storage.Kind{storage.KindEpisode}}
	err := p.eachMemory(ctx, scope, q, func(e *storage.Memory) {
		if e.Conversation == conversation || e.Provenance.Role != storage.RoleUser {
			return
		}
		for _, turn := range rebuilt(talkKey{scope, e.Conversation}, []storage.Memory{*e}) {
			from := &turn.messages[0]
			for _, sp := range spansOf(from.text, from.at, 0) {
				if sp.candidate == nil || sp.candidate.suspicious {
					continue
				}
				c, id := sp.candidate, factID(scope, from.turn, sp.candidate.quote)
				old := byMark[saidMark(id)]
				if old == nil {
					continue
				}
				m := kept[old.ID]
				if c.q.total = old.Priority; m == nil {
					again := g.memory(c, from, e.Conversation)
					for _, tag := range old.Tags { // what it superseded
						if strings.HasPrefix(tag, tagSupersedes) || strings.HasPrefix(tag, tagContradicts) {
							again.Tags = append(again.Tags, tag)
						}
					}
					kept[old.ID] = &again
				} else if m.ID != id { // oldest first
					last := max(storage.TimeOf(c.at), lastSaid(m))
					m.ExpiresAt += last - lastSaid(m)
					m.Tags = slices.DeleteFunc(m.Tags, func(tag string) bool { return strings.HasPrefix(tag, tagLast) })
					m.Tags = append(m.Tags, tagSaid+saidMark(id), tagLast+strconv.FormatInt(int64(last), 10))
					m.Confidence += (1 - m.Confidence) * reinforcement
				}
			}
		}
	})
	return kept, err
}
