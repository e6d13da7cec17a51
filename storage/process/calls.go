package process

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/storage"
)

// operation is what a call asks for.
type operation byte

const (
	opPut operation = iota + 1
	opMemory
	opScan
	opDelete
	opErase
	opPutRecords
	opRecords
	opAllRecords
	opDeleteRecords
	opInstallSecret
	opDigest
	opScopes
	opReap
	opRotateKey
	opEraseTenant
	opEraseAll
	opAdmin
	opProbe
	opRecord
)

// endless says that an operation may take as long as it takes.
func (o operation) endless() bool {
	switch o {
	case opAdmin, opReap, opRotateKey, opEraseTenant, opEraseAll:
		return true
	}
	return false
}

// changes says that an operation changes the store: those of one connection are done one after another, as they came.
func (o operation) changes() bool {
	switch o {
	case opPut, opDelete, opErase, opPutRecords, opDeleteRecords, opEraseTenant, opEraseAll:
		return true
	}
	return false
}

// calls is the client's half of every call. It implements [storage.Store], [storage.Local] and, in optional.go, what a store may offer
// beside them: where it does not, the error wraps errors.ErrUnsupported and storage.ErrUnavailable.
type calls struct {
	// link returns the connection, or at once why there is none.
	link func() (*link, error)
	free buffers
}

var (
	_ storage.Store    = (*calls)(nil)
	_ storage.Local    = (*calls)(nil)
	_ storage.Digester = (*calls)(nil)

	_ storage.ScopeLister = (*calls)(nil)
	_ storage.Reaper      = (*calls)(nil)
	_ storage.KeyRotator  = (*calls)(nil)
	_ storage.BulkEraser  = (*calls)(nil)
	_ storage.Backuper    = (*calls)(nil)

	_ storage.Prober       = (*calls)(nil)
	_ storage.RecordReader = (*calls)(nil)
)

// do makes a call and returns its results. Memory is what it costs: arguments are encoded once, results are read in place.
func (c *calls) do(ctx context.Context, op operation, args []byte, stream io.Writer) (*decoder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := c.link()
	if err != nil {
		return nil, err
	}
	if len(args) > maxMessage {
		return nil, fmt.Errorf("store call: %d bytes are more than %d: %w", len(args), maxMessage, storage.ErrInvalid)
	}
	answer, err := l.call(ctx, op, args, stream)
	if err != nil {
		return nil, err
	}
	d := newDecoder(answer)
	code := d.byte()
	if code == codeOK && !d.bad {
		return d, nil
	}
	failed := &remoteError{code: code, text: d.string()}
	if d.bad || code > codeOther {
		return nil, l.broken()
	}
	if code == codeOther && op != opAdmin {
		failed.code = codeUnavailable
	}
	return nil, failed
}

// whole checks that results were read to their end.
func (c *calls) whole(d *decoder) error {
	if d.bad || len(d.rest) > 0 {
		return unavailable(errProtocol.Error())
	}
	return nil
}

// Put implements [storage.Store].
func (c *calls) Put(ctx context.Context, writes []storage.Write) error {
	size := 64
	for i := range writes {
		size += writes[i].Size() + 128
	}
	b := binary.AppendUvarint(c.free.start(size), uint64(len(writes)))
	for i := range writes {
		w := &writes[i]
		b = appendScope(b, w.Scope)
		b = appendString(b, w.Turn)
		b = binary.AppendUvarint(b, uint64(len(w.Memories)))
		for j := range w.Memories {
			b = appendMemory(b, &w.Memories[j], w.Scope)
		}
	}
	return c.doWithout(ctx, opPut, b)
}

func (c *calls) doWithout(ctx context.Context, op operation, args []byte) error {
	d, err := c.do(ctx, op, args, nil)
	if err != nil {
		return err
	}
	return c.whole(d)
}

// Memory implements [storage.Store].
func (c *calls) Memory(ctx context.Context, scope storage.Scope, id string) (storage.Memory, error) {
	d, err := c.do(ctx, opMemory, appendString(appendScope(c.free.start(256), scope), id), nil)
	if err != nil {
		return storage.Memory{}, err
	}
	var m storage.Memory
	d.memory(&m, scope)
	if err := c.whole(d); err != nil {
		return storage.Memory{}, err
	}
	return m, nil
}

// Scan implements [storage.Store].
func (c *calls) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	b := appendStrings(appendScope(c.free.start(512), scope), q.Kinds)
	b = appendString(b, q.Conversation)
	b = appendString(b, q.After)
	b = binary.AppendVarint(b, int64(q.Limit))
	d, err := c.do(ctx, opScan, b, nil)
	if err != nil {
		return storage.Page{}, err
	}
	page := storage.Page{Damaged: int(d.uvarint()), Next: d.ownString(), Expired: d.digest()}
	n := d.count(minMemory)
	if n > 0 {
		page.Memories = make([]storage.Memory, n)
		for i := range page.Memories {
			d.memory(&page.Memories[i], scope)
		}
	}
	if err := c.whole(d); err != nil {
		return storage.Page{}, err
	}
	return page, nil
}

