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
	return p.forgetScopes(ctx, []storage.Scope{scope})
}

// ForgetAll removes everything of all scopes given, in one go: nothing is stored between two of them. A store does not
// list its scopes, so whoever knows them names them.
func (p *Pipeline) ForgetAll(ctx context.Context, scopes []storage.Scope) (Erasure, error) {
	return p.forgetScopes(ctx, scopes)
}

// closeFor closes the gate for the forgetting of what is in scopes.
func (p *Pipeline) closeFor(ctx context.Context, scopes ...storage.Scope) (open func(), err error) {
	for _, s := range scopes {
		if err := s.Validate(); err != nil {
			return nil, err
		}
	}
	return p.gate.close(ctx)
}

func (p *Pipeline) forgetScopes(ctx context.Context, scopes []storage.Scope) (Erasure, error) {
	var out Erasure
	open, err := p.closeFor(ctx, scopes...)
	if err != nil {
		return out, err
	}
	defer open()
	for _, scope := range scopes {
		one, err := p.forgetScope(ctx, scope)
		out.add(one)
		if err != nil {
			return out, err
		}
		p.stats.erasures.Add(1)
		p.stats.erasedMemories.Add(uint64(one.Memories))
	}
	return out, nil
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
	receipt, err := p.store.Erase(ctx, scope)
	if err != nil {
		return one, err
	}
	one.Memories, one.At = receipt.Memories, receipt.At
	for b, n := range receipt.Records {
		one.record(b, n)
	}
	if err := p.dropRecords(ctx, scope, &one); err != nil {
		return one, err
	}
	p.tell(func(x Indexer) {
		if d, ok := x.(Dropper); ok {
			d.Drop(scope)
		}
	})
	return one, nil
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
