package persist

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// ForgetConversation removes all that was said in a conversation and made of
// it. What it had superseded holds again, and nothing said in it is made a fact
// again. A fact that the user also stated elsewhere stays, in those words.
func (p *Pipeline) ForgetConversation(ctx context.Context, scope storage.Scope, conversation string) (Erasure, error) {
	out, err := p.erasing(ctx, scope, func(e *erasure) error { return e.conversation(conversation) })
	if err == nil {
		p.stats.erasures.Add(1)
	}
	return out, err
}

func (e *erasure) conversation(conversation string) error {
	key := conversationKey{e.scope, conversation}
	items := e.queue.find(func(t *Turn) bool { return t.Scope == e.scope && t.Conversation == conversation })
	spooled, err := e.spooled(func(entry *spoolEntry, readable bool) bool {
		return !readable || entry.conversation() == conversation
	})
	if err != nil {
		return err
	}
	latest := spooled.latest
	for _, it := range items {
		latest = max(latest, it.turn.latest())
	}
	var ids []string
	var gone []storage.Memory // facts
	err = e.eachMemory(e.ctx, e.scope, storage.Query{Conversation: conversation}, func(m *storage.Memory) {
		if m.Conversation == conversation && m.Kind != storage.KindResource {
			ids, latest = append(ids, m.ID), max(latest, facts.LastSaid(m))
			if m.Kind == storage.KindFact {
				gone = append(gone, *m)
			}
		}
	})
	if err != nil {
		return err
	}
	// The tombstone first: a repetition after an erasure that was cut short
	// must find that there was something.
	if len(ids)+len(items)+spooled.turns > 0 {
		at := max(storage.Now(), latest)
		t := facts.ConversationTombstone(e.scope, conversation, at, e.cfg.Facts.LongRetention)
		if err := e.putTombstones([]storage.Record{t}); err != nil {
			return err
		}
	}
	e.out.Derived = len(gone)
	e.dropItems(items)
	e.auditor.forget(func(k conversationKey) bool { return k == key })
	if err := e.dropSpooled(spooled); err != nil {
		return err
	}
	kept, err := e.cfg.Facts.WithoutConversation(e.ctx, e.store, e.scope, conversation, gone)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(kept, factsPerWrite) {
		if err := e.store.Put(e.ctx, []storage.Write{{Scope: e.scope, Memories: batch}}); err != nil {
			return err
		}
	}
	if len(kept) > 0 {
		e.index.add(e.scope, kept)
	}
	if err := e.deleteMemories(ids); err != nil {
		return err
	}
	refs, err := e.records(storage.BucketAudit, func(r *storage.Record) bool {
		var of struct{ Conversation string }
		return !facts.IsTombstone(r) && json.Unmarshal(r.Value, &of) == nil && of.Conversation == conversation
	})
	if err != nil {
		return err
	}
	if err := e.surely(func() error {
		return e.forgetQuestions(func(r *receipt.Receipt) bool { return r.Conversation == conversation })
	}); err != nil {
		return err
	}
	summaries, err := e.records(storage.BucketSummary, func(r *storage.Record) bool { return r.Key == recordKey(conversation) })
	if err != nil {
		return err
	}
	if err := e.dropRecords(append(refs, summaries...)); err != nil {
		return err
	}
	e.out.At = storage.Now()
	return nil
}

// putTombstones writes tombstones. It comes before anything is deleted: after a
// crash in between the facts are still there, and can be forgotten again.
// Beyond FactConfig.MaxForgotten the oldest are deleted, and what they stood
// for may be saved again if a passage with it is audited again.
func (e *erasure) putTombstones(records []storage.Record) error {
	limit := e.cfg.Facts.MaxForgotten
	if len(records) == 0 || limit == 0 {
		return nil
	}
	if err := e.shared.putRecords(e.ctx, records); err != nil {
		return err
	}
	type aged struct {
		ref storage.RecordRef
		at  storage.Time
	}
	var all []aged
	err := e.eachRecord(e.ctx, storage.BucketAudit, e.scope, func(r storage.Record) {
		if at, ok := facts.TombstoneTime(&r); ok {
			all = append(all, aged{r.Ref(), at})
		}
	})
	if err != nil || len(all) <= limit {
		return err
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.ref.Key, b.ref.Key)) })
	refs := make([]storage.RecordRef, len(all)-limit)
	for i := range refs {
		refs[i] = all[i].ref
	}
	return e.deleteRecords(e.ctx, refs)
}

// ForgetMemories removes single memories, and the facts that were made of
// passages among them. It fails with storage.ErrNotFound if none of the ids is
// of the scope. The source passage of a fact stays unless it is named, too.
// What a fact said is saved again only if it is said again.
func (p *Pipeline) ForgetMemories(ctx context.Context, scope storage.Scope, ids ...string) (Erasure, error) {
	return p.erasing(ctx, scope, func(e *erasure) error { return e.memories(ids) })
}