// minMemory is the least that a memory takes on the wire.
const minMemory = 4 + 1 + 1 + 48

// Delete implements [storage.Store].
func (c *calls) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	d, err := c.do(ctx, opDelete, appendStrings(appendScope(c.free.start(256+64*len(ids)), scope), ids), nil)
	if err != nil {
		return 0, err
	}
	n := int(d.uvarint())
	return n, c.whole(d)
}

// Erase implements [storage.Store].
func (c *calls) Erase(ctx context.Context, scope storage.Scope) (storage.Receipt, error) {
	d, err := c.do(ctx, opErase, appendScope(c.free.start(256), scope), nil)
	return c.receipt(d, err)
}

func (c *calls) receipt(d *decoder, err error) (storage.Receipt, error) {
	if err != nil {
		return storage.Receipt{}, err
	}
	receipt := storage.Receipt{Scopes: int(d.uvarint()), Memories: int(d.uvarint()), At: storage.Time(d.varint())}
	if n := d.count(2); n > 0 {
		receipt.Records = make(map[storage.Bucket]int, n)
		for range n {
			bucket := storage.Bucket(d.ownString())
			receipt.Records[bucket] = int(d.uvarint())
		}
	}
	if err := c.whole(d); err != nil {
		return storage.Receipt{}, err
	}
	return receipt, nil
}

// PutRecords implements [storage.Local]. All records of a call together are at most 64 MiB.
func (c *calls) PutRecords(ctx context.Context, records []storage.Record) error {
	size := 64
	for i := range records {
		size += len(records[i].Value) + 256
	}
	if size > maxMessage+256*storage.MaxRecords {
		return fmt.Errorf("records: more than %d bytes in one call: %w", maxMessage, storage.ErrInvalid)
	}
	b := binary.AppendUvarint(c.free.start(size), uint64(len(records)))
	for i := range records {
		b = appendRecord(b, &records[i])
	}
	return c.doWithout(ctx, opPutRecords, b)
}

// Records implements [storage.Local].
func (c *calls) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	b := appendString(appendScope(c.free.start(512), scope), bucket)
	b = binary.AppendVarint(appendString(b, after), int64(limit))
	return c.recordPage(ctx, opRecords, b)
}

// AllRecords implements [storage.Local].
func (c *calls) AllRecords(ctx context.Context, bucket storage.Bucket, after string, limit int) (storage.RecordPage, error) {
	b := appendString(c.free.start(256), bucket)
	b = binary.AppendVarint(appendString(b, after), int64(limit))
	return c.recordPage(ctx, opAllRecords, b)
}

func (c *calls) recordPage(ctx context.Context, op operation, args []byte) (storage.RecordPage, error) {
	d, err := c.do(ctx, op, args, nil)
	if err != nil {
		return storage.RecordPage{}, err
	}
	page := storage.RecordPage{Damaged: int(d.uvarint()), Next: d.ownString()}
	if n := d.count(minRecord); n > 0 {
		page.Records = make([]storage.Record, n)
		for i := range page.Records {
			page.Records[i] = d.record()
		}
	}
	if err := c.whole(d); err != nil {
		return storage.RecordPage{}, err
	}
	return page, nil
}

// minRecord is the least that a record, or a reference to one, takes on the wire.
const minRecord = 6

// DeleteRecords implements [storage.Local].
func (c *calls) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	b := binary.AppendUvarint(c.free.start(64+256*len(refs)), uint64(len(refs)))
	for _, r := range refs {
		b = appendRef(b, r)
	}
	return c.doWithout(ctx, opDeleteRecords, b)
}

// InstallSecret implements [storage.Local].
func (c *calls) InstallSecret(ctx context.Context) ([]byte, error) {
	d, err := c.do(ctx, opInstallSecret, c.free.start(0), nil)
	if err != nil {
		return nil, err
	}
	secret := []byte(d.ownString())
	return secret, c.whole(d)
}

// Admin asks for what no other call covers, by a name that the server's caller gave it: a backup, new keys, ... What it
// streams is written to out, which may be nil, as fast as out takes it. An error of no known kind comes back as its text.
func (c *calls) Admin(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error) {
	if out == nil {
		out = io.Discard
	}
	d, err := c.do(ctx, opAdmin, append(appendString(c.free.start(64+len(args)), name), args...), out)
	if err != nil {
		return nil, err
	}
	return d.rest, nil
}
