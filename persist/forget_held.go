package persist

import (
	"context"
	"maps"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// Waiting lists the scopes of turns that are not memories yet. A store knows nothing of a scope whose turns are all of them still
// on their way to it, so whoever looks for the scopes to forget asks here first, and the store after that.
func (p *Pipeline) Waiting() []storage.Scope {
	scopes := map[storage.Scope]bool{}
	p.itemsOf(func(t *Turn) bool { scopes[t.Scope] = true; return false })
	return slices.Collect(maps.Keys(scopes))
}

// itemsOf lists turns that are not memories yet. With the gate closed they are all between the stages.
func (p *Pipeline) itemsOf(of func(*Turn) bool) (found []*item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range p.inFlight.items {
		if !it.done && of(&it.turn) {
			found = append(found, it)
		}
	}
	return found
}

// dropItems takes turns out of the lists between the stages. The gate is closed since they were looked for.
func (p *Pipeline) dropItems(gone []*item) (queued int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := make(map[*item]bool, len(p.queued)) // some of them may have been tried
	for _, it := range p.queued {
		waiting[it] = true
	}
	for _, it := range gone {
		if waiting[it] {
			queued++
		}
		p.inFlight.finish(it)
		p.stats.drop(DropErased)
	}
	done := func(it *item) bool { return it.done }
	p.queued = slices.DeleteFunc(p.queued, done)
	p.spooled = slices.DeleteFunc(p.spooled, done)
	return queued
}

// inSpool is what the spool has of a scope, or of a conversation.
type inSpool struct {
	refs         []storage.RecordRef // audit marks, too, and what can't be read: it may be of it
	turns, aside int                 // aside: of the turns, those that were set aside
	latest       storage.Time        // of the turns' words
}

// spooledOf looks for turns, poison turns and audit marks in a scope's spool. An entry that is not readable is empty.
func (p *Pipeline) spooledOf(ctx context.Context, scope storage.Scope, of func(e *spoolEntry, readable bool) bool) (found inSpool, err error) {
	err = p.eachRecord(ctx, storage.BucketSpool, scope, func(r storage.Record) {
		e, err := decodeEntry(r.Value)
		if !of(&e, err == nil) {
			return
		}
		found.refs = append(found.refs, r.Ref())
		if err == nil && e.Due == nil {
			found.turns++
			found.latest = max(found.latest, e.Turn.latest())
		}
		if e.Problem != "" {
			found.aside++
		}
	})
	return found, err
}

// dropSpooled removes them. The gate is closed since they were looked for.
func (p *Pipeline) dropSpooled(ctx context.Context, gone inSpool, out *Erasure) error {
	for batch := range slices.Chunk(gone.refs, storage.MaxRecords) {
		if err := p.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	p.aside -= gone.aside // the storer's, which the closed gate keeps out
	out.Spooled += gone.turns
	out.record(storage.BucketSpool, len(gone.refs))
	return nil
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
	for k := range a.talks {
		if of(k.scope, k.conversation) { // a call under way comes back to a conversation that is not there
			delete(a.talks, k)
		}
	}
	clear(a.dossiers) // to be read anew
	a.cached = 0
}

// forgetTurn takes a turn's words out of what waits for an audit, or only the reply's where the user's stay. The gate is
// closed.
func (a *auditor) forgetTurn(scope storage.Scope, turn string, users bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	goes := func(m windowMessage) bool { return m.turn == turn && (users || !m.user) }
	for i := range a.heard {
		if a.heard[i].scope == scope && a.heard[i].turn == turn {
			a.heardBytes -= a.heard[i].size()
			a.heard[i].messages = slices.DeleteFunc(a.heard[i].messages, goes)
			a.heardBytes += a.heard[i].size()
		}
	}
	for _, t := range a.talks {
		if t.scope != scope {
			continue
		}
		t.window = slices.DeleteFunc(t.window, func(m windowMessage) bool {
			if !goes(m) {
				return false
			}
			t.bytes -= int64(len(m.text))
			if m.fresh {
				t.fresh--
				t.tokens -= tokensOf(m.text)
			}
			return true
		})
		if users {
			t.asked = 0 // what a model makes of it is not wanted
		}
	}
}

// unseen lists the turns of a conversation that no audit has seen. The gate is closed.
func (a *auditor) unseen(key talkKey) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]bool{}
	for i := range a.heard {
		if a.heard[i].talkKey == key {
			out[a.heard[i].turn] = true
		}
	}
	if t := a.talks[key]; t != nil {
		for i := range t.window {
			if t.window[i].fresh {
				out[t.window[i].turn] = true
			}
		}
	}
	return out
}
