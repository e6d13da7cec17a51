package process

import (
	"context"
	"fmt"
	"io"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// calls is a store at the other end of a connection. It has the methods of
// [storage.Store], [storage.Local] and all optional interfaces; for those that
// the store lacks, the error wraps errors.ErrUnsupported and
// storage.ErrUnavailable.
type calls struct {
	// link returns the connection, or immediately why there is none.
	link func() (*link, error)
	free bufferPool
}

var (
	_ storage.Store        = (*calls)(nil)
	_ storage.Local        = (*calls)(nil)
	_ storage.Digester     = (*calls)(nil)
	_ storage.ScopeLister  = (*calls)(nil)
	_ storage.Prober       = (*calls)(nil)
	_ storage.RecordReader = (*calls)(nil)
	_ storage.PrefixReader = (*calls)(nil)
	_ storage.Reaper       = (*calls)(nil)
	_ storage.KeyRotator   = (*calls)(nil)
	_ storage.BulkEraser   = (*calls)(nil)
	_ storage.Backuper     = (*calls)(nil)
)

// do makes a call with a message from c.free and returns the encoded results.
func (c *calls) do(ctx context.Context, op opcode, message []byte, stream io.Writer) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := c.link()
	if err != nil {
		return nil, err
	}
	if len(message) > maxMessage {
		return nil, fmt.Errorf("store call: %d bytes, more than %d: %w", len(message), maxMessage, storage.ErrInvalid)
	}
	answer, err := l.call(ctx, op, message, stream)
	if err != nil {
		return nil, err
	}
	if len(answer) > 0 && answer[0] == codeOK {
		return answer[1:], nil
	}
	var failed remoteError
	r := wire.Reader(answer)
	if codeError(r, &failed); r.Failed() || failed.code > codeOther {
		return nil, l.broken()
	}
	if failed.code == codeOther && op != opAdmin {
		failed.code = codeUnavailable
	}
	return nil, &failed
}

// Put implements [storage.Store]. It checks the writes here, because memories
// are sent without their scope.
func (c *calls) Put(ctx context.Context, writes []storage.Write) error {
	for i := range writes {
		if err := writes[i].Validate(); err != nil {
			return fmt.Errorf("write %d: %w", i, err)
		}
	}
	_, err := put.call(ctx, c, writes)
	return err
}

// Memory implements [storage.Store].
func (c *calls) Memory(ctx context.Context, scope storage.Scope, id string) (storage.Memory, error) {
	m, err := memory.call(ctx, c, storage.MemoryRef{Scope: scope, ID: id})
	if err == nil {
		m.Scope = scope
	}
	return m, err
}

// Scan implements [storage.Store].
func (c *calls) Scan(ctx context.Context, scope storage.Scope, q storage.Query) (storage.Page, error) {
	page, err := scan.call(ctx, c, scanArgs{scope, q})
	setScope(page.Memories, scope)
	return page, err
}

// Delete implements [storage.Store].
func (c *calls) Delete(ctx context.Context, scope storage.Scope, ids ...string) (int, error) {
	return remove.call(ctx, c, deleteArgs{scope, ids})
}

// Erase implements [storage.Store].
func (c *calls) Erase(ctx context.Context, scope storage.Scope) (storage.Receipt, error) {
	return erase.call(ctx, c, scope)
}

// PutRecords implements [storage.Local]. The records of one call may have 64
// MiB together.
func (c *calls) PutRecords(ctx context.Context, list []storage.Record) error {
	_, err := putRecords.call(ctx, c, list)
	return err
}

// Records implements [storage.Local].
func (c *calls) Records(ctx context.Context, bucket storage.Bucket, scope storage.Scope, after string, limit int) (storage.RecordPage, error) {
	return records.call(ctx, c, recordsArgs{bucket: bucket, scope: scope, after: after, limit: limit})
}

