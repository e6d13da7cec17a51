package proxy

import (
	"context"
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

	mu      sync.Mutex
	pending map[storage.Scope]*unsaved
	writing map[storage.Scope]*unsaved // taken from pending, not committed yet
	size    int                        // bytes of what is pending; at ledgerPending new entries are dropped and counted
	segment int64
	wake    chan struct{}

	loads   sync.WaitGroup
	slots   chan struct{} // loads at once
	dropped atomic.Int64
}

// unsaved is what of one scope waits to be written.
type unsaved struct {
	entries map[chainHash][]byte // encoded
	expires storage.Time
	// replace: entries is everything that is known, and all older segments go first.
	replace bool
}

const (
	ledgerPending  = 8 << 20
	ledgerSegment  = 128 << 10 // bytes of a segment, but for its last entry
	ledgerSegments = 256       // more of them are rewritten as few when a scope is loaded
	ledgerDelay    = 250 * time.Millisecond
	ledgerLoads    = 8
	ledgerRetry    = time.Second
	ledgerLoadMax  = 10 * time.Second
)

func newLedgerStore(local storage.Local, log *slog.Logger) *ledgerStore {
	return &ledgerStore{
		local: local, log: log, pending: map[storage.Scope]*unsaved{}, writing: map[storage.Scope]*unsaved{},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, ledgerLoads),
	}
}

// put notes the newest state of an entry.
func (st *ledgerStore) put(scope storage.Scope, h chainHash, value []byte, expires storage.Time) {
	st.mu.Lock()
	st.add(scope, h, value, expires)
	st.mu.Unlock()
	st.signal()
}

// add needs st.mu.
func (st *ledgerStore) add(scope storage.Scope, h chainHash, value []byte, expires storage.Time) *unsaved {
	u := st.pending[scope]
	if u == nil {
		u = &unsaved{entries: map[chainHash][]byte{}}
		st.pending[scope] = u
	}
	old, known := u.entries[h]
	grown := st.size + len(value) - len(old)
	if !known && grown > ledgerPending {
		st.dropped.Add(1)
		return u
	}
	st.size = grown
	u.entries[h] = value
	u.expires = max(u.expires, expires)
	return u
}

// replace notes everything that is known of a scope, in the place of all that is stored of it.
func (st *ledgerStore) replace(scope storage.Scope, entries map[chainHash]*entry, ttl time.Duration) {
	st.mu.Lock()
	st.drop(scope)
	u := st.add(scope, chainHash{}, nil, 0) // there even where nothing is left
	delete(u.entries, chainHash{})
	u.replace = true
	for h, e := range entries {
		st.add(scope, h, encodeEntry(e), storage.TimeOf(lastUse(e).Add(ttl)))
	}
	st.mu.Unlock()
	st.signal()
}

