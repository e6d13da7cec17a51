package persist

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Erasure works from the front to the back: what is in memory first, then the spool, then the store and its records, then
// the live indexes. The stages are kept out meanwhile, so no turn is in between. Turns handed in after the call began are
// new and stay. While the store is away an erasure waits, until its context ends, and then has done nothing but drop
// turns that were on their way.

// Dropper is what an [Indexer] may offer to forget a whole scope.
type Dropper interface {
	Drop(scope storage.Scope)
}

// Eraser is what an [Indexer] may offer to be told that a person wants memories gone wherever their text still stands,
// not only out of what is searched. It is called after Forget.
type Eraser interface {
	Erased(scope storage.Scope, ids ...string)
}

// Erasure counts what was forgotten.
type Erasure struct {
	Queued   int // turns that were not durable yet
	Spooled  int // durable turns that were no memories yet, those set aside included
	Memories int
	Records  map[storage.Bucket]int // local records: spool, ledger, index snapshots, summaries, audits
	// Derived counts, of Memories, the facts that went because what they came from did.
	Derived int
	At      storage.Time
}

func (e *Erasure) add(o Erasure) {
	e.Queued += o.Queued
	e.Spooled += o.Spooled
	e.Memories += o.Memories
	e.Derived += o.Derived
	e.At = max(e.At, o.At)
	for b, n := range o.Records {
		e.record(b, n)
	}
}

func (e *Erasure) record(b storage.Bucket, n int) {
	if n == 0 {
		return
	}
	if e.Records == nil {
		e.Records = map[storage.Bucket]int{}
	}
	e.Records[b] += n
}

// ForgetMemories removes single memories, and the facts that were distilled from passages among them. Ids that are not
// of the scope are storage.ErrNotFound when none is; a fact's source passage stays unless it is named too.
func (p *Pipeline) ForgetMemories(ctx context.Context, scope storage.Scope, ids ...string) (Erasure, error) {
	var out Erasure
	if err := scope.Validate(); err != nil {
		return out, err
	}
	open, err := p.gate.close(ctx)
	if err != nil {
		return out, err
	}
	defer open()
	passages := map[string][]string{} // texts by turn
	found := map[string]bool{}
	for _, id := range ids {
		m, err := p.store.Memory(ctx, scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			continue
		case errors.Is(err, storage.ErrDamaged):
		case err != nil:
			return out, err
		}
		found[id] = true
		if m.Kind == storage.KindEpisode && m.Provenance.Role == storage.RoleUser {
			passages[m.Provenance.Turn] = append(passages[m.Provenance.Turn], " "+normalised(words(m.Text))+" ")
		}
	}
	if len(found) == 0 {
		return out, storage.ErrNotFound
	}
	if len(passages) > 0 {
		err := p.eachMemory(ctx, scope, storage.Query{Kinds: []storage.Kind{storage.KindFact}}, func(m *storage.Memory) {
			f := factOf(m)
			_, quoted := quotation(m.Text)
			for _, text := range passages[f.turn] {
				if !found[m.ID] && (!quoted || strings.Contains(text, " "+f.norm+" ")) {
					found[m.ID] = true
					out.Derived++
				}
			}
		})
		if err != nil {
			return out, err
		}
		for turn := range passages { // its words must not come back by an audit that is due
			p.auditor.forgetTurn(scope, turn)
		}
		// Nor by a spool record that could not be deleted when its turn was stored.
		var refs []storage.RecordRef
		err = p.eachRecord(ctx, storage.BucketSpool, scope, func(r storage.Record) {
			if e, err := decodeEntry(r.Value); err == nil && e.Due == nil && e.Problem == "" && passages[e.Turn.ID] != nil && !p.waiting(r.Key) {
				refs = append(refs, r.Ref())
			}
		})
		if err != nil {
			return out, err
		}
		if err := p.local.DeleteRecords(ctx, refs); err != nil {
			return out, err
		}
	}
	err = p.erase(ctx, scope, slices.Sorted(maps.Keys(found)), &out)
	return out, err
}