// RecordsWithPrefix implements [storage.PrefixReader].
func (c *calls) RecordsWithPrefix(ctx context.Context, bucket storage.Bucket, scope storage.Scope, prefix, after string, limit int) (storage.RecordPage, error) {
	return records.call(ctx, c, recordsArgs{bucket, scope, prefix, after, limit})
}

// RecordKeys implements [storage.PrefixReader].
func (c *calls) RecordKeys(ctx context.Context, bucket storage.Bucket, scope storage.Scope, limit int) ([]string, error) {
	return recordKeys.call(ctx, c, recordsArgs{bucket: bucket, scope: scope, limit: limit})
}

// AllRecords implements [storage.Local].
func (c *calls) AllRecords(ctx context.Context, bucket storage.Bucket, after string, limit int) (storage.RecordPage, error) {
	return allRecords.call(ctx, c, recordsArgs{bucket: bucket, after: after, limit: limit})
}

// DeleteRecords implements [storage.Local].
func (c *calls) DeleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	_, err := deleteRecords.call(ctx, c, refs)
	return err
}

// Record implements [storage.RecordReader].
func (c *calls) Record(ctx context.Context, ref storage.RecordRef) (storage.Record, error) {
	return record.call(ctx, c, ref)
}

// InstallSecret implements [storage.Local].
func (c *calls) InstallSecret(ctx context.Context) ([]byte, error) {
	return installSecret.call(ctx, c, nothing{})
}

// Digest implements [storage.Digester].
func (c *calls) Digest(ctx context.Context, scope storage.Scope) (storage.Digest, error) {
	return digest.call(ctx, c, scope)
}

// Scopes implements [storage.ScopeLister].
func (c *calls) Scopes(ctx context.Context, after string, limit int) (storage.ScopePage, error) {
	return scopes.call(ctx, c, scopesArgs{after, limit})
}

// Probe implements [storage.Prober].
func (c *calls) Probe(ctx context.Context, refs []storage.MemoryRef) ([]bool, error) {
	found, err := probe.call(ctx, c, refs)
	if err == nil && len(found) != len(refs) {
		return nil, unavailable(errProtocol.Error())
	}
	return found, err
}

// Reap implements [storage.Reaper].
func (c *calls) Reap(ctx context.Context, now storage.Time) (int, error) {
	return reap.call(ctx, c, now)
}

// Newest implements [storage.Reaper].
func (c *calls) Newest(ctx context.Context) (storage.Time, error) {
	return newest.call(ctx, c, nothing{})
}

// RotateKey implements [storage.KeyRotator].
func (c *calls) RotateKey(ctx context.Context, newKeyFile string) (storage.KeyRotation, error) {
	return rotateKey.call(ctx, c, newKeyFile)
}

// EraseTenant implements [storage.BulkEraser].
func (c *calls) EraseTenant(ctx context.Context, tenant string) (storage.Receipt, error) {
	return eraseTenant.call(ctx, c, tenant)
}

// EraseAll implements [storage.BulkEraser].
func (c *calls) EraseAll(ctx context.Context) (storage.Receipt, error) {
	return eraseAll.call(ctx, c, nothing{})
}

// adminBackup is the name of an Admin call that every server answers whose
// store is a [storage.Backuper].
const adminBackup = "backup"

// Backup implements [storage.Backuper].
func (c *calls) Backup(ctx context.Context, w io.Writer) error {
	_, err := c.Admin(ctx, adminBackup, nil, w)
	return err
}

// Admin makes a call that [Server.Admin] answers: name and args mean what that
// function makes of them. What the server streams is written to out, which may
// be nil, as fast as out accepts it. An error that wraps no sentinel
// arrives as its text.
func (c *calls) Admin(ctx context.Context, name string, args []byte, out io.Writer) ([]byte, error) {
	if out == nil {
		out = io.Discard
	}
	w := wire.Writer(c.free.get(64 + len(args)))
	wire.String(w, &name)
	return c.do(ctx, opAdmin, append(w.Bytes(), args...), out)
}
