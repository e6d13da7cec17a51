package process

import (
	"context"
	"encoding/binary"

	"github.com/remora-proxy/remora/storage"
)

// Lookups of many, or of one by its name, at both ends.

// minMemoryRef is the least that a reference to a memory takes on the wire.
const minMemoryRef = 5

// Probe implements [storage.Prober].
func (c *calls) Probe(ctx context.Context, refs []storage.MemoryRef) ([]bool, error) {
	b := binary.AppendUvarint(c.free.start(64+192*len(refs)), uint64(len(refs)))
	for i := range refs {
		b = appendString(appendScope(b, refs[i].Scope), refs[i].ID)
	}
	d, err := c.optional(ctx, opProbe, b)
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(refs))
	for i := range found {
		found[i] = d.byte() == 1
	}
	return found, c.whole(d)
}

// Record implements [storage.RecordReader].
func (c *calls) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	d, err := c.optional(ctx, opRecord, appendRef(c.free.start(512), ref))
	if err != nil {
		return storage.Record{}, err
	}
	r := d.record()
	return r, c.whole(d)
}

func (s *Server) doLookup(ctx context.Context, op operation, d *decoder) ([]byte, error) {
	ok := []byte{codeOK}
	if op == opRecord {
		ref := d.ref()
		reader, has := s.Local.(storage.RecordReader)
		if err := d.offered(has); err != nil {
			return nil, err
		}
		r, err := reader.Record(ctx, ref)
		return appendRecord(ok, &r), err
	}
	var refs []storage.MemoryRef
	for range d.count(minMemoryRef) {
		if d.bad {
			return nil, errArguments
		}
		refs = append(refs, storage.MemoryRef{Scope: d.scope(), ID: d.string()})
	}
	prober, has := s.Store.(storage.Prober)
	if err := d.offered(has); err != nil {
		return nil, err
	}
	found, err := prober.Probe(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, known := range found {
		ok = append(ok, 0)
		if known {
			ok[len(ok)-1] = 1
		}
	}
	return ok, nil
}