// ForgetConversation removes all that was said in a conversation and all that was made of it.
func (p *Pipeline) ForgetConversation(ctx context.Context, scope storage.Scope, conversation string) (Erasure, error) {
	var out Erasure
	if err := scope.Validate(); err != nil {
		return out, err
	}
	open, err := p.gate.close(ctx)
	if err != nil {
		return out, err
	}
	defer open()
	of := func(s storage.Scope, c string) bool { return s == scope && c == conversation }
	out.Queued = p.dropItems(of)
	p.auditor.forget(of)
	if err := p.dropSpooled(ctx, scope, of, &out); err != nil {
		return out, err
	}
	var ids []string
	err = p.eachMemory(ctx, scope, storage.Query{Conversation: conversation}, func(m *storage.Memory) {
		if m.Conversation == conversation && m.Kind != storage.KindResource {
			ids = append(ids, m.ID)
			if m.Kind == storage.KindFact {
				out.Derived++
			}
		}
	})
	if err != nil {
		return out, err
	}
	if err := p.erase(ctx, scope, ids, &out); err != nil {
		return out, err
	}
	refs := []storage.RecordRef{}
	err = p.eachRecord(ctx, storage.BucketAudit, scope, func(r storage.Record) {
		if auditedConversation(r) == conversation {
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

// ForgetUser removes everything of a scope, and destroys its data key.
func (p *Pipeline) ForgetUser(ctx context.Context, scope storage.Scope) (Erasure, error) {
	return p.forgetScopes(ctx, []storage.Scope{scope})
}

// ForgetAll removes everything of all scopes given, in one go: nothing is stored between two of them. A store does not
// list its scopes, so whoever knows them names them.
func (p *Pipeline) ForgetAll(ctx context.Context, scopes []storage.Scope) (Erasure, error) {
	return p.forgetScopes(ctx, scopes)
}

func (p *Pipeline) forgetScopes(ctx context.Context, scopes []storage.Scope) (Erasure, error) {
	var out Erasure
	for _, s := range scopes {
		if err := s.Validate(); err != nil {
			return out, err
		}
	}
	open, err := p.gate.close(ctx)
	if err != nil {
		return out, err
	}
	defer open()
	for _, scope := range scopes {
		one := Erasure{}
		of := func(s storage.Scope, _ string) bool { return s == scope }
		one.Queued = p.dropItems(of)
		p.auditor.forget(of)
		if err := p.dropSpooled(ctx, scope, of, &one); err != nil {
			out.add(one)
			return out, err
		}
		receipt, err := p.store.Erase(ctx, scope)
		if err != nil {
			out.add(one)
			return out, err
		}
		one.Memories, one.At = receipt.Memories, receipt.At
		for b, n := range receipt.Records {
			one.record(b, n)
		}
		if err := p.dropRecords(ctx, scope, &one); err != nil {
			out.add(one)
			return out, err
		}
		p.tell(func(x Indexer) {
			if d, ok := x.(Dropper); ok {
				d.Drop(scope)
			}
		})
		p.stats.erasures.Add(1)
		p.stats.erasedMemories.Add(uint64(one.Memories))
		out.add(one)
	}
	return out, nil
}

// dropRecords removes what is left of a scope's local records: where memories live elsewhere than local records, Erase
// knows nothing of them.
func (p *Pipeline) dropRecords(ctx context.Context, scope storage.Scope, out *Erasure) error {
	for _, b := range storage.Buckets() {
		var refs []storage.RecordRef
		if err := p.eachRecord(ctx, b, scope, func(r storage.Record) { refs = append(refs, r.Ref()) }); err != nil {
			return err
		}
		for batch := range slices.Chunk(refs, storage.MaxRecords) {
			if err := p.local.DeleteRecords(ctx, batch); err != nil {
				return err
			}
			out.record(b, len(batch))
		}
	}
	return nil
}

// dropItems takes turns out of the lists between the stages. The gate is closed, so none is elsewhere.
func (p *Pipeline) dropItems(of func(storage.Scope, string) bool) (queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	matches := func(it *item) bool { return of(it.turn.Scope, it.turn.Conversation) }
	var gone []*item
	for _, it := range p.inFlight.items {
		if !it.done && matches(it) {
			gone = append(gone, it)
			if it.ref.Key == "" {
				queued++
			}
		}
	}
	p.queued = slices.DeleteFunc(p.queued, matches)
	p.spooled = slices.DeleteFunc(p.spooled, matches)
	for _, it := range gone {
		p.inFlight.finish(it)
		p.stats.drop(DropErased)
	}
	return queued
}

// dropSpooled removes turns, poison turns and audit marks from the spool.
func (p *Pipeline) dropSpooled(ctx context.Context, scope storage.Scope, of func(storage.Scope, string) bool, out *Erasure) error {
	var refs []storage.RecordRef
	turns, aside := 0, 0
	err := p.eachRecord(ctx, storage.BucketSpool, scope, func(r storage.Record) {
		e, err := decodeEntry(r.Value)
		conversation := e.Turn.Conversation
		if e.Due != nil {
			conversation = e.Due.Conversation
		}
		if err != nil || of(scope, conversation) { // an unreadable one may be of it
			refs = append(refs, r.Ref())
			if err == nil && e.Due == nil {
				turns++
			}
			if e.Problem != "" {
				aside++
			}
		}
	})
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := p.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	p.aside -= aside // the storer's, which the closed gate keeps out
	out.Spooled += turns
	out.record(storage.BucketSpool, len(refs))
	return nil
}

// erase removes memories and tells the index.
func (p *Pipeline) erase(ctx context.Context, scope storage.Scope, ids []string, out *Erasure) error {
	for batch := range slices.Chunk(ids, storage.MaxRecords) {
		n, err := p.store.Delete(ctx, scope, batch...)
		out.Memories += n
		p.stats.erasedMemories.Add(uint64(n))
		if err != nil {
			return err
		}
		p.tell(func(x Indexer) {
			x.Forget(scope, batch...)
			if e, ok := x.(Eraser); ok {
				e.Erased(scope, batch...)
			}
		})
	}
	delete(p.auditor.dossiers, scope) // to be read anew
	out.At = storage.TimeOf(time.Now())
	return nil
}

// eachMemory pages through a scope.
func (p *Pipeline) eachMemory(ctx context.Context, scope storage.Scope, q storage.Query, found func(*storage.Memory)) error {
	for q.Limit = scanPage; ; {
		page, err := p.store.Scan(ctx, scope, q)
		if err != nil {
			return err
		}
		for i := range page.Memories {
			found(&page.Memories[i])
		}
		if page.Next == "" || page.Next == q.After {
			return nil
		}
		q.After = page.Next
	}
}

// forget drops all that the auditor holds of conversations. The gate is closed.
func (a *auditor) forget(of func(storage.Scope, string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = slices.DeleteFunc(a.heard, func(h heardTurn) bool {
		gone := of(h.scope, h.conversation)
		if gone {
			a.heardBytes -= h.size()
		}
		return gone
	})
	a.recovered = slices.DeleteFunc(a.recovered, func(m dueMark) bool { return of(m.scope, m.conversation) })
	a.answers = slices.DeleteFunc(a.answers, func(ans answer) bool {
		gone := of(ans.scope, ans.conversation)
		if gone {
			a.asking--
		}
		return gone
	})
	maps.DeleteFunc(a.marked, func(k talkKey, _ string) bool { return of(k.scope, k.conversation) })
	for k, t := range a.talks {
		if of(k.scope, k.conversation) { // a call under way comes back to a conversation that is not there
			a.held -= t.size()
			delete(a.talks, k)
		}
	}
	clear(a.dossiers) // to be read anew
	a.cached = 0
}

// forgetTurn takes a turn's words out of what waits for an audit. The gate is closed.
func (a *auditor) forgetTurn(scope storage.Scope, turn string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.heard {
		if a.heard[i].scope == scope && a.heard[i].turn == turn {
			a.heardBytes -= a.heard[i].size()
			a.heard[i].messages = nil
			a.heardBytes += a.heard[i].size()
		}
	}
	for _, t := range a.talks {
		if t.scope != scope {
			continue
		}
		a.held -= t.size()
		t.window = slices.DeleteFunc(t.window, func(m windowMessage) bool {
			if m.turn != turn {
				return false
			}
			t.bytes -= int64(len(m.text))
			if m.fresh {
				t.fresh--
				t.tokens -= tokensOf(m.text)
			}
			return true
		})
		t.asked = 0 // what a model makes of it is not wanted
		a.held += t.size()
	}
}

// auditedConversation is the conversation that a record in BucketAudit is about.
func auditedConversation(r storage.Record) string {
	var named struct{ Conversation string }
	if err := json.Unmarshal(r.Value, &named); err != nil {
		return ""
	}
	return named.Conversation
}

// waiting says whether a spool record is of a turn that is no memory yet: one that was handed in again, say.
func (p *Pipeline) waiting(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.spooled, func(it *item) bool { return it.ref.Key == key })
}
