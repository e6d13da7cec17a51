package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/storage"
)

// What a store may offer beside the contract, at both ends.

func (c *calls) optional(ctx context.Context, op operation, args []byte) (*decoder, error) {
	d, err := c.do(ctx, op, args, nil)
	if errors.Is(err, errors.ErrUnsupported) {
		err = errors.Join(storage.ErrUnavailable, err)
	}
	return d, err
}

// Digest implements [storage.Digester].
func (c *calls) Digest(ctx context.Context, scope storage.Scope) (storage.Digest, error) {
	d, err := c.optional(ctx, opDigest, appendScope(c.free.start(256), scope))
	if err != nil {
		return storage.Digest{}, err
	}
	digest := d.digest()
	return digest, c.whole(d)
}

// Scopes implements [storage.ScopeLister].
func (c *calls) Scopes(ctx context.Context, after string, limit int) (storage.ScopePage, error) {
	d, err := c.optional(ctx, opScopes, binary.AppendVarint(appendString(c.free.start(128), after), int64(limit)))
	if err != nil {
		return storage.ScopePage{}, err
	}
	page := storage.ScopePage{Damaged: int(d.uvarint()), Next: d.string()}
	for range d.count(4) {
		page.Scopes = append(page.Scopes, d.scope())
	}
	if err := c.whole(d); err != nil {
		return storage.ScopePage{}, err
	}
	return page, nil
}

// Reap implements [storage.Reaper].
func (c *calls) Reap(ctx context.Context, now storage.Time) (int, error) {
	d, err := c.optional(ctx, opReap, binary.AppendVarint(c.free.start(16), int64(now)))
	if err != nil {
		return 0, err
	}
	n := int(d.uvarint())
	return n, c.whole(d)
}

// RotateKey implements [storage.KeyRotator].
func (c *calls) RotateKey(ctx context.Context, newKeyFile string) (storage.KeyRotation, error) {
	d, err := c.optional(ctx, opRotateKey, appendString(c.free.start(512), newKeyFile))
	if err != nil {
		return storage.KeyRotation{}, err
	}
	done := storage.KeyRotation{From: d.string(), To: d.string(), Keys: int(d.uvarint()), Pending: d.bool(), Unreadable: int(d.uvarint()), NewFile: d.string(), OldFile: d.string()}
	return done, c.whole(d)
}

// EraseTenant implements [storage.BulkEraser].
func (c *calls) EraseTenant(ctx context.Context, tenant string) (storage.Receipt, error) {
	d, err := c.optional(ctx, opEraseTenant, appendString(c.free.start(512), tenant))
	return c.receipt(d, err)
}

// EraseAll implements [storage.BulkEraser].
func (c *calls) EraseAll(ctx context.Context) (storage.Receipt, error) {
	d, err := c.optional(ctx, opEraseAll, c.free.start(8))
	return c.receipt(d, err)
}

// adminBackup is the name by which a backup is asked for, where the server's caller gives none of its own.
const adminBackup = "backup"

// Backup implements [storage.Backuper].
func (c *calls) Backup(ctx context.Context, w io.Writer) error {
	_, err := c.Admin(ctx, adminBackup, nil, w)
	return err
}

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
		found[i] = d.bool()
	}
	return found, c.whole(d)
}

// Record implements [storage.RecordReader].
func (c *calls) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	d, err := c.optional(ctx, opRecord, appendRef(c.free.start(512), ref))
	if err != nil {
		return storage.Record{}, err
	}
	r := d.recordInPlace() // which is all that the answer holds
	return r, c.whole(d)
}

func (s *Server) doOptional(ctx context.Context, op operation, d *decoder) ([]byte, error) {
	ok := []byte{codeOK}
	switch op {
	case opDigest:
		scope := d.scope()
		keeper, err := offered[storage.Digester](s.Store, d)
		if err != nil {
			return nil, err
		}
		digest, err := keeper.Digest(ctx, scope)
		return appendDigest(ok, digest), err
	case opScopes:
		after, limit := d.string(), int(d.varint())
		lister, err := offered[storage.ScopeLister](s.Store, d)
		if err != nil {
			return nil, err
		}
		page, err := lister.Scopes(ctx, after, limit)
		b := appendString(binary.AppendUvarint(ok, uint64(page.Damaged)), page.Next)
		b = binary.AppendUvarint(b, uint64(len(page.Scopes)))
		for _, scope := range page.Scopes {
			b = appendScope(b, scope)
		}
		return b, err
	case opReap:
		now := storage.Time(d.varint())
		reaper, err := offered[storage.Reaper](s.Store, d)
		if err != nil {
			return nil, err
		}
		n, err := reaper.Reap(ctx, now)
		return binary.AppendUvarint(ok, uint64(n)), err
	case opEraseTenant:
		tenant := d.ownString()
		eraser, err := offered[storage.BulkEraser](s.Store, d)
		if err != nil {
			return nil, err
		}
		receipt, err := eraser.EraseTenant(ctx, tenant)
		return appendReceipt(ok, receipt), err
	case opEraseAll:
		eraser, err := offered[storage.BulkEraser](s.Store, d)
		if err != nil {
			return nil, err
		}
		receipt, err := eraser.EraseAll(ctx)
		return appendReceipt(ok, receipt), err
	case opRotateKey:
		file := d.string()
		rotator, err := offered[storage.KeyRotator](s.Store, d)
		if err != nil {
			return nil, err
		}
		done, err := rotator.RotateKey(ctx, file)
		b := binary.AppendUvarint(appendString(appendString(ok, done.From), done.To), uint64(done.Keys))
		b = binary.AppendUvarint(appendBool(b, done.Pending), uint64(done.Unreadable))
		return appendString(appendString(b, done.NewFile), done.OldFile), err
	case opProbe:
		var refs []storage.MemoryRef
		for range d.count(minMemoryRef) {
			if d.bad {
				return nil, errArguments
			}
			refs = append(refs, storage.MemoryRef{Scope: d.scope(), ID: d.string()})
		}
		prober, err := offered[storage.Prober](s.Store, d)
		if err != nil {
			return nil, err
		}
		found, err := prober.Probe(ctx, refs)
		for _, known := range found {
			ok = appendBool(ok, known)
		}
		return ok, err
	}
	return nil, fmt.Errorf("store call: unknown operation %d: %w", op, storage.ErrInvalid)
}

// record answers opRecord in two pieces: the value may be megabytes.
func (s *Server) record(ctx context.Context, d *decoder) (head, value []byte, err error) {
	ref := d.ref()
	reader, err := offered[storage.RecordReader](s.Local, d)
	if err != nil {
		return nil, nil, err
	}
	r, err := reader.Record(ctx, ref)
	return appendRecordHead([]byte{codeOK}, &r), r.Value, err
}

// offered is the store as one that has what is asked for, once the arguments have been read to their end.
func offered[T any](store any, d *decoder) (T, error) {
	has, ok := store.(T)
	switch {
	case !d.ended():
		return has, errArguments
	case !ok:
		return has, fmt.Errorf("the store does not offer this: %w", errors.ErrUnsupported)
	}
	return has, nil
}

func appendDigest(b []byte, d storage.Digest) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, int64(d.Memories)), d.Sum)
}

func (d *decoder) digest() storage.Digest {
	return storage.Digest{Memories: int(d.varint()), Sum: d.uvarint()}
}
