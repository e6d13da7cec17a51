package persist

import (
	"context"
	"errors"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// Dropper is what an [Indexer] may offer to forget a whole scope.
type Dropper interface {
	Drop(scope storage.Scope)
}

// Holder is what an [Indexer] may offer that writes local records by itself: to leave a scope's alone from when Hold
// returned until release is called, so that nothing of a memory, or of a whole scope, lands between its erasure in the store
// and the moment at which the indexer is told.
type Holder interface {
	Hold(ctx context.Context, scope storage.Scope) (release func(), err error)
}

// ForgetUser removes everything of a scope, and destroys its data key.
func (p *Pipeline) ForgetUser(ctx context.Context, scope storage.Scope) (Erasure, error) {
	open, err := p.closeFor(ctx, scope)
	if err != nil {
		return Erasure{}, err
	}
	defer open()
	out, err := p.forgetScope(ctx, scope)
	if err == nil {
		p.stats.erasures.Add(1)
		p.stats.erasedMemories.Add(uint64(out.Memories))
	}
	return out, err
}

// closeFor closes the gate for the forgetting of what is in scope.
func (p *Pipeline) closeFor(ctx context.Context, scope storage.Scope) (open func(), err error) {
	if err := scope.Validate(); err != nil {
		return nil, err
	}
	return p.gate.close(ctx)
}

// holdIndex has what writes by itself leave a scope alone until release is called.
func (p *Pipeline) holdIndex(ctx context.Context, scope storage.Scope) (release func(), err error) {
	if h, ok := p.index.(Holder); ok {
		return h.Hold(ctx, scope)
	}
	return func() {}, nil
}

func (p *Pipeline) forgetScope(ctx context.Context, scope storage.Scope) (one Erasure, err error) {
	release, err := p.holdIndex(ctx, scope)
	if err != nil {
		return one, err
	}
	defer release()
	of := func(s storage.Scope, _ string) bool { return s == scope }
	one.Queued = p.dropItems(p.itemsOf(func(t *Turn) bool { return t.Scope == scope }))
	p.auditor.forget(of)
	spooled, err := p.spooledOf(ctx, scope, func(*spoolEntry, bool) bool { return true })
	if errors.Is(err, storage.ErrDamaged) { // its key is lost, which must not keep it: what can't be read goes unread
		spooled, err = inSpool{}, nil
	}
	if err != nil {
		return one, err
	}
	if err := p.dropSpooled(ctx, spooled, &one); err != nil {
		return one, err
	}
	defer p.tell(func(x Indexer) { // also where it fails: it may have happened
		if d, ok := x.(Dropper); ok {
			d.Drop(scope)
		}
	})
	err = p.surely(ctx, func() error {
		receipt, err := p.store.Erase(ctx, scope)
		one.Memories += receipt.Memories
		one.At = receipt.At
		for b, n := range receipt.Records {
			one.record(b, n)
		}
		return err
	})
	if err != nil {
		return one, err
	}
	return one, p.surely(ctx, func() error { return p.dropRecords(ctx, scope, &one) })
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
