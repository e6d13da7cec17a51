package recall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// SnapshotStore is a Source in which an engine can keep snapshots. Its Record
// must return exactly what was put, or [storage.ErrDamaged]: a load checks no
// more than samples.
type SnapshotStore interface {
	storage.Digester
	storage.RecordReader
	PutRecords(ctx context.Context, records []storage.Record) error
	DeleteRecords(ctx context.Context, refs []storage.RecordRef) error
}

// snapshotter keeps snapshots of indexes, which make the next load fast. It
// writes one some time after an index has changed, when an index is evicted,
// and when the engine closes: one at a time, and never while a request waits. A
// snapshot is used only if the store holds exactly the memories that it was
// made from. Otherwise, and if it is damaged, the index is built from the
// memories.
//
// Snapshots contain texts, so forgotten ones must not stay in them. A snapshot
// is deleted within a second after Forget and at once after Erased, and it
// expires with the first of its memories.
type snapshotter struct {
	cfg      *Config
	store    SnapshotStore
	log      *slog.Logger
	analyzer *text.Analyzer
	ctx      context.Context // done when the engine closes
	cache    *scopeCache
	pauses   *writePauses

	evicted      chan evictedIndex
	evictedBytes atomic.Int64 // of those in the channel and the one that is being written

	mu    sync.Mutex
	stale map[storage.Scope]struct{} // scopes whose snapshots are to be deleted

	restored, rejected, saved atomic.Int64
}

const (
	snapshotKey = "recall-" // followed by the number of the part
	// minSnapshotMemories is the smallest index that has a snapshot. A smaller
	// one is built from its memories in 5 to 11 ms, a third of the time that it
	// takes to write a snapshot: with a hundred users, the shutdown of a
	// sidecar would take seconds.
	minSnapshotMemories = 1024
	// A changed index is written once it has not changed for
	// Config.SnapshotAfter if at least one in snapshotShare of its turns is
	// new, and after snapshotLate times as long otherwise.
	snapshotShare = 64
	snapshotLate  = 20
	// snapshotInterval is how often the snapshotter checks what is to be done.
	snapshotInterval = time.Second
	// snapshotTimeout bounds one write, closeTimeout all those of Close.
	snapshotTimeout = 30 * time.Second
	closeTimeout    = 5 * time.Second
	// maxEvicted bounds the evicted indexes that wait to be written. They take
	// at most one in evictedShare of Config.MaxBytes. Any more are dropped
	// without a snapshot.
	maxEvicted   = 4
	evictedShare = 4
	// maxStale bounds the scopes whose snapshots wait to be deleted.
	maxStale = 10_000
)

// evictedIndex is an index that was evicted and is not written yet.
type evictedIndex struct {
	scope storage.Scope
	ix    *index
	tally *tally
	bytes int64 // of ix
}

// snapshotState describes a slot's index relative to its snapshot. The slot's
// lock guards it.
type snapshotState struct {
	tally    *tally // nil if there are no snapshots
	changes  int    // memories, since the last snapshot
	changed  time.Time
	unsaved  bool // there are changes, or there is no snapshot
	unusable bool // the store holds other memories, or the index is damaged: no snapshot until the next change
}

// touch records a change of n memories.
func (st *snapshotState) touch(n int) {
	st.changes += n
	st.changed, st.unsaved, st.unusable = time.Now(), true, false
}

// writable reports whether a snapshot of ix can and should be written.
func (st *snapshotState) writable(ix *index) bool {
	return st.tally != nil && st.unsaved && !st.unusable && (blobWriter{ix}).snapshotable()
}

// due reports whether it is time to write a snapshot of ix.
func (st *snapshotState) due(ix *index, after time.Duration, now time.Time) bool {
	if !st.writable(ix) {
		return false
	}
	quiet := now.Sub(st.changed)
	return quiet >= after && (st.changes*snapshotShare >= ix.live || quiet >= snapshotLate*after)
}

// run writes and deletes what is due until ctx is done.
func (p *snapshotter) run(ctx context.Context) {
	tick := time.NewTicker(snapshotInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.deleteStale(ctx)
			p.saveEvicted(ctx)
			p.saveAll(ctx, func(s *slot) bool { return s.saved.due(s.ix, p.cfg.SnapshotAfter, time.Now()) })
		}
	}
}

// finish writes what is left, the most recently used first, until closeTimeout.
func (p *snapshotter) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	p.deleteStale(ctx)
	p.saveEvicted(ctx)
	p.saveAll(ctx, func(s *slot) bool { return s.saved.writable(s.ix) })
}