func (e *erasure) memories(ids []string) error {
	named, err := e.find(ids)
	if err != nil {
		return err
	}
	if len(named.ids) == 0 {
		return storage.ErrNotFound
	}
	if err := e.addDerived(named); err != nil {
		return err
	}
	tombstones := facts.Tombstones(e.scope, named.facts, storage.Now(), e.cfg.Facts.LongRetention)
	if err := e.putTombstones(tombstones); err != nil {
		return err
	}
	if len(named.turns) > 0 {
		for turn := range named.turns { // an audit that is due must not bring its words back
			e.auditor.forgetTurn(e.scope, turn, named.passages[turn] != nil)
		}
		// Nor may another version of it that is queued, was set aside, or whose
		// spool record could not be deleted.
		matches := func(t *Turn) bool { return t.Scope == e.scope && named.turns[t.ID] }
		spooled, err := e.spooled(func(entry *spoolEntry, readable bool) bool {
			return readable && entry.Due == nil && matches(&entry.Turn)
		})
		if err != nil {
			return err
		}
		e.dropItems(e.queue.find(matches))
		if err := e.dropSpooled(spooled); err != nil {
			return err
		}
	}
	if len(named.chains) > 0 {
		ofThem := func(r *receipt.Receipt) bool { return named.chains[r.Turn] }
		if err := e.surely(func() error { return e.forgetQuestions(ofThem) }); err != nil {
			return err
		}
	}
	if err := e.deleteMemories(slices.Sorted(maps.Keys(named.ids))); err != nil {
		return err
	}
	return e.surely(func() error { return e.forgetNotes(named) })
}

// namedMemories are the memories that an erasure is to delete, and what depends
// on them.
type namedMemories struct {
	ids           map[string]bool
	facts         []storage.Memory
	turns         map[string]bool     // whose passages are among them
	conversations map[string]bool     // of those turns
	chains        map[string]bool     // of the user's passages
	passages      map[string][]string // normalized words of the user's passages, by turn
}

func (e *erasure) find(ids []string) (*namedMemories, error) {
	out := &namedMemories{ids: map[string]bool{}, turns: map[string]bool{}, conversations: map[string]bool{}, chains: map[string]bool{}, passages: map[string][]string{}}
	for _, id := range ids {
		m, err := e.store.Memory(e.ctx, e.scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			continue
		case errors.Is(err, storage.ErrDamaged):
			m = storage.Memory{ID: id, Kind: storage.KindFact} // or another, which a tombstone does not harm
		case err != nil:
			return nil, err
		}
		if m.Kind == storage.KindFact && !out.ids[id] {
			out.facts = append(out.facts, m)
		}
		out.ids[id] = true
		if m.Kind != storage.KindEpisode {
			continue
		}
		turn := m.Provenance.Turn
		out.turns[turn], out.conversations[m.Conversation] = true, true
		if m.Provenance.Role == storage.RoleUser {
			out.passages[turn] = append(out.passages[turn], extract.Normalize(m.Text))
			if m.Provenance.Chain != "" {
				out.chains[m.Provenance.Chain] = true
			}
		}
	}
	return out, nil
}

// addDerived adds the facts that were made of the passages.
func (e *erasure) addDerived(named *namedMemories) error {
	if len(named.passages) == 0 {
		return nil
	}
	return e.eachMemory(e.ctx, e.scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) {
		derived := func(passage string) bool { return facts.Derived(m, passage) }
		if !named.ids[m.ID] && slices.ContainsFunc(named.passages[m.Provenance.Turn], derived) {
			named.ids[m.ID] = true
			named.facts = append(named.facts, *m)
			e.out.Derived++
		}
	})
}

// forgetNotes deletes what was noted of passages that are gone: requests to
// forget that were made in them, and the summaries of their conversations,
// which are made again of what is left.
func (e *erasure) forgetNotes(named *namedMemories) error {
	if len(named.turns) == 0 {
		return nil
	}
	requests, err := e.records(storage.BucketAudit, func(r *storage.Record) bool {
		f, ok := decodePending(r)
		return ok && named.turns[f.Turn]
	})
	if err != nil {
		return err
	}
	if err := e.dropRecords(requests); err != nil {
		return err
	}
	return e.renewSummaries(named.conversations)
}

// renewSummaries makes the summaries of conversations, where there are any,
// again of the passages that are left.
func (e *erasure) renewSummaries(conversations map[string]bool) error {
	if len(conversations) == 0 {
		return nil
	}
	byKey := map[string]string{}
	for c := range conversations {
		byKey[recordKey(c)] = c
	}
	summaries, err := e.records(storage.BucketSummary, func(r *storage.Record) bool { _, ok := byKey[r.Key]; return ok })
	if err != nil {
		return err
	}
	if err := e.dropRecords(summaries); err != nil {
		return err
	}
	for c := range conversations {
		if held := e.auditor.conversations[conversationKey{e.scope, c}]; held != nil {
			held.summary, held.summaryBytes = nil, 0 // to be read again
		}
	}
	for _, ref := range summaries {
		if err := e.summarize(conversationKey{e.scope, byKey[ref.Key]}); err != nil {
			return err
		}
	}
	return nil
}

// summarize makes a conversation's summary of its passages, but for those that
// the next audit reads.
func (e *erasure) summarize(key conversationKey) error {
	unaudited := e.auditor.unaudited(key)
	s := &extract.Summary{Conversation: key.conversation}
	var page []storage.Memory
	read := func() {
		for _, t := range turnsOf(key, page) {
			if unaudited[t.turn] {
				continue
			}
			messages := make([]extract.Message, len(t.messages))
			for i := range t.messages {
				messages[i] = t.messages[i].Message
			}
			s.Add(messages)
		}
		page = page[:0]
	}
	q := storage.Query{Conversation: key.conversation, Kinds: []storage.Kind{storage.KindEpisode}}
	err := e.eachMemory(e.ctx, key.scope, q, func(m *storage.Memory) {
		if m.Conversation == key.conversation {
			if page = append(page, *m); len(page) == scanPage {
				read()
			}
		}
	})
	if err != nil {
		return err
	}
	if read(); s.Messages == 0 {
		return nil
	}
	return e.local.PutRecords(e.ctx, []storage.Record{e.summaryRecord(key, s)})
}
