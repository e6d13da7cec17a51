package process

import (
	"context"
	"errors"
	"fmt"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// opcode identifies an operation on the wire.
type opcode byte

const (
	opPut opcode = iota + 1
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
	opAdmin // not in operations: its arguments and results are raw bytes, and it streams
	opProbe
	opRecord
	opRecordKeys
	opNewest
)

// unbounded reports whether an operation may take any time.
func (o opcode) unbounded() bool {
	switch o {
	case opAdmin, opReap, opNewest, opRotateKey, opEraseTenant, opEraseAll:
		return true
	}
	return false
}

// writes reports whether an operation changes the store. Those of one
// connection run one after another, in order.
func (o opcode) writes() bool {
	switch o {
	case opPut, opDelete, opErase, opPutRecords, opDeleteRecords, opEraseTenant, opEraseAll:
		return true
	}
	return false
}

// operation is one method of a store: how its arguments and results are
// encoded, and how a server answers it.
type operation[A, R any] struct {
	code    opcode
	args    func(*wire.Coder, *A)
	results func(*wire.Coder, *R)
	serve   func(ctx context.Context, s *Server, args A) (R, error)

	// Optional: about how many bytes arguments and results take, if that may be
	// more than a few hundred, and a part of the results that follows the
	// encoded rest without being copied.
	argsSize    func(*A) int
	resultsSize func(*R) int
	tail        func(*R) []byte
}

// sizeHint is what is allocated for arguments and results beyond their own
// estimates.
const sizeHint = 512

// call is the client's side.
func (o *operation[A, R]) call(ctx context.Context, c *calls, args A) (R, error) {
	var none, results R
	size := sizeHint
	if o.argsSize != nil {
		size += o.argsSize(&args)
	}
	if size > maxMessage+maxEstimateError {
		return none, fmt.Errorf("store call: more than %d bytes: %w", maxMessage, storage.ErrInvalid)
	}
	w := wire.Writer(c.free.get(size))
	o.args(w, &args)
	answer, err := c.do(ctx, o.code, w.Bytes(), nil)
	if errors.Is(err, errors.ErrUnsupported) {
		err = errors.Join(storage.ErrUnavailable, err)
	}
	if err != nil {
		return none, err
	}
	r := wire.Reader(answer)
	if o.results(r, &results); !r.Done() {
		return none, unavailable(errProtocol.Error())
	}
	return results, nil
}

// maxEstimateError is how far argsSize may exceed the encoded size: the exact
// size is checked before it is sent.
const maxEstimateError = 256 * storage.MaxRecords

// answer is the server's side.
func (o *operation[A, R]) answer(ctx context.Context, s *Server, encoded []byte) (results, tail []byte, err error) {
	var args A
	r := wire.Reader(encoded)
	if o.args(r, &args); !r.Done() {
		return nil, nil, errArguments
	}
	result, err := o.serve(ctx, s, args)
	if err != nil {
		return nil, nil, err
	}
	size := sizeHint
	if o.resultsSize != nil {
		size += o.resultsSize(&result)
	}
	w := wire.Writer(append(make([]byte, 0, size), codeOK))
	o.results(w, &result)
	if o.tail != nil {
		tail = o.tail(&result)
	}
	return w.Bytes(), tail, nil
}

var errArguments = fmt.Errorf("store call: malformed arguments: %w", storage.ErrInvalid)

// answerer is an operation to a server.
type answerer interface {
	answer(ctx context.Context, s *Server, encoded []byte) (results, tail []byte, err error)
}

// operations is what a server answers.
var operations = map[opcode]answerer{
	opPut: &put, opMemory: &memory, opScan: &scan, opDelete: &remove, opErase: &erase,
	opPutRecords: &putRecords, opRecords: &records, opAllRecords: &allRecords, opDeleteRecords: &deleteRecords,
	opRecord: &record, opRecordKeys: &recordKeys, opInstallSecret: &installSecret,
	opDigest: &digest, opScopes: &scopes, opProbe: &probe, opReap: &reap, opNewest: &newest, opRotateKey: &rotateKey,
	opEraseTenant: &eraseTenant, opEraseAll: &eraseAll,
}

// nothing is the arguments or results of an operation without any.
type nothing struct{}

func codeNothing(*wire.Coder, *nothing) {}

var put = operation[[]storage.Write, nothing]{
	code: opPut,
	args: func(c *wire.Coder, writes *[]storage.Write) { wire.List(c, writes, minWrite, codeWrite) },
	argsSize: func(writes *[]storage.Write) (n int) {
		for i := range *writes {
			n += (*writes)[i].Size() + 128
		}
		return n
	},
	results: codeNothing,
	serve: func(ctx context.Context, s *Server, writes []storage.Write) (nothing, error) {
		return nothing{}, s.Store.Put(ctx, writes)
	},
}

var memory = operation[storage.MemoryRef, storage.Memory]{
	code: opMemory, args: codeMemoryRef, results: codeMemory,
	serve: func(ctx context.Context, s *Server, ref storage.MemoryRef) (storage.Memory, error) {
		return s.Store.Memory(ctx, ref.Scope, ref.ID)
	},
}

type scanArgs struct {
	scope storage.Scope
	query storage.Query
}

var scan = operation[scanArgs, storage.Page]{
	code: opScan,
	args: func(c *wire.Coder, a *scanArgs) {
		codeScope(c, &a.scope)
		wire.Strings(c, &a.query.Kinds)
		wire.String(c, &a.query.Conversation)
		c.Bool(&a.query.Newest)
		wire.String(c, &a.query.After)
		wire.Int(c, &a.query.Limit)
	},
	results: codePage,
	resultsSize: func(p *storage.Page) (n int) {
		for i := range p.Memories {
			n += len(p.Memories[i].Text) + 384
		}
		return n
	},
	serve: func(ctx context.Context, s *Server, a scanArgs) (storage.Page, error) {
		return s.Store.Scan(ctx, a.scope, a.query)
	},
}

type deleteArgs struct {
	scope storage.Scope
	ids   []string
}

var remove = operation[deleteArgs, int]{
	code: opDelete,
	args: func(c *wire.Coder, a *deleteArgs) {
		codeScope(c, &a.scope)
		wire.Strings(c, &a.ids)
	},
	argsSize: func(a *deleteArgs) int { return 64 * len(a.ids) },
	results:  wire.Uint[int],
	serve: func(ctx context.Context, s *Server, a deleteArgs) (int, error) {
		return s.Store.Delete(ctx, a.scope, a.ids...)
	},
}

var erase = operation[storage.Scope, storage.Receipt]{
	code: opErase, args: codeScope, results: codeReceipt,
	serve: offered(storage.Store.Erase),
}

var putRecords = operation[[]storage.Record, nothing]{
	code:     opPutRecords,
	args:     func(c *wire.Coder, list *[]storage.Record) { wire.List(c, list, minRecord, codeRecord) },
	argsSize: recordsSize,
	results:  codeNothing,
	serve: func(ctx context.Context, s *Server, list []storage.Record) (nothing, error) {
		return nothing{}, s.Local.PutRecords(ctx, list)
	},
}

// recordsArgs is a page to read: of one scope, or of all if scope is zero.
type recordsArgs struct {
	bucket storage.Bucket
	scope  storage.Scope
	prefix string
	after  string
	limit  int
}

func codeRecordsArgs(c *wire.Coder, a *recordsArgs) {
	wire.String(c, &a.bucket)
	codeScope(c, &a.scope)
	wire.String(c, &a.prefix)
	wire.String(c, &a.after)
	wire.Int(c, &a.limit)
}

var records = operation[recordsArgs, storage.RecordPage]{
	code: opRecords, args: codeRecordsArgs, results: codeRecordPage, resultsSize: recordPageSize,
	serve: func(ctx context.Context, s *Server, a recordsArgs) (storage.RecordPage, error) {
		if a.prefix == "" {
			return s.Local.Records(ctx, a.bucket, a.scope, a.after, a.limit)
		}
		if reader, ok := s.Local.(storage.PrefixReader); ok {
			return reader.RecordsWithPrefix(ctx, a.bucket, a.scope, a.prefix, a.after, a.limit)
		}
		return storage.RecordPage{}, errNotOffered
	},
}

var recordKeys = operation[recordsArgs, []string]{
	code: opRecordKeys, args: codeRecordsArgs,
	results:     func(c *wire.Coder, keys *[]string) { wire.List(c, keys, 1, wire.String) },
	resultsSize: func(keys *[]string) int { return 64 * len(*keys) },
	serve: func(ctx context.Context, s *Server, a recordsArgs) ([]string, error) {
		if reader, ok := s.Local.(storage.PrefixReader); ok {
			return reader.RecordKeys(ctx, a.bucket, a.scope, a.limit)
		}
		return nil, errNotOffered
	},
}

var allRecords = operation[recordsArgs, storage.RecordPage]{
	code: opAllRecords, args: codeRecordsArgs, results: codeRecordPage, resultsSize: recordPageSize,
	serve: func(ctx context.Context, s *Server, a recordsArgs) (storage.RecordPage, error) {
		return s.Local.AllRecords(ctx, a.bucket, a.after, a.limit)
	},
}

var deleteRecords = operation[[]storage.RecordRef, nothing]{
	code:     opDeleteRecords,
	args:     func(c *wire.Coder, refs *[]storage.RecordRef) { wire.List(c, refs, minRecord, codeRecordRef) },
	argsSize: func(refs *[]storage.RecordRef) int { return 256 * len(*refs) },
	results:  codeNothing,
	serve: func(ctx context.Context, s *Server, refs []storage.RecordRef) (nothing, error) {
		return nothing{}, s.Local.DeleteRecords(ctx, refs)
	},
}

// record does not copy the value, which may be megabytes: it is sent behind the
// encoded rest, and read in place.
var record = operation[storage.RecordRef, storage.Record]{
	code: opRecord,
	args: codeRecordRef,
	results: func(c *wire.Coder, r *storage.Record) {
		codeRecordHead(c, r)
		if c.Reading() {
			c.BlobInPlace(&r.Value)
		} else {
			c.Len(len(r.Value), 1)
		}
	},
	tail: func(r *storage.Record) []byte { return r.Value },
	serve: func(ctx context.Context, s *Server, ref storage.RecordRef) (storage.Record, error) {
		if reader, ok := s.Local.(storage.RecordReader); ok {
			return reader.Record(ctx, ref)
		}
		return storage.Record{}, errNotOffered
	},
}

var installSecret = operation[nothing, []byte]{
	code: opInstallSecret, args: codeNothing, results: (*wire.Coder).Blob,
	serve: func(ctx context.Context, s *Server, _ nothing) ([]byte, error) { return s.Local.InstallSecret(ctx) },
}

var digest = operation[storage.Scope, storage.Digest]{
	code: opDigest, args: codeScope, results: codeDigest,
	serve: offered(storage.Digester.Digest),
}

type scopesArgs struct {
	after string
	limit int
}

var scopes = operation[scopesArgs, storage.ScopePage]{
	code: opScopes,
	args: func(c *wire.Coder, a *scopesArgs) {
		wire.String(c, &a.after)
		wire.Int(c, &a.limit)
	},
	results: func(c *wire.Coder, p *storage.ScopePage) {
		wire.Uint(c, &p.Damaged)
		wire.String(c, &p.Next)
		wire.List(c, &p.Scopes, minScope, codeScope)
	},
	serve: offered(func(l storage.ScopeLister, ctx context.Context, a scopesArgs) (storage.ScopePage, error) {
		return l.Scopes(ctx, a.after, a.limit)
	}),
}

var probe = operation[[]storage.MemoryRef, []bool]{
	code:     opProbe,
	args:     func(c *wire.Coder, refs *[]storage.MemoryRef) { wire.List(c, refs, minMemoryRef, codeMemoryRef) },
	argsSize: func(refs *[]storage.MemoryRef) int { return 192 * len(*refs) },
	results:  func(c *wire.Coder, found *[]bool) { wire.List(c, found, 1, (*wire.Coder).Bool) },
	serve:    offered(storage.Prober.Probe),
}

var reap = operation[storage.Time, int]{
	code: opReap, args: wire.Int[storage.Time], results: wire.Uint[int],
	serve: offered(storage.Reaper.Reap),
}

var newest = operation[nothing, storage.Time]{
	code: opNewest, args: codeNothing, results: wire.Int[storage.Time],
	serve: offered(func(r storage.Reaper, ctx context.Context, _ nothing) (storage.Time, error) { return r.Newest(ctx) }),
}

var rotateKey = operation[string, storage.KeyRotation]{
	code: opRotateKey, args: wire.String[string],
	results: func(c *wire.Coder, r *storage.KeyRotation) {
		wire.String(c, &r.From)
		wire.String(c, &r.To)
		wire.Uint(c, &r.Keys)
		c.Bool(&r.Pending)
		wire.String(c, &r.NewFile)
		wire.String(c, &r.OldFile)
		wire.Uint(c, &r.Unreadable)
	},
	serve: offered(storage.KeyRotator.RotateKey),
}

var eraseTenant = operation[string, storage.Receipt]{
	code: opEraseTenant, args: wire.String[string], results: codeReceipt,
	serve: offered(storage.BulkEraser.EraseTenant),
}

var eraseAll = operation[nothing, storage.Receipt]{
	code: opEraseAll, args: codeNothing, results: codeReceipt,
	serve: offered(func(e storage.BulkEraser, ctx context.Context, _ nothing) (storage.Receipt, error) {
		return e.EraseAll(ctx)
	}),
}

// offered returns a serve that calls a method of an interface that the server's
// store may have.
func offered[T, A, R any](method func(T, context.Context, A) (R, error)) func(context.Context, *Server, A) (R, error) {
	return func(ctx context.Context, s *Server, args A) (none R, err error) {
		if t, ok := s.Store.(T); ok {
			return method(t, ctx, args)
		}
		return none, errNotOffered
	}
}

var errNotOffered = fmt.Errorf("the store does not offer this: %w", errors.ErrUnsupported)