// saveAll writes the slots that are due, the most recently used first.
func (p *snapshotter) saveAll(ctx context.Context, due func(s *slot) bool) {
	var all []*slot
	p.cache.each(func(s *slot) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.ix != nil && s.saved.tally != nil && due(s) {
			all = append(all, s)
		}
	})
	slices.SortFunc(all, func(a, b *slot) int { return int(b.used.Load() - a.used.Load()) })
	for _, s := range all {
		if ctx.Err() != nil {
			return
		}
		p.saveSlot(ctx, s)
	}
}

func (p *snapshotter) saveSlot(ctx context.Context, s *slot) {
	s.mu.RLock() // the copy takes a tenth of a millisecond for 10,000 memories
	if s.ix == nil || s.dropped {
		s.mu.RUnlock()
		return
	}
	ix, t, changes, changed := s.ix.capture(), s.saved.tally.clone(), s.saved.changes, s.saved.changed
	s.mu.RUnlock()
	s.mu.Lock()
	s.saved.changes -= changes
	s.saved.unsaved = s.saved.changes > 0 || s.saved.changed != changed
	s.mu.Unlock()
	err := p.save(ctx, s.scope, ix, t, func() bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.dropped
	})
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Without a change since, there is no Add that the store has and the index
	// lacks, and a damaged index stays so.
	if (errors.Is(err, errOtherMemories) || errors.Is(err, errBlob)) && !s.saved.unsaved {
		s.saved.unusable = true
		return
	}
	s.saved.touch(changes) // wait as long again, rather than retry at every tick of an outage
}

// keepEvicted queues the index of a slot that is about to be evicted, if it has
// unsaved changes and the queue has room. The caller holds the slot's lock.
func (p *snapshotter) keepEvicted(s *slot) {
	if s.ix == nil || !s.saved.writable(s.ix) {
		return
	}
	p.queue(evictedIndex{s.scope, s.ix, s.saved.tally, s.ix.bytes()})
}

// queue queues an evicted index, which counts in the cache until it is written.
func (p *snapshotter) queue(v evictedIndex) {
	if p.evictedBytes.Load()+v.bytes > p.cfg.MaxBytes/evictedShare {
		return
	}
	p.countEvicted(v.bytes)
	select {
	case p.evicted <- v:
	default:
		p.countEvicted(-v.bytes)
	}
}

func (p *snapshotter) countEvicted(bytes int64) {
	p.evictedBytes.Add(bytes)
	p.cache.bytes.Add(bytes)
}

// saveEvicted writes the queued indexes.
func (p *snapshotter) saveEvicted(ctx context.Context) {
	for {
		select {
		case v := <-p.evicted:
			_ = p.save(ctx, v.scope, v.ix, v.tally, func() bool { return false }) // save has logged it
			p.countEvicted(-v.bytes)
		default:
			return
		}
	}
}

var errOtherMemories = errors.New("the store holds other memories than the index")

