package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/storage"
)

var errArguments = fmt.Errorf("store call: arguments can't be read: %w", storage.ErrInvalid)

// do is the server's half of every call; calls.go has the other one.
func (s *Server) do(ctx context.Context, op operation, d *decoder, stream io.Writer) ([]byte, error) {
	ok := []byte{codeOK}
	switch op {
	case opPut:
		writes := d.writes()
		if !d.ended() {
			return nil, errArguments
		}
		return ok, s.Store.Put(ctx, writes)
	case opMemory:
		scope, id := d.scope(), d.string()
		if !d.ended() {
			return nil, errArguments
		}
		m, err := s.Store.Memory(ctx, scope, id)
		return appendMemory(ok, &m, scope), err
	case opScan:
		scope := d.scope()
		q := storage.Query{Kinds: stringsOf[storage.Kind](d), Conversation: d.string(), After: d.string(), Limit: int(d.varint())}
		if !d.ended() {
			return nil, errArguments
		}
		page, err := s.Store.Scan(ctx, scope, q)
		return appendPage(ok, &page, scope), err
	case opDelete:
		scope, ids := d.scope(), stringsOf[string](d)
		if !d.ended() {
			return nil, errArguments
		}
		n, err := s.Store.Delete(ctx, scope, ids...)
		return binary.AppendUvarint(ok, uint64(n)), err
	case opErase:
		scope := d.scope()
		if !d.ended() {
			return nil, errArguments
		}
		receipt, err := s.Store.Erase(ctx, scope)
		return appendReceipt(ok, receipt), err
	case opAdmin:
		name := d.ownString()
		if d.bad {
			return nil, errArguments
		}
		if keeper, has := s.Store.(storage.Backuper); has && name == adminBackup {
			return ok, keeper.Backup(ctx, stream)
		}
		if s.Admin == nil {
			return nil, fmt.Errorf("%q is not known here: %w", name, errors.ErrUnsupported)
		}
		results, err := s.Admin(ctx, name, d.rest, stream)
		return append(ok, results...), err
	}
	return s.doLocal(ctx, op, d)
}

func (s *Server) doLocal(ctx context.Context, op operation, d *decoder) ([]byte, error) {
	ok := []byte{codeOK}
	switch op {
	case opPutRecords:
		var records []storage.Record
		for range d.count(minRecord) {
			records = append(records, d.record())
		}
		if !d.ended() {
			return nil, errArguments
		}
		return ok, s.Local.PutRecords(ctx, records)
	case opRecords:
		scope, bucket := d.scope(), storage.Bucket(d.string())
		after, limit := d.string(), int(d.varint())
		if !d.ended() {
			return nil, errArguments
		}
		page, err := s.Local.Records(ctx, bucket, scope, after, limit)
		return appendRecordPage(ok, &page), err
	case opAllRecords:
		bucket, after, limit := storage.Bucket(d.string()), d.string(), int(d.varint())
		if !d.ended() {
			return nil, errArguments
		}
		page, err := s.Local.AllRecords(ctx, bucket, after, limit)
		return appendRecordPage(ok, &page), err
	case opDeleteRecords:
		var refs []storage.RecordRef
		for range d.count(minRecord) {
			refs = append(refs, d.ref())
		}
		if !d.ended() {
			return nil, errArguments
		}
		return ok, s.Local.DeleteRecords(ctx, refs)
	case opInstallSecret:
		if !d.ended() {
			return nil, errArguments
		}
		secret, err := s.Local.InstallSecret(ctx)
		return appendString(ok, secret), err
	}
	return s.doOptional(ctx, op, d)
}

func (d *decoder) ended() bool { return !d.bad && len(d.rest) == 0 }

func (d *decoder) writes() []storage.Write {
	var writes []storage.Write
	for range d.count(minWrite) {
		if d.bad {
			return nil
		}
		w := storage.Write{Scope: d.ownScope(), Turn: d.ownString()}
		if n := d.count(minMemory); n > 0 {
			w.Memories = make([]storage.Memory, n)
			for i := range w.Memories {
				d.memory(&w.Memories[i], w.Scope)
			}
		}
		writes = append(writes, w)
	}
	return writes
}

// minWrite is the least that a write takes on the wire.
const minWrite = 6

func appendReceipt(b []byte, r storage.Receipt) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Scopes)), uint64(r.Memories))
	b = binary.AppendUvarint(binary.AppendVarint(b, int64(r.At)), uint64(len(r.Records)))
	for bucket, n := range r.Records {
		b = binary.AppendUvarint(appendString(b, bucket), uint64(n))
	}
	return b
}

func appendPage(b []byte, p *storage.Page, scope storage.Scope) []byte {
	size := 0
	for i := range p.Memories {
		size += len(p.Memories[i].Text) + 384
	}
	b = append(make([]byte, 0, len(b)+size+256), b...)
	b = binary.AppendUvarint(b, uint64(p.Damaged))
	b = appendDigest(appendString(b, p.Next), p.Expired)
	b = binary.AppendUvarint(b, uint64(len(p.Memories)))
	for i := range p.Memories {
		b = appendMemory(b, &p.Memories[i], scope)
	}
	return b
}

func appendRecordPage(b []byte, p *storage.RecordPage) []byte {
	size := 0
	for i := range p.Records {
		size += len(p.Records[i].Value) + 256
	}
	b = append(make([]byte, 0, len(b)+size+256), b...)
	b = binary.AppendUvarint(b, uint64(p.Damaged))
	b = appendString(b, p.Next)
	b = binary.AppendUvarint(b, uint64(len(p.Records)))
	for i := range p.Records {
		b = appendRecord(b, &p.Records[i])
	}
	return b
}
