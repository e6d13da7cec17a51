package ledger

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/storage"
)

// store keeps the ledger across restarts, off the hot path. A row goes into the
// journal at once, and to the store with all others that wait, as records
// called segments, a commit at a time; of an entry that is in several segments
// the newest counts. An answer ends only when what was inserted for it is in
// the journal, or that is behind.
type store struct {
	disk segments
	log  *slog.Logger

	committing chan struct{} // one commit at a time; taken before mu

	mu      sync.Mutex
	journal *journal // nil = none
	pending map[groupKey]*unsaved
	writing map[groupKey]*unsaved // taken from pending, not committed yet
	tasks   map[storage.Scope]*task
	index   rootIndex
	working storage.Scope         // whose task is under way; zero = none
	paused  map[storage.Scope]int // calls of pauseWrites that have not resumed
	settled chan struct{}         // closed when a commit ends; nil = nobody waits
	reads   []*reading            // at most as many as the disk has slots
	size    int                   // bytes pending
	maxSize int                   // of size; beyond it entries are dropped and counted
	spare   [][]byte              // segments to use again, at most an eighth of maxSize
	wake    chan struct{}

	behind atomic.Bool // a request has waited in vain since the journal last wrote

	loads   sync.WaitGroup
	dropped atomic.Int64
	told    atomic.Int64 // what unsavedBytes has returned last
}

// unsaved are the changes of one group that wait to be written.
type unsaved struct {
	segments [][]byte // rows as appendRow writes them; the last row of an entry counts
	size     int      // bytes of segments
	count    int      // of rows
	expires  storage.Time
	journal  int  // number of the oldest file of the journal with rows of it
	compact  bool // this is everything that is known: older segments are deleted afterwards
}

const (
	maxPending  = 8 << 20
	segmentSize = 128 << 10 // bytes of a segment before compression, except for its last entry
	commitSize  = 1 << 20   // bytes of rows in one commit, except for its last group
	commitRate  = 4 << 20   // bytes of rows a second, about 2,000 new turns; more fills maxPending
	compactAt   = 64        // segments of a group, after which they are rewritten as few
	commitDelay = 250 * time.Millisecond
	retryDelay  = time.Second
	maxLoads    = 8
	maxRereads  = 4 // of a group that is being written to
	loadTimeout = 10 * time.Second
)

// newStore returns a store for a ledger of at most maxBytes in memory. No more
// than that waits to be written.
func newStore(local storage.Local, log *slog.Logger, cfg Config) *store {
	return &store{
		disk: segments{
			local: local, log: log, ttl: cfg.TTL, slots: make(chan struct{}, max(min(cfg.MaxBytes>>20, maxLoads), 1)), trim: trimmer{limit: cfg.MaxStored},
		},
		log: log, committing: make(chan struct{}, 1), pending: map[groupKey]*unsaved{}, writing: map[groupKey]*unsaved{},
		tasks: map[storage.Scope]*task{}, index: rootIndex{byScope: map[storage.Scope]*roots{}, max: cfg.maxRoots()}, paused: map[storage.Scope]int{},
		wake: make(chan struct{}, 1), maxSize: int(min(cfg.MaxBytes, maxPending)),
	}
}

// open opens the journal in dir, and takes up what it holds.
func (st *store) open(dir string, secret []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.journal != nil {
		return nil
	}
	j, unreadable, err := openJournal(dir, secret, st.restoreRows)
	st.dropped.Add(int64(unreadable))
	if err != nil {
		return err
	}
	st.journal = j
	st.signal()
	return nil
}

// unsavedBytes returns how much waits to be written. While mu is held, which may
// be for as long as a disk hangs, that is what it was before.
func (st *store) unsavedBytes() int64 {
	if st.mu.TryLock() {
		st.told.Store(int64(st.size))
		st.mu.Unlock()
	}
	return st.told.Load()
}

// maxSpare returns how many segments are kept for reuse.
func (st *store) maxSpare() int { return st.maxSize / 8 / segmentSize }

// put queues the newest state of an entry. It returns the batch of the journal
// that it is in, nil where there is none; kept is false if it had to drop it.
func (st *store) put(key groupKey, h Hash, e *entry, expires storage.Time) (b *batch, kept bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	defer st.signal()
	if st.size >= st.maxSize {
		st.dropped.Add(1)
		return nil, false
	}
	u := st.unsaved(key)
	row := st.add(u, h, e, expires)
	if st.journal == nil {
		return nil, true
	}
	b, number := st.journal.append(func(rows []byte) []byte { return appendJournalRow(rows, key, expires, row) })
	u.journal = min(u.journal, number)
	return b, b != nil
}