// save writes a snapshot. It deletes the snapshot again if the scope is dropped
// or its memories change meanwhile. A panic is an error.
func (p *snapshotter) save(ctx context.Context, scope storage.Scope, ix *index, t *tally, dropped func() bool) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panic")
		}
		if err != nil && !errors.Is(err, errOtherMemories) {
			p.log.Warn("recall index snapshot not written", "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	done, ok := p.pauses.beginWrite(ctx, scope)
	if !ok {
		return ctx.Err()
	}
	defer done()
	current := func() (bool, error) {
		d, err := p.store.Digest(ctx, scope)
		return d == t.digest, err
	}
	same, err := current()
	if err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	if !same {
		return errOtherMemories
	}
	records, err := encodeRecords(scope, ix, t)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if dropped() {
		return nil
	}
	if err := p.store.PutRecords(ctx, records); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	p.saved.Add(1)
	same, err = current()
	keep := 0
	if err == nil && same && !dropped() {
		keep = len(records) // an earlier, larger snapshot may have more
	}
	if err := errors.Join(err, p.delete(ctx, scope, keep)); err != nil {
		return fmt.Errorf("digest or delete: %w", err)
	}
	if !same {
		return errOtherMemories
	}
	return nil
}

// encodeRecords returns the records of a snapshot without expired memories. It
// checks that they can be searched.
func encodeRecords(scope storage.Scope, ix *index, t *tally) ([]storage.Record, error) {
	now := storage.Now()
	expired := func(i int32) bool {
		at := ix.expires(i)
		return at != 0 && at <= now
	}
	if anyExpired := (blobWriter{ix}).anyMemory(expired); ix.dead > 0 || anyExpired {
		ix = compactor{ix}.rebuilt(len(ix.turns), expired)
	}
	ix.learnOfEnough() // ix is a copy, or was evicted
	until := (blobWriter{ix}).firstExpiry()
	parts := (blobWriter{ix}).encode(t, rand.Uint64())
	if err := verify(parts); err != nil {
		return nil, err
	}
	var records []storage.Record
	for i, part := range parts {
		records = append(records, storage.Record{
			Bucket: storage.BucketIndex, Scope: scope, Key: partKey(i), Value: part, ExpiresAt: until,
		})
	}
	return records, nil
}

func partKey(n int) string { return fmt.Sprintf("%s%04d", snapshotKey, n) }

// delete deletes the parts of a snapshot from a number on. It names all that
// there could be, since listing them would decrypt them.
func (p *snapshotter) delete(ctx context.Context, scope storage.Scope, from int) error {
	var refs []storage.RecordRef
	for n := from; n < storage.MaxRecords; n++ {
		refs = append(refs, storage.RecordRef{Bucket: storage.BucketIndex, Scope: scope, Key: partKey(n)})
	}
	if len(refs) == 0 {
		return nil
	}
	return p.store.DeleteRecords(ctx, refs)
}

// markStale notes that a scope's snapshot may contain what was forgotten, so
// that it is deleted soon. p may be nil.
func (p *snapshotter) markStale(scope storage.Scope) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stale) < maxStale {
		p.stale[scope] = struct{}{}
	}
}

// deleteStale deletes the stale snapshots. Those that can't be deleted now stay
// marked.
func (p *snapshotter) deleteStale(ctx context.Context) {
	p.mu.Lock()
	all := p.stale
	p.stale = map[storage.Scope]struct{}{}
	p.mu.Unlock()
	for scope := range all {
		if err := p.delete(ctx, scope, 0); err != nil {
			p.markStale(scope)
		}
	}
}

// Erased deletes a scope's snapshot at once. It is called when a person erases
// memories: a crash within the second that Forget takes would keep their texts
// until the scope is loaded again.
func (e *Engine) Erased(scope storage.Scope, _ ...string) {
	p := e.snapshots
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, snapshotTimeout)
	defer cancel()
	if err := p.delete(ctx, scope, 0); err != nil {
		p.markStale(scope)
	}
}

// restore loads an index from its snapshot. It returns nil if there is none, if
// the memories have changed since, and if it is unusable, which is counted.
func (p *snapshotter) restore(ctx context.Context, scope storage.Scope) (*index, *tally) {
	ix, t, err := p.read(ctx, scope)
	switch {
	case err == nil && ix != nil:
		p.restored.Add(1)
		return ix, t
	case errors.Is(err, errBlob):
		p.rejected.Add(1)
		p.log.Warn("recall index snapshot unusable, building the index from the memories", "error", err)
	case err != nil && !errors.Is(err, errOtherMemories):
		p.log.Debug("recall index snapshot not read", "error", err)
	}
	return nil, nil
}

func (p *snapshotter) read(ctx context.Context, scope storage.Scope) (ix *index, t *tally, err error) {
	defer func() {
		if recover() != nil {
			ix, t, err = nil, nil, errBlob
		}
	}()
	want, err := p.store.Digest(ctx, scope)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	parts := partReader{ctx: ctx, from: p.store, scope: scope}
	defer parts.leave()
	defer cancel()
	first, err := parts.next()
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if got := blobDigest(&unpacker{b: first}); got != want {
		return nil, nil, errOtherMemories
	}
	for range partsAhead { // the second part and at least one of chunks
		parts.ask()
	}
	second, err := parts.next()
	if err != nil {
		return nil, nil, err
	}
	ix, t, chunks, err := decode(first, second)
	for left := len(partsOf(chunks)); err == nil && left > 0; left-- {
		for len(parts.asked) < min(left, partsAhead) {
			parts.ask()
		}
		var part []byte
		if part, err = parts.next(); err == nil {
			chunks, err = ix.arena.take(part, chunks)
		}
	}
	if err == nil && len(chunks) > 0 {
		err = errBlob
	}
	if err != nil {
		return nil, nil, err
	}
	ix.words = p.analyzer
	return ix, t, ix.complete(sampleEvery)
}
