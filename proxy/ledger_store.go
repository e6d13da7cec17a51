package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/storage"
)

// ledgerStore keeps the ledger over restarts, off the hot path: what changed in a scope is written some time later, all
// of it as one record, a segment. Of an entry that stands in several segments the newest counts. What a crash takes
// costs cache, never correctness: a turn without an entry gets no block.
type ledgerStore struct {
	local storage.Local
	log   *slog.Logger

	committing sync.Mutex // one commit at a time; taken before mu

	mu      sync.Mutex
	pending map[storage.Scope]*unsaved
	writing map[storage.Scope]*unsaved // taken from pending, not committed yet
	erasing holds
	reads   []*reading // as many as there are slots
	size    int        // bytes of what is pending; from most on what comes is dropped and counted
	most    int        // ledgerPending, or less where memory is short
	segment int64
	spare   [][]byte // segments to use again, at most an eighth of most
	wake    chan struct{}

	loads   sync.WaitGroup
	slots   chan struct{} // loads at once
	dropped atomic.Int64
}

// unsaved is what of one scope waits to be written.
type unsaved struct {
	segments [][]byte // rows as appendRow writes them: of an entry that stands in several the last counts
	size     int      // bytes of segments
	count    int      // of rows
	expires  storage.Time
	// replace: this is everything that is known, and all older segments go first.
	replace bool
}

const (
	ledgerPending  = 8 << 20
	ledgerSegment  = 128 << 10 // bytes of a segment before compression, but for its last entry
	ledgerCommit   = 1 << 20   // bytes of rows in one commit, but for its last scope
	ledgerRate     = 4 << 20   // bytes of rows a second, about 2,000 new turns: more fills ledgerPending, and is dropped
	ledgerSegments = 256       // more of them are rewritten as few when a scope is loaded
	ledgerDelay    = 250 * time.Millisecond
	ledgerLoads    = 8
	ledgerRereads  = 4 // of a scope that is being written to; then what may be missing counts as not kept
	ledgerRetry    = time.Second
	ledgerLoadMax  = 10 * time.Second
)

func newLedgerStore(local storage.Local, log *slog.Logger) *ledgerStore {
	return &ledgerStore{
		local: local, log: log, pending: map[storage.Scope]*unsaved{}, writing: map[storage.Scope]*unsaved{},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, ledgerLoads), most: ledgerPending,
	}
}

// fit lowers the bounds for a ledger of maxBytes in memory: what waits is no more than that, and loads, each of up to a quarter of
// it, hold no more than that together. It comes before all else.
func (st *ledgerStore) fit(maxBytes int64) {
	st.most = int(min(maxBytes, ledgerPending))
	st.slots = make(chan struct{}, max(min(maxBytes>>20, ledgerLoads), 1))
}

// spares is how many segments are kept to be used again.
func (st *ledgerStore) spares() int { return st.most / 8 / ledgerSegment }

// put notes the newest state of an entry.
func (st *ledgerStore) put(scope storage.Scope, h chainHash, e *entry, expires storage.Time) {
	st.mu.Lock()
	if st.size < st.most {
		st.add(st.unsaved(scope), h, e, expires)
	} else {
		st.dropped.Add(1) // and the scope takes no room
	}
	st.mu.Unlock()
	st.signal()
}

// unsaved returns what is pending of scope. Needs st.mu.
func (st *ledgerStore) unsaved(scope storage.Scope) *unsaved {
	u := st.pending[scope]
	if u == nil {
		u = &unsaved{}
		st.pending[scope] = u
	}
	return u
}

// add needs st.mu.
func (st *ledgerStore) add(u *unsaved, h chainHash, e *entry, expires storage.Time) {
	if st.size >= st.most {
		st.dropped.Add(1)
		return
	}
	last := len(u.segments) - 1
	if last < 0 || len(u.segments[last]) >= ledgerSegment {
		u.segments = append(u.segments, st.emptySegment())
		last++
	}
	before := len(u.segments[last])
	u.segments[last] = appendRow(u.segments[last], h, e)
	n := len(u.segments[last]) - before
	u.size += n
	u.count++
	st.size += n
	u.expires = max(u.expires, expires)
}

// emptySegment needs st.mu.
func (st *ledgerStore) emptySegment() (b []byte) {
	if n := len(st.spare); n > 0 {
		b, st.spare = st.spare[n-1], st.spare[:n-1]
	}
	return b
}

// replace notes everything that is known of a scope, in the place of all that is stored of it.
func (st *ledgerStore) replace(scope storage.Scope, entries map[chainHash]*entry, ttl time.Duration) {
	st.mu.Lock()
	st.drop(scope)
	u := st.unsaved(scope) // there even where nothing is left
	u.replace = true
	for h, e := range entries {
		st.add(u, h, e, storage.TimeOf(lastUse(e).Add(ttl)))
	}
	st.mu.Unlock()
	st.signal()
}

// drop forgets what is pending of a scope. Needs st.mu.
func (st *ledgerStore) drop(scope storage.Scope) {
	if u := st.pending[scope]; u != nil {
		st.size -= u.size
		delete(st.pending, scope)
	}
}

// run writes until ctx ends, then once more, then waits for loads.
func (st *ledgerStore) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-st.wake:
			pause(ctx, ledgerDelay)
			for more := true; more && ctx.Err() == nil; {
				var n int
				if n, more = st.commit(ctx); n < 0 {
					pause(ctx, ledgerRetry)
					st.signal()
				} else if more {
					pause(ctx, time.Duration(n)*time.Second/ledgerRate-ledgerDelay)
				}
			}
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	st.flush(last)
	st.loads.Wait()
}