// drop forgets what is pending of a scope. Needs st.mu.
func (st *ledgerStore) drop(scope storage.Scope) {
	if u := st.pending[scope]; u != nil {
		for _, v := range u.entries {
			st.size -= len(v)
		}
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
			if !st.flush(ctx) {
				pause(ctx, ledgerRetry)
				st.signal()
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
	defer st.guard("write ledger", func() { done = false })
	for {
		scope, u := st.take()
		if u == nil {
			return true
		}
		err := st.write(ctx, scope, u)
		st.mu.Lock()
		delete(st.writing, scope)
		st.mu.Unlock()
		if err != nil {
			st.restore(scope, u)
			st.log.Debug("write ledger", "error", err)
			return false
		}
	}
}

// take returns one scope's pending entries, nil where there are none left.
func (st *ledgerStore) take() (storage.Scope, *unsaved) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for scope, u := range st.pending {
		st.drop(scope)
		st.writing[scope] = u
		return scope, u
	}
	return storage.Scope{}, nil
}

// restore puts back what could not be written, under what has come since.
func (st *ledgerStore) restore(scope storage.Scope, u *unsaved) {
	st.mu.Lock()
	defer st.mu.Unlock()
	now := st.pending[scope]
	if now != nil && now.replace {
		return
	}
	for h, v := range u.entries {
		if now == nil || now.entries[h] == nil {
			st.add(scope, h, v, u.expires)
		}
	}
	if u.replace {
		st.add(scope, chainHash{}, nil, 0).replace = true
		delete(st.pending[scope].entries, chainHash{})
	}
}

// write stores u. Where it replaces, the old segments go first: what is forgotten must not come back, what is lost only
// costs cache.
func (st *ledgerStore) write(ctx context.Context, scope storage.Scope, u *unsaved) error {
	if u.replace {
		if err := st.clear(ctx, scope); err != nil {
			return err
		}
	}
	var records []storage.Record
	var b []byte
	end := func() {
		if len(b) > 0 {
			records = append(records, storage.Record{
				Bucket: storage.BucketLedger, Scope: scope, Key: st.segmentKey(), Value: s2.Encode(nil, b), ExpiresAt: u.expires,
			})
			b = nil
		}
	}
	for h, v := range u.entries {
		b = appendSegment(b, h, v)
		if len(b) >= ledgerSegment {
			end()
		}
	}
	end()
	if len(records) == 0 {
		return nil
	}
	return st.local.PutRecords(ctx, records)
}

// clear deletes the segments of a scope.
func (st *ledgerStore) clear(ctx context.Context, scope storage.Scope) error {
	for {
		page, err := st.local.Records(ctx, storage.BucketLedger, scope, "", storage.MaxPage)
		if err != nil || len(page.Records) == 0 {
			return err
		}
		refs := make([]storage.RecordRef, 0, len(page.Records))
		for _, r := range page.Records {
			refs = append(refs, storage.RecordRef{Bucket: r.Bucket, Scope: r.Scope, Key: r.Key})
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

// load reads a scope's entries in the background. Callers wait on s.loaded, as long as they care to.
func (st *ledgerStore) load(l *ledger, s *scopeLedger) {
	st.loads.Go(func() {
		defer close(s.loaded)
		defer st.guard("load ledger", func() { s.err = storage.ErrUnavailable })
		select {
		case st.slots <- struct{}{}:
			defer func() { <-st.slots }()
		case <-time.After(ledgerLoadMax):
			s.err = storage.ErrUnavailable
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ledgerLoadMax)
		defer cancel()
		entries := map[chainHash]*entry{}
		read, segments, partial := int64(0), 0, false
		for after := ""; ; {
			page, err := st.local.Records(ctx, storage.BucketLedger, s.scope, after, storage.MaxPage)
			if err != nil {
				s.err = err
				return
			}
			for _, r := range page.Records {
				segments++
				n, err := readSegment(r.Value, entries)
				if err != nil {
					st.dropped.Add(1)
					partial = true
				}
				if read += n; read > l.cfg.MaxBytes/2 { // more than half of all memory for one scope
					read -= shrink(entries)
					partial = true
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		st.mu.Lock()
		for _, u := range [...]*unsaved{st.writing[s.scope], st.pending[s.scope]} { // newer, left by an evicted copy of this scope
			if u == nil {
				continue
			}
			if u.replace {
				clear(entries)
			}
			for h, v := range u.entries {
				if e, err := decodeEntry(v); err == nil {
					entries[h] = e
				}
			}
		}
		st.mu.Unlock()
		size := int64(0)
		for _, e := range entries {
			size += e.size()
		}
		if segments > ledgerSegments {
			st.replace(s.scope, entries, l.cfg.TTL)
			partial = false
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.partial = s.partial || partial
		for h, e := range entries { // what was written while the load went on is newer
			if now := s.entries[h]; now != nil && now.at != nil {
				continue
			} else if now != nil {
				e.variants = append(e.variants, now.variants...)
				for len(e.variants) > maxVariants { // more would not be read back
					size -= e.variants[0].size()
					e.variants = e.variants[1:]
				}
			}
			s.entries[h] = e
		}
		s.confirmed = s.confirmed || segments > 0 || len(entries) > 0
		l.charge(s, size)
	})
}
