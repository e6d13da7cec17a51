package persist

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Erasure counts what was forgotten.
type Erasure struct {
	Queued   int // turns that were not durable yet
	Spooled  int // durable turns that were not memories yet, those set aside included
	Memories int
	Records  map[storage.Bucket]int // local records deleted or rewritten: spool, ledger, index snapshots, summaries, audits
	// Derived counts the facts among Memories that were deleted because their
	// source was.
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

// erasure works from front to back: what is in memory first, then the spool,
// the store and its records, and the index. The stages are kept out, so no turn
// is in between; turns accepted after the call began stay. While the store is
// away an erasure waits until its context ends, and has then only dropped
// queued turns, or, for a conversation, nothing.
type erasure struct {
	*Pipeline
	ctx   context.Context
	scope storage.Scope
	out   Erasure
}

// erasing closes the gate, erases, and opens it again.
func (p *Pipeline) erasing(ctx context.Context, scope storage.Scope, erase func(*erasure) error) (Erasure, error) {
	if err := scope.Validate(); err != nil {
		return Erasure{}, err
	}
	open, err := p.gate.close(ctx)
	if err != nil {
		return Erasure{}, err
	}
	defer open()
	e := &erasure{Pipeline: p, ctx: ctx, scope: scope}
	err = erase(e)
	return e.out, err
}

// surePatience is longer than the store's process takes to restart.
const surePatience = 10 * time.Second

// surely repeats a step for surePatience, and fails with the store's error. If
// an answer was lost the step may have happened, and a caller that repeated the
// whole erasure would find nothing to do.
func (e *erasure) surely(step func() error) error {
	bounded, cancel := context.WithTimeout(e.ctx, surePatience)
	defer cancel()
	var last error
	err := e.retry(bounded, bounded, "forget", func() error { last = step(); return last })
	if err != nil && last != nil {
		return last
	}
	return err
}

// dropItems drops turns from the queue.
func (e *erasure) dropItems(items []*item) {
	e.out.Queued = e.queue.drop(items)
	for range items {
		e.stats.drop(DropErased)
	}
}

// inSpool is what the spool has of a scope or conversation.
type inSpool struct {
	refs         []storage.RecordRef // of audit marks, too, and of what can't be read: it may belong to it
	turns, aside int                 // aside: turns that were set aside
	latest       storage.Time        // of the turns' messages
}

// spooled finds turns, quarantined turns and audit marks in the scope's spool.
func (e *erasure) spooled(matches func(entry *spoolEntry, readable bool) bool) (found inSpool, err error) {
	err = e.eachRecord(e.ctx, storage.BucketSpool, e.scope, func(r storage.Record) {
		entry, err := decodeEntry(r.Value)
		if !matches(&entry, err == nil) {
			return
		}
		found.refs = append(found.refs, r.Ref())
		if err == nil && entry.Due == nil {
			found.turns++
			found.latest = max(found.latest, entry.Turn.latest())
		}
		if entry.Problem != "" {
			found.aside++
		}
	})
	return found, err
}

func (e *erasure) dropSpooled(gone inSpool) error {
	if err := e.deleteRecords(e.ctx, gone.refs); err != nil {
		return err
	}
	e.storer.aside -= gone.aside
	e.out.Spooled += gone.turns
	e.out.record(storage.BucketSpool, len(gone.refs))
	return nil
}

// records finds records of a bucket.
func (e *erasure) records(b storage.Bucket, matches func(*storage.Record) bool) (refs []storage.RecordRef, err error) {
	err = e.eachRecord(e.ctx, b, e.scope, func(r storage.Record) {
		if matches(&r) {
			refs = append(refs, r.Ref())
		}
	})
	return refs, err
}

// dropRecords deletes records and counts them.
func (e *erasure) dropRecords(refs []storage.RecordRef) error {
	if err := e.deleteRecords(e.ctx, refs); err != nil {
		return err
	}
	for _, ref := range refs {
		e.out.record(ref.Bucket, 1)
	}
	return nil
}

// deleteMemories deletes memories and updates the index, which writes nothing
// of the scope meanwhile: the bytes of a vector would stay until the store
// compacts.
func (e *erasure) deleteMemories(ids []string) error {
	resume, err := e.index.pauseWrites(e.ctx, e.scope)
	if err != nil {
		return err
	}
	defer resume()
	// The copies first: a repetition after an erasure that was cut short must
	// find that there was something.
	if err := e.surely(func() error { return e.forgetCopies(ids) }); err != nil {
		return err
	}
	for batch := range slices.Chunk(ids, storage.MaxRecords) {
		err := e.surely(func() error {
			n, err := e.store.Delete(e.ctx, e.scope, batch...)
			e.out.Memories += n
			e.stats.erasedMemories.Add(uint64(n))
			return err
		})
		e.index.notify(func(x Indexer) { // also if it failed: it may have happened
			x.Forget(e.scope, batch...)
			if o, ok := x.(ErasureObserver); ok {
				o.Erased(e.scope, batch...)
			}
		})
		if err != nil {
			return err
		}
	}
	delete(e.auditor.scopes, e.scope) // to be read again
	e.out.At = storage.Now()
	return nil
}

// ForgetUser removes everything of a scope, and destroys its data key.
func (p *Pipeline) ForgetUser(ctx context.Context, scope storage.Scope) (Erasure, error) {
	out, err := p.erasing(ctx, scope, (*erasure).user)
	if err == nil {
		p.stats.erasures.Add(1)
		p.stats.erasedMemories.Add(uint64(out.Memories))
	}
	return out, err
}

func (e *erasure) user() error {
	resume, err := e.index.pauseWrites(e.ctx, e.scope)
	if err != nil {
		return err
	}
	defer resume()
	e.dropItems(e.queue.find(func(t *Turn) bool { return t.Scope == e.scope }))
	e.auditor.forget(func(k conversationKey) bool { return k.scope == e.scope })
	spooled, err := e.spooled(func(*spoolEntry, bool) bool { return true })
	if errors.Is(err, storage.ErrDamaged) { // its key is lost, and its records can't be read: that must not keep them
		spooled, err = inSpool{}, nil
	}
	if err != nil {
		return err
	}
	if err := e.dropSpooled(spooled); err != nil {
		return err
	}
	defer e.index.notify(func(x Indexer) { // also if it fails: it may have happened
		if d, ok := x.(ScopeDropper); ok {
			d.Drop(e.scope)
		}
	})
	err = e.surely(func() error {
		receipt, err := e.store.Erase(e.ctx, e.scope)
		e.out.Memories += receipt.Memories
		e.out.At = receipt.At
		for b, n := range receipt.Records {
			e.out.record(b, n)
		}
		return err
	})
	if err != nil {
		return err
	}
	// If memories live elsewhere than local records, Erase knows nothing of the
	// latter.
	return e.surely(func() error {
		for _, b := range storage.Buckets() {
			refs, err := e.records(b, func(*storage.Record) bool { return true })
			if err == nil {
				err = e.dropRecords(refs)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
