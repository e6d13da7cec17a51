package persist

import (
	"context"
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
// turns that were on their way, or, of a conversation, nothing at all.

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
	Records  map[storage.Bucket]int // local records, gone or written anew: spool, ledger, index snapshots, summaries, audits
	// Derived counts, of Memories, the facts that went because what they came from did.
	Derived int
	At      storage.Time
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
// of the scope are storage.ErrNotFound when none is; a fact's source passage stays unless it is named too. What a fact
// said is saved again only if it is said again.
func (p *Pipeline) ForgetMemories(ctx context.Context, scope storage.Scope, ids ...string) (Erasure, error) {
	var out Erasure
	open, err := p.closeFor(ctx, scope)
	if err != nil {
		return out, err
	}
	defer open()
	passages := map[string][]string{} // texts of the user's, by turn
	turns := map[string]bool{}        // whose passages are meant
	talks := map[string]bool{}        // conversations of those
	found := map[string]bool{}
	var facts []storage.Memory
	for _, id := range ids {
		m, err := p.store.Memory(ctx, scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			continue
		case errors.Is(err, storage.ErrDamaged):
			m = storage.Memory{ID: id, Kind: storage.KindFact} // or another, which a tombstone does not harm
		case err != nil:
			return out, err
		}
		if m.Kind == storage.KindFact && !found[id] {
			facts = append(facts, m)
		}
		found[id] = true
		if m.Kind == storage.KindEpisode {
			turns[m.Provenance.Turn], talks[m.Conversation] = true, true
		}
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
					facts = append(facts, *m)
					out.Derived++
				}
			}
		})
		if err != nil {
			return out, err
		}
	}
	if err := p.bury(ctx, scope, facts); err != nil {
		return out, err
	}
	if len(turns) > 0 {
		for turn := range turns { // its words must not come back by an audit that is due
			p.auditor.forgetTurn(scope, turn, passages[turn] != nil)
		}
		// Nor by another version of it that is on its way, was set aside, or whose spool record could not be deleted.
		of := func(t *Turn) bool { return t.Scope == scope && turns[t.ID] }
		spooled, err := p.spooledOf(ctx, scope, func(e *spoolEntry, readable bool) bool { return readable && e.Due == nil && of(&e.Turn) })
		if err != nil {
			return out, err
		}
		out.Queued = p.dropItems(p.itemsOf(of))
		if err := p.dropSpooled(ctx, spooled, &out); err != nil {
			return out, err
		}
	}
	if err := p.erase(ctx, scope, slices.Sorted(maps.Keys(found)), &out); err != nil {
		return out, err
	}
	return out, p.surely(ctx, func() error { return p.forgetNotes(ctx, scope, turns, talks, &out) })
}

// surePatience is how long a store that fails is asked again for what an erasure has begun: longer than its process takes to come back.
const surePatience = 10 * time.Second

// surely does what an erasure has begun, and fails with the store's error. Where its answer is lost what it was to erase may be gone, so
// that whoever repeated the erasure would be told that there is nothing, and what comes behind were not done.
func (p *Pipeline) surely(ctx context.Context, try func() error) error {
	bounded, cancel := context.WithTimeout(ctx, surePatience)
	defer cancel()
	var last error
	err := p.retry(bounded, bounded, "forget", func() error { last = try(); return last })
	if err != nil && last != nil {
		return last
	}
	return err
}

// erase removes memories and tells the index, which writes nothing of the scope meanwhile: a vector that landed in between
// would be deleted again, but its bytes would stay until the store compacts.
func (p *Pipeline) erase(ctx context.Context, scope storage.Scope, ids []string, out *Erasure) error {
	release, err := p.holdIndex(ctx, scope)
	if err != nil {
		return err
	}
	defer release()
	for batch := range slices.Chunk(ids, storage.MaxRecords) {
		err := p.surely(ctx, func() error {
			n, err := p.store.Delete(ctx, scope, batch...)
			out.Memories += n
			p.stats.erasedMemories.Add(uint64(n))
			return err
		})
		p.tell(func(x Indexer) { // also where it failed: it may have happened
			x.Forget(scope, batch...)
			if e, ok := x.(Eraser); ok {
				e.Erased(scope, batch...)
			}
		})
		if err != nil {
			return err
		}
	}
	delete(p.auditor.dossiers, scope) // to be read anew
	out.At = storage.TimeOf(time.Now())
	return nil
}

// eachMemory pages through a scope.
func (p *Pipeline) eachMemory(ctx context.Context, scope storage.Scope, q storage.Query, found func(*storage.Memory)) error {
	q.Limit = scanPage
	for page, err := range storage.ScanPages(ctx, p.store, scope, q) {
		if err != nil {
			return err
		}
		for i := range page.Memories {
			found(&page.Memories[i])
		}
	}
	return nil
}