// unsaved returns what is pending of a group. Needs st.mu.
func (st *store) unsaved(key groupKey) *unsaved {
	u := st.pending[key]
	if u == nil {
		u = &unsaved{journal: math.MaxInt}
		st.pending[key] = u
		st.index.add(key)
	}
	return u
}

// add appends a row, and returns it. Needs st.mu.
func (st *store) add(u *unsaved, h Hash, e *entry, expires storage.Time) []byte {
	segment := st.room(u)
	before := len(*segment)
	*segment = appendRow(*segment, h, e)
	row := (*segment)[before:]
	st.count(u, len(row), expires)
	return row
}

// room returns the segment that the next row of u goes to. Needs st.mu.
func (st *store) room(u *unsaved) *[]byte {
	last := len(u.segments) - 1
	if last < 0 || len(u.segments[last]) >= segmentSize {
		u.segments = append(u.segments, st.newSegment())
		last++
	}
	return &u.segments[last]
}

// count counts a row of n bytes that was added to u. Needs st.mu.
func (st *store) count(u *unsaved, n int, expires storage.Time) {
	u.size += n
	u.count++
	st.size += n
	u.expires = max(u.expires, expires)
}

// restoreRows takes up rows of the journal, whether they have expired or not:
// the clock may be wrong, and the store removes them in time. Needs st.mu.
func (st *store) restoreRows(rows []byte, number int) {
	for d := (decoder{rows}); len(d.rest) > 0; {
		key, expires, row := d.journalRow()
		if d.broken() {
			st.dropped.Add(1)
			return
		}
		if st.size >= st.maxSize {
			st.dropped.Add(1)
			continue
		}
		u := st.unsaved(key)
		segment := st.room(u)
		*segment = append(*segment, row...)
		st.count(u, len(row), expires)
		u.journal = min(u.journal, number)
	}
}

// newSegment returns an empty segment. Needs st.mu.
func (st *store) newSegment() (b []byte) {
	if n := len(st.spare); n > 0 {
		b, st.spare = st.spare[n-1], st.spare[:n-1]
	}
	return b
}

