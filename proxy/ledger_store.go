package proxy

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// ledgerStore keeps the ledger over restarts, off the hot path: entries are written in batches some time after they
// were made. What a crash takes from it costs cache, never correctness: a turn without an entry gets no block.
type ledgerStore struct {
	local storage.Local
	log   *slog.Logger

	mu      sync.Mutex
	pending map[ledgerKey]storage.Record // newest state of each entry
	size    int                          // bytes of its values; at ledgerPending new entries are dropped and counted
	wake    chan struct{}

	loads   sync.WaitGroup
	slots   chan struct{} // loads at once
	dropped atomic.Int64
}

type ledgerKey struct {
	scope storage.Scope
	h     chainHash
}

const (
	ledgerPending = 8 << 20
	ledgerBatch   = 256
	ledgerDelay   = 250 * time.Millisecond
	ledgerLoads   = 8
	ledgerRetry   = time.Second
	ledgerLoadMax = 10 * time.Second
)

func newLedgerStore(local storage.Local, log *slog.Logger) *ledgerStore {
	return &ledgerStore{
		local: local, log: log, pending: map[ledgerKey]storage.Record{},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, ledgerLoads),
	}
}

func (st *ledgerStore) put(scope storage.Scope, h chainHash, value []byte, expires storage.Time) {
	k := ledgerKey{scope, h}
	st.mu.Lock()
	old, known := st.pending[k]
	if grown := st.size + len(value) - len(old.Value); !known && grown > ledgerPending {
		st.dropped.Add(1)
	} else {
		st.size = grown
		st.pending[k] = storage.Record{Bucket: storage.BucketLedger, Scope: scope, Key: chainText(h), Value: value, ExpiresAt: expires}
	}
	st.mu.Unlock()
	st.signal()
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
func (st *ledgerStore) flush(ctx context.Context) bool {
	for {
		st.mu.Lock()
		batch := make([]storage.Record, 0, min(len(st.pending), ledgerBatch))
		keys := make([]ledgerKey, 0, cap(batch))
		for k, r := range st.pending {
			if len(batch) == cap(batch) {
				break
			}
			batch, keys = append(batch, r), append(keys, k)
			st.size -= len(r.Value)
			delete(st.pending, k)
		}
		st.mu.Unlock()
		if len(batch) == 0 {
			return true
		}
		if err := st.local.PutRecords(ctx, batch); err != nil {
			st.mu.Lock()
			for i, k := range keys {
				if _, newer := st.pending[k]; !newer {
					st.size += len(batch[i].Value)
					st.pending[k] = batch[i]
				}
			}
			st.mu.Unlock()
			st.log.Debug("write ledger", "error", err)
			return false
		}
	}
}

// load reads a scope's entries in the background. Callers wait on s.loaded, as long as they care to.
func (st *ledgerStore) load(l *ledger, s *scopeLedger) {
	st.loads.Go(func() {
		defer close(s.loaded)
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
		size := int64(0)
		for after := ""; ; {
			page, err := st.local.Records(ctx, storage.BucketLedger, s.scope, after, storage.MaxPage)
			if err != nil {
				s.err = err
				return
			}
			for _, r := range page.Records {
				size += st.read(entries, r)
			}
			if after = page.Next; after == "" || size > l.cfg.MaxBytes/2 {
				break // more than half of all memory for one scope: the rest of its turns go without
			}
		}
		st.mu.Lock()
		for k, r := range st.pending { // what an evicted copy of this scope left with the writer is newer
			if k.scope == s.scope {
				size += st.read(entries, r)
			}
		}
		st.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		for h, e := range entries { // what was written while the load went on is newer
			if now := s.entries[h]; now != nil {
				e.variants = append(e.variants, now.variants...)
			}
			s.entries[h] = e
		}
		s.confirmed = s.confirmed || len(entries) > 0
		l.charge(s, size)
	})
}

func (st *ledgerStore) read(entries map[chainHash]*entry, r storage.Record) int64 {
	h, ok := parseChain(r.Key)
	e, err := decodeEntry(r.Value)
	if !ok || err != nil {
		st.dropped.Add(1)
		return 0
	}
	entries[h] = e
	size := int64(0)
	for _, v := range e.variants {
		size += v.size()
	}
	return size
}

func parseChain(s string) (chainHash, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return chainHash{}, false
	}
	var h chainHash
	for i := range 8 {
		h.Hi = h.Hi<<8 | uint64(b[i])
		h.Lo = h.Lo<<8 | uint64(b[8+i])
	}
	return h, true
}
