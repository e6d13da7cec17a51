package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/storage"
)

// store keeps the ledger across restarts, off the hot path. The changes of a
// scope are written at once, with all others that wait, as records called
// segments; of an entry that is in several segments the newest counts. An
// answer ends only when what was inserted for it is written, or the writer is
// behind.
type store struct {
	local storage.Local
	log   *slog.Logger

	committing sync.Mutex // one commit at a time; taken before mu

	mu      sync.Mutex
	pending map[storage.Scope]*unsaved
	writing map[storage.Scope]*unsaved // taken from pending, not committed yet
	paused  map[storage.Scope]int      // calls of pauseWrites that have not resumed
	settled chan struct{}              // closed when a commit ends; nil = nobody waits
	reads   []*reading                 // at most as many as there are slots
	size    int                        // bytes pending
	maxSize int                        // of size; beyond it entries are dropped and counted
	segment int64                      // the last segment's key
	spare   [][]byte                   // segments to use again, at most an eighth of maxSize
	wake    chan struct{}

	behind atomic.Bool // a request has waited in vain since the last commit

	loads   sync.WaitGroup
	slots   chan struct{} // concurrent loads
	dropped atomic.Int64
}

// unsaved are the changes of one scope that wait to be written.
type unsaved struct {
	segments [][]byte // rows as appendRow writes them; the last row of an entry counts
	size     int      // bytes of segments
	count    int      // of rows
	expires  storage.Time
	tickets  []ticket // to close once it is written
	// replace: this is everything that is known, and all older segments are
	// deleted first.
	replace bool
	// compact: the same, but nothing has to go: older segments are deleted
	// afterwards.
	compact bool
}

// ticket is closed once what it was given for is in the store.
type ticket chan struct{}

const (
	maxPending  = 8 << 20
	segmentSize = 128 << 10            // bytes of a segment before compression, except for its last entry
	commitSize  = 1 << 20              // bytes of rows in one commit, except for its last scope
	commitRate  = 4 << 20              // bytes of rows a second, about 2,000 new turns; more fills maxPending
	maxSegments = 256                  // of a scope; more are rewritten as few when it is loaded
	compactAt   = 1024                 // saves of a scope, after which its segments are rewritten as few
	commitDelay = 2 * time.Millisecond // lets requests that come together share a commit
	retryDelay  = time.Second
	maxLoads    = 8
	maxRereads  = 4 // of a scope that is being written to; then it counts as partly read
	loadTimeout = 10 * time.Second
)

// newStore returns a store for a ledger of at most maxBytes in memory. No more
// than that waits to be written, and concurrent loads, each of up to a quarter
// of it, hold no more than that together.
func newStore(local storage.Local, log *slog.Logger, maxBytes int64) *store {
	return &store{
		local: local, log: log, pending: map[storage.Scope]*unsaved{}, writing: map[storage.Scope]*unsaved{},
		paused: map[storage.Scope]int{}, wake: make(chan struct{}, 1),
		maxSize: int(min(maxBytes, maxPending)), slots: make(chan struct{}, max(min(maxBytes>>20, maxLoads), 1)),
	}
}

// maxSpare returns how many segments are kept for reuse.
func (st *store) maxSpare() int { return st.maxSize / 8 / segmentSize }

// put queues the newest state of an entry. It returns nil if it had to drop it.
func (st *store) put(scope storage.Scope, h Hash, e *entry, expires storage.Time) (t ticket) {
	st.mu.Lock()
	if st.size < st.maxSize {
		u := st.unsaved(scope)
		st.add(u, h, e, expires)
		t = u.tickets[0]
	} else {
		st.dropped.Add(1) // without making room for the scope
	}
	st.mu.Unlock()
	st.signal()
	return t
}