// compact queues all entries of a group, to be written as few segments instead
// of one for each commit. It does nothing while much is waiting.
func (st *store) compact(key groupKey, entries map[Hash]*entry, ttl time.Duration) {
	size := int64(0)
	for _, e := range entries {
		size += e.size()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if int64(st.size)+size > int64(st.maxSize)/2 {
		return
	}
	u := &unsaved{journal: math.MaxInt, compact: true}
	if before := st.pending[key]; before != nil {
		u.journal = before.journal
		st.drop(key)
	}
	st.pending[key] = u
	for h, e := range entries {
		if e.stored() {
			st.add(u, h, e, storage.TimeOf(e.lastUse().Add(ttl)))
		}
	}
	st.signal()
}

// drop drops what is pending of a group. Needs st.mu.
func (st *store) drop(key groupKey) {
	if u := st.pending[key]; u != nil {
		st.size -= u.size
		delete(st.pending, key)
	}
}

// run commits until ctx ends, then once more, then waits for loads.
func (st *store) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-st.wake:
			pause(ctx, commitDelay) // what comes together shares a commit
			for more := true; more && ctx.Err() == nil; {
				var n int
				if n, more = st.commit(ctx); n < 0 {
					pause(ctx, retryDelay)
					st.signal()
				} else if more {
					pause(ctx, time.Duration(n)*time.Second/commitRate)
				}
			}
			st.disk.trimStored(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	st.flush(last)
	st.loads.Wait()
	st.mu.Lock()
	j := st.journal
	st.mu.Unlock()
	if j != nil {
		j.close(retryDelay)
	}
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

// commit does the tasks that wait and writes n bytes of what is pending. n < 0
// means that the store refused and all is pending again.
func (st *store) commit(ctx context.Context) (n int, more bool) {
	select {
	case st.committing <- struct{}{}:
		defer func() { <-st.committing }()
	case <-ctx.Done():
		return -1, false
	}
	defer st.guard("write ledger", func() {
		st.finish(false)
		n, more = -1, false
	})
	if err := st.doTasks(ctx); err != nil {
		st.log.Debug("write ledger", "error", err)
		return -1, false
	}
	n = st.take()
	err := st.write(ctx)
	more = st.finish(err == nil)
	if err != nil {
		st.log.Debug("write ledger", "error", err)
		return -1, false
	}
	return n, more && n > 0
}

// finish ends a commit and reports whether there is more to write.
func (st *store) finish(written bool) (more bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for key, u := range st.writing {
		if !written {
			st.restore(key, u)
		} else {
			for _, segment := range u.segments[:min(len(u.segments), st.maxSpare()-len(st.spare))] {
				if cap(segment) <= 2*segmentSize {
					st.spare = append(st.spare, segment[:0])
				}
			}
		}
		delete(st.writing, key)
		for _, r := range st.reads {
			r.stale = r.stale || r.key == key
		}
	}
	st.working = storage.Scope{}
	st.settle()
	if st.journal != nil {
		oldest := math.MaxInt
		for _, u := range st.pending {
			oldest = min(oldest, u.journal)
		}
		st.journal.release(oldest, len(st.pending) == 0)
	}
	return len(st.pending) > 0
}

// settle tells who waits that a commit, or a part of it, has ended. Needs
// st.mu.
func (st *store) settle() {
	if st.settled != nil {
		close(st.settled)
		st.settled = nil
	}
}

// take moves pending groups to writing, as many as go into one commit, except
// for those of paused scopes, and returns their bytes.
func (st *store) take() (size int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for key, u := range st.pending {
		if size >= commitSize {
			break
		} else if st.paused[key.scope] > 0 {
			continue
		}
		size += u.size
		st.drop(key)
		st.writing[key] = u
	}
	if st.journal != nil && size > 0 {
		st.journal.next()
	}
	return size
}

// restore puts back what could not be written, below what came since. Needs
// st.mu.
func (st *store) restore(key groupKey, u *unsaved) {
	if t := st.tasks[key.scope]; t != nil { // given since it was taken
		if t.erase {
			return
		}
		st.size += u.size
		st.scrub(u, t.ids)
		st.size -= u.size
	}
	now := st.pending[key]
	switch {
	case now == nil:
		st.pending[key] = u
		st.size += u.size
	case now.compact:
		now.journal = min(now.journal, u.journal)
	case st.size+u.size > st.maxSize:
		st.dropped.Add(int64(u.count))
	default:
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
		now.expires, now.journal = max(now.expires, u.expires), min(now.journal, u.journal)
		now.compact = now.compact || u.compact
	}
}

// refused reports whether the store refuses a scope, whatever is put there.
func refused(err error) bool {
	return errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrTooManyUsers)
}

// write stores what is in writing.
func (st *store) write(ctx context.Context) error {
	var all []storage.Record
	var old []storage.RecordRef
	spans := make(map[groupKey][2]int, len(st.writing)) // indexes into all
	for key, u := range st.writing {                    // only a commit changes it
		if u.compact {
			refs, err := st.disk.refs(ctx, key)
			if err != nil && !errors.Is(err, storage.ErrDamaged) {
				return err
			}
			old = append(old, refs...)
		}
		from := len(all)
		for _, rows := range u.segments {
			all = append(all, storage.Record{
				Bucket: storage.BucketLedger, Scope: key.scope, Key: st.disk.name(key.root), Value: s2.Encode(nil, rows), ExpiresAt: u.expires,
			})
		}
		spans[key] = [2]int{from, len(all)}
	}
	err := st.disk.put(ctx, all)
	if err == nil {
		return st.disk.remove(ctx, old)
	}
	if !refused(err) {
		return err
	}
	for key, span := range spans { // one scope has lost its key, or is one too many; the others don't wait for it
		switch err := st.disk.put(ctx, all[span[0]:span[1]]); {
		case refused(err):
			st.dropped.Add(int64(st.writing[key].count))
		case err != nil:
			return err
		}
	}
	return nil
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
		if !st.busy(scope) {
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

// busy reports whether something of scope is being written. Needs st.mu.
func (st *store) busy(scope storage.Scope) bool {
	for key := range st.writing {
		if key.scope == scope {
			return true
		}
	}
	return st.working == scope
}
