package persist

import (
	"context"
	"errors"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// known says which items of a batch the store may have: the others are new. It is one call for all of them, where the store
// has that; a turn that the store may have is compared by itself.
func (p *Pipeline) known(ctx context.Context, items []*item) (map[*item]bool, error) {
	prober, ok := p.store.(storage.Prober)
	maybe := make(map[*item]bool, len(items))
	for batch := range slices.Chunk(items, storage.MaxRecords) {
		refs := make([]storage.MemoryRef, len(batch))
		for i, it := range batch {
			refs[i] = storage.MemoryRef{Scope: it.turn.Scope, ID: storage.TurnMemoryID(it.turn.ID, 0)}
			maybe[it] = true
		}
		if !ok {
			continue
		}
		found, err := prober.Probe(ctx, refs)
		if errors.Is(err, errors.ErrUnsupported) {
			ok = false
			continue
		}
		if err != nil {
			return nil, err
		}
		for i, it := range batch {
			maybe[it] = found[i]
		}
	}
	return maybe, nil
}

// record reads one record, storage.ErrNotFound where there is none.
func (p *Pipeline) record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	if reader, ok := p.local.(storage.RecordReader); ok {
		r, err := reader.Record(ctx, ref)
		if !errors.Is(err, errors.ErrUnsupported) {
			return r, err
		}
	}
	found, err := storage.Record{}, storage.ErrNotFound
	if err := p.eachRecord(ctx, ref.Bucket, ref.Scope, func(r storage.Record) {
		if r.Key == ref.Key {
			found, err = r, nil
		}
	}); err != nil {
		return storage.Record{}, err
	}
	return found, err
}
