package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// segments are the ledger's records in the store. A segment has rows of one
// group; its name begins with the group's root.
type segments struct {
	local storage.Local
	log   *slog.Logger
	ttl   time.Duration
	slots chan struct{} // concurrent reads
	last  atomic.Int64  // number of the newest segment
	trim  trimmer
}

// enter waits until fewer reads run than there are slots. If ok, leave must be
// called.
func (d *segments) enter(ctx context.Context) (leave func(), ok bool) {
	select {
	case d.slots <- struct{}{}:
		return func() { <-d.slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// name returns the name of the next segment. Those of a group sort in order of
// writing.
func (d *segments) name(root Hash) string {
	for {
		last := d.last.Load()
		next := max(last+1, time.Now().UnixMicro())
		if d.last.CompareAndSwap(last, next) {
			return fmt.Sprintf("%s-%016x", HexHash(root), next)
		}
	}
}

// keys returns the names of a scope's segments, at most limit of them.
func (d *segments) keys(ctx context.Context, scope storage.Scope, limit int) ([]string, error) {
	reader, ok := d.local.(storage.PrefixReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	leave, ok := d.enter(ctx)
	if !ok {
		return nil, storage.ErrUnavailable
	}
	defer leave()
	return reader.RecordKeys(ctx, storage.BucketLedger, scope, limit)
}

func (d *segments) put(ctx context.Context, records []storage.Record) error {
	for batch := range slices.Chunk(records, storage.MaxRecords) {
		if err := d.local.PutRecords(ctx, batch); err != nil {
			return err
		}
		d.trim.count(batch)
	}
	return nil
}

func (d *segments) remove(ctx context.Context, refs []storage.RecordRef) error {
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := d.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// of returns the segments of a group, or of all groups of its scope if
// the root is zero, a page at a time.
func (d *segments) of(ctx context.Context, key groupKey) iter.Seq2[storage.Record, error] {
	prefix := ""
	if key.root != (Hash{}) {
		prefix = HexHash(key.root)
	}
	return func(yield func(storage.Record, error) bool) {
		for after := ""; ; {
			var page storage.RecordPage
			var err error
			if r, ok := d.local.(storage.PrefixReader); ok && prefix != "" {
				page, err = r.RecordsWithPrefix(ctx, storage.BucketLedger, key.scope, prefix, after, storage.MaxPage)
			} else {
				page, err = d.local.Records(ctx, storage.BucketLedger, key.scope, after, storage.MaxPage)
			}
			if err != nil {
				yield(storage.Record{}, err)
				return
			}
			for _, r := range page.Records {
				if strings.HasPrefix(r.Key, prefix) && !yield(r, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}

// refs returns the names of a group's segments.
func (d *segments) refs(ctx context.Context, key groupKey) (all []storage.RecordRef, err error) {
	for r, err := range d.of(ctx, key) {
		if err != nil {
			return nil, err
		}
		all = append(all, r.Ref())
	}
	return all, nil
}
