package ledger

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/remora-proxy/remora/storage"
)

// trimmer keeps what is stored within a limit. How much that is it knows only
// once it has read all of it, which it does when much was written since.
type trimmer struct {
	limit int64

	removed atomic.Int64 // segments that were deleted

	mu     sync.Mutex
	known  bool  // stored was counted once
	stored int64 // bytes: what was counted last, and what was written since
}

const (
	trimUnknown = 16 // while the size isn't known, it is counted after a 16th of the limit was written
	trimTo      = 8  // beyond the limit, an eighth of it is made free
	trimClasses = 256
)

func (t *trimmer) count(records []storage.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range records {
		t.stored += storedSize(r)
	}
}

// storedSize estimates the bytes of a segment in the store.
func storedSize(r storage.Record) int64 { return int64(len(r.Value)+len(r.Key)) + 128 }

// due reports whether the store must be counted.
func (t *trimmer) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return t.stored > t.limit/trimUnknown
	}
	return t.stored > t.limit
}

// trimStored deletes the segments that were not used for longest, if there is
// more than the limit. A segment expires a fixed time after its last use, so
// this tells their order; all turns of a conversation that is used are written
// again from time to time. Segments are put into classes by when they expire,
// and deleted a class at a time.
func (d *segments) trimStored(ctx context.Context) {
	t := &d.trim
	if !t.due() {
		return
	}
	now := storage.Now()
	class := func(r storage.Record) int {
		return int(min(max(r.ExpiresAt-now, 0)*trimClasses/storage.Time(d.ttl.Milliseconds()), trimClasses-1))
	}
	var sizes [trimClasses]int64
	total, removed := int64(0), 0
	err := d.eachPage(ctx, func(page []storage.Record) error {
		for _, r := range page {
			sizes[class(r)] += storedSize(r)
			total += storedSize(r)
		}
		return nil
	})
	if err == nil && total > t.limit {
		keep := 0 // the first class that stays
		for ; keep < trimClasses-1 && total > t.limit-t.limit/trimTo; keep++ {
			total -= sizes[keep]
		}
		err = d.eachPage(ctx, func(page []storage.Record) error {
			var old []storage.RecordRef
			for _, r := range page {
				if class(r) < keep {
					old = append(old, r.Ref())
				}
			}
			removed += len(old)
			return d.remove(ctx, old)
		})
		t.removed.Add(int64(removed))
	}
	if err != nil {
		d.log.Debug("trim ledger", "error", err)
		return
	}
	if removed > 0 {
		d.log.Warn("old conversations were dropped from the ledger, which is full", "records", removed, "limit", t.limit)
	}
	t.mu.Lock()
	t.known, t.stored = true, total
	t.mu.Unlock()
}

// eachPage calls f with the segments of all scopes, a page at a time.
func (d *segments) eachPage(ctx context.Context, f func([]storage.Record) error) error {
	for after := ""; ; {
		page, err := d.local.AllRecords(ctx, storage.BucketLedger, after, storage.MaxPage)
		if err != nil {
			return err
		}
		if err := f(page.Records); err != nil {
			return err
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}