// guard is Handler.guard for this goroutine's work.
func (st *ledgerStore) guard(what string, then func()) {
	if p := recover(); p != nil {
		st.log.Error("panic", "in", what, "stack", string(debug.Stack()))
		then()
	}
}

func (st *ledgerStore) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// flush writes what is pending; false means that the store refused and what it refused is pending again.
func (st *ledgerStore) flush(ctx context.Context) (done bool) {
	for {
		n, more := st.commit(ctx)
		if !more {
			return n >= 0
		}
	}
}

// commit writes n bytes of what is pending, or none. n < 0 means that the store refused and all is pending again.
func (st *ledgerStore) commit(ctx context.Context) (n int, more bool) {
	st.committing.Lock()
	defer st.committing.Unlock()
	defer st.guard("write ledger", func() {
		st.finish(false)
		n, more = -1, false
	})
	if n = st.take(); n < 0 {
		return 0, false
	}
	err := st.write(ctx)
	more = st.finish(err == nil)
	if err != nil {
		st.log.Debug("write ledger", "error", err)
		return -1, false
	}
	return n, more
}

// finish ends a commit, and says whether there is more to write.
func (st *ledgerStore) finish(written bool) (more bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for scope, u := range st.writing {
		if !written {
			st.restore(scope, u)
		} else {
			for _, segment := range u.segments[:min(len(u.segments), st.spares()-len(st.spare))] {
				if cap(segment) <= 2*ledgerSegment {
					st.spare = append(st.spare, segment[:0])
				}
			}
		}
		delete(st.writing, scope)
		for _, r := range st.reads {
			switch {
			case r.scope != scope:
			case u.replace:
				r.during = replacingCommit
			default:
				r.during = max(r.during, addingCommit)
			}
		}
	}
	st.erasing.settled()
	return len(st.pending) > 0
}

// take moves the pending entries of some scopes to writing, as many as go into one commit, but for those that are held.
// It returns their bytes, -1 where there is nothing to write.
func (st *ledgerStore) take() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	size := 0
	for scope, u := range st.pending {
		if size >= ledgerCommit {
			break
		} else if st.erasing.has(scope) {
			continue
		}
		size += u.size
		st.drop(scope)
		st.writing[scope] = u
	}
	if len(st.writing) == 0 {
		return -1
	}
	return size
}

// restore puts back what could not be written, under what has come since. Needs st.mu.
func (st *ledgerStore) restore(scope storage.Scope, u *unsaved) {
	now := st.pending[scope]
	switch {
	case now == nil:
		st.pending[scope] = u
		st.size += u.size
	case now.replace:
	case st.size+u.size > st.most:
		st.dropped.Add(int64(u.count))
		now.replace = u.replace
	default:
		st.size += u.size
		for _, segment := range now.segments {
			if last := len(u.segments) - 1; last >= 0 && len(u.segments[last])+len(segment) <= ledgerSegment {
				u.segments[last] = append(u.segments[last], segment...)
			} else {
				u.segments = append(u.segments, segment)
			}
		}
		now.segments = u.segments
		now.size, now.count = now.size+u.size, now.count+u.count
		now.expires, now.replace = max(now.expires, u.expires), u.replace
	}
}

// write stores what is in writing. Where it replaces, the old segments go first: what is forgotten must not come back,
// what is lost only costs cache.
func (st *ledgerStore) write(ctx context.Context) error {
	var all []storage.Record
	spans := make(map[storage.Scope][2]int, len(st.writing)) // of each in all
	for scope, u := range st.writing {                       // only a commit changes it
		if u.replace {
			if err := st.clear(ctx, scope); err != nil && !errors.Is(err, storage.ErrDamaged) {
				return err
			}
		}
		from := len(all)
		for _, rows := range u.segments {
			all = append(all, storage.Record{
				Bucket: storage.BucketLedger, Scope: scope, Key: st.segmentKey(), Value: s2.Encode(nil, rows), ExpiresAt: u.expires,
			})
		}
		spans[scope] = [2]int{from, len(all)}
	}
	err := st.putRecords(ctx, all)
	if !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	for scope, span := range spans { // one has lost its key: the others don't wait for it
		switch err := st.putRecords(ctx, all[span[0]:span[1]]); {
		case errors.Is(err, storage.ErrDamaged):
			st.dropped.Add(int64(st.writing[scope].count))
		case err != nil:
			return err
		}
	}
	return nil
}

func (st *ledgerStore) putRecords(ctx context.Context, records []storage.Record) error {
	if len(records) == 0 {
		return nil
	}
	return st.local.PutRecords(ctx, records)
}

// clear deletes the segments of a scope.
func (st *ledgerStore) clear(ctx context.Context, scope storage.Scope) error {
	for {
		page, err := st.local.Records(ctx, storage.BucketLedger, scope, "", storage.MaxRecords)
		if err != nil || len(page.Records) == 0 {
			return err
		}
		refs := make([]storage.RecordRef, 0, len(page.Records))
		for _, r := range page.Records {
			refs = append(refs, r.Ref())
		}
		if err := st.local.DeleteRecords(ctx, refs); err != nil {
			return err
		}
	}
}

// segmentKey names the next segment, so that names are in order of writing.
func (st *ledgerStore) segmentKey() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.segment = max(st.segment+1, time.Now().UnixMicro())
	return fmt.Sprintf("%016x", st.segment)
}