// keepsUp reports whether what is put now will be written within moments.
func (st *store) keepsUp() bool {
	if st.behind.Load() {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.size <= commitSize
}

// unsaved returns what is pending of scope. Needs st.mu.
func (st *store) unsaved(scope storage.Scope) *unsaved {
	u := st.pending[scope]
	if u == nil {
		u = &unsaved{tickets: []ticket{make(ticket)}}
		st.pending[scope] = u
	}
	return u
}

// add appends a row. Needs st.mu.
func (st *store) add(u *unsaved, h Hash, e *entry, expires storage.Time) {
	if st.size >= st.maxSize {
		st.dropped.Add(1)
		return
	}
	last := len(u.segments) - 1
	if last < 0 || len(u.segments[last]) >= segmentSize {
		u.segments = append(u.segments, st.newSegment())
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

// newSegment returns an empty segment. Needs st.mu.
func (st *store) newSegment() (b []byte) {
	if n := len(st.spare); n > 0 {
		b, st.spare = st.spare[n-1], st.spare[:n-1]
	}
	return b
}

// replace queues everything that is known of a scope, to replace all that is
// stored of it.
func (st *store) replace(scope storage.Scope, entries map[Hash]*entry, ttl time.Duration) {
	st.mu.Lock()
	st.drop(scope)
	u := st.unsaved(scope) // exists even if nothing is left
	u.replace = true
	for h, e := range entries {
		st.add(u, h, e, storage.TimeOf(e.lastUse().Add(ttl)))
	}
	st.mu.Unlock()
	st.signal()
}

// compact queues all entries of a scope, to be written as few segments instead
// of one for each save. It does nothing while much is waiting.
func (st *store) compact(scope storage.Scope, entries map[Hash]*entry, ttl time.Duration) {
	size := int64(0)
	for _, e := range entries {
		size += e.size()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	before := st.pending[scope]
	if int64(st.size)+size > int64(st.maxSize)/2 || before != nil && before.replace {
		return
	}
	u := &unsaved{tickets: []ticket{make(ticket)}, compact: true}
	if before != nil {
		u.tickets = append(u.tickets, before.tickets...)
		st.drop(scope)
	}
	st.pending[scope] = u
	for h, e := range entries {
		st.add(u, h, e, storage.TimeOf(e.lastUse().Add(ttl)))
	}
}

// drop drops what is pending of a scope. Needs st.mu.
func (st *store) drop(scope storage.Scope) {
	if u := st.pending[scope]; u != nil {
		st.size -= u.size
		delete(st.pending, scope)
	}
}

// run commits until ctx ends, then once more, then waits for loads.
func (st *store) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-st.wake:
			pause(ctx, commitDelay)
			for more := true; more && ctx.Err() == nil; {
				var n int
				if n, more = st.commit(ctx); n < 0 {
					pause(ctx, retryDelay)
					st.signal()
				} else if more {
					pause(ctx, time.Duration(n)*time.Second/commitRate-commitDelay)
				}
			}
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	st.flush(last)
	st.loads.Wait()
}

// guard is deferred around work in goroutines: a panic is logged without its
// value, which may hold content, and the caller falls back to then.
func (st *store) guard(what string, then func()) {
	if p := recover(); p != nil {
		st.log.Error("panic", "in", what, "stack", string(debug.Stack()))
		then()
	}
}

func (st *store) signal() {
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

// flush writes what is pending. It reports false if the store refused; the rest
// is then pending again.
func (st *store) flush(ctx context.Context) (done bool) {
	for {
		n, more := st.commit(ctx)
		if !more {
			return n >= 0
		}
	}
}

// commit writes n bytes of what is pending, or none. n < 0 means that the store
// refused and all is pending again.
func (st *store) commit(ctx context.Context) (n int, more bool) {
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

// finish ends a commit and reports whether there is more to write.
func (st *store) finish(written bool) (more bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for scope, u := range st.writing {
		if !written {
			st.restore(scope, u)
		} else {
			for _, t := range u.tickets {
				close(t)
			}
			st.behind.Store(false)
			for _, segment := range u.segments[:min(len(u.segments), st.maxSpare()-len(st.spare))] {
				if cap(segment) <= 2*segmentSize {
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
	if st.settled != nil {
		close(st.settled)
		st.settled = nil
	}
	return len(st.pending) > 0
}

// take moves pending scopes to writing, as many as go into one commit, except
// for paused ones. It returns their bytes, -1 if there is nothing to write.
func (st *store) take() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	size := 0
	for scope, u := range st.pending {
		if size >= commitSize {
			break
		} else if st.paused[scope] > 0 {
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

// restore puts back what could not be written, below what came since. Needs
// st.mu.
func (st *store) restore(scope storage.Scope, u *unsaved) {
	now := st.pending[scope]
	switch {
	case now == nil:
		st.pending[scope] = u
		st.size += u.size
	case now.replace:
		now.tickets = append(now.tickets, u.tickets...)
	case st.size+u.size > st.maxSize:
		st.dropped.Add(int64(u.count)) // and their tickets with them
		now.replace = u.replace
	default:
		now.tickets = append(now.tickets, u.tickets...)
		st.size += u.size
		for _, segment := range now.segments {
			if last := len(u.segments) - 1; last >= 0 && len(u.segments[last])+len(segment) <= segmentSize {
				u.segments[last] = append(u.segments[last], segment...)
			} else {
				u.segments = append(u.segments, segment)
			}
		}
		now.segments = u.segments
		now.size, now.count = now.size+u.size, now.count+u.count
		now.expires, now.replace = max(now.expires, u.expires), u.replace
		now.compact = now.compact || u.compact
	}
}

// write stores what is in writing. Replaced segments are deleted first: a
// forgotten memory must not come back, while a lost entry only costs cache.
func (st *store) write(ctx context.Context) error {
	var all []storage.Record
	var old []storage.RecordRef
	spans := make(map[storage.Scope][2]int, len(st.writing)) // indexes into all
	for scope, u := range st.writing {                       // only a commit changes it
		if u.replace {
			if err := st.clear(ctx, scope); err != nil && !errors.Is(err, storage.ErrDamaged) {
				return err
			}
		}
		if u.compact {
			refs, err := st.refs(ctx, scope)
			if err != nil {
				return err
			}
			old = append(old, refs...)
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
	if err == nil {
		return st.deleteRecords(ctx, old)
	}
	if !errors.Is(err, storage.ErrDamaged) {
		return err
	}
	for scope, span := range spans { // one scope has lost its key; the others don't wait for it
		switch err := st.putRecords(ctx, all[span[0]:span[1]]); {
		case errors.Is(err, storage.ErrDamaged):
			st.dropped.Add(int64(st.writing[scope].count))
		case err != nil:
			return err
		}
	}
	return nil
}

func (st *store) putRecords(ctx context.Context, records []storage.Record) error {
	if len(records) == 0 {
		return nil
	}
	return st.local.PutRecords(ctx, records)
}

// refs returns the segments of a scope.
func (st *store) refs(ctx context.Context, scope storage.Scope) (all []storage.RecordRef, err error) {
	for after := ""; ; {
		page, err := st.local.Records(ctx, storage.BucketLedger, scope, after, storage.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			all = append(all, r.Ref())
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

func (st *store) deleteRecords(ctx context.Context, refs []storage.RecordRef) error {
	for batch := range slices.Chunk(refs, storage.MaxRecords) {
		if err := st.local.DeleteRecords(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes the segments of a scope.
func (st *store) clear(ctx context.Context, scope storage.Scope) error {
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

// segmentKey returns the key of the next segment. Keys sort in order of
// writing.
func (st *store) segmentKey() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.segment = max(st.segment+1, time.Now().UnixMicro())
	return fmt.Sprintf("%016x", st.segment)
}

// pauseWrites waits until nothing of scope is being written and keeps it so
// until resume is called. What is queued meanwhile waits within the same bound.
func (st *store) pauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error) {
	st.mu.Lock()
	st.paused[scope]++
	st.mu.Unlock()
	resume = func() {
		st.mu.Lock()
		if st.paused[scope]--; st.paused[scope] == 0 {
			delete(st.paused, scope)
		}
		st.mu.Unlock()
		st.signal()
	}
	for {
		st.mu.Lock()
		if st.writing[scope] == nil {
			st.mu.Unlock()
			return resume, nil
		}
		if st.settled == nil {
			st.settled = make(chan struct{})
		}
		settled := st.settled
		st.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			resume()
			return nil, ctx.Err()
		}
	}
}
