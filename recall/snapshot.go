package recall

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Snapshots of indexes make the next load fast. An engine whose source is a SnapshotStore writes one where an index has
// changed and come to rest, when it is evicted, and when the engine closes: always off the path of requests, one at a
// time. It loads one only if the store holds the very memories that it was made of; else, as where there is none or it is
// damaged, the index is built from the records.
//
// A snapshot holds texts, so what was forgotten must not stay in it: after Forget it is deleted within a second, after Erased it is
// deleted, and it expires with the first of its memories.

// SnapshotStore is what the source of an engine offers for it to keep snapshots. What its Record returns is what was put, to the bit,
// or [storage.ErrDamaged]: nothing else is looked at but samples.
type SnapshotStore interface {
	storage.Digester
	storage.RecordReader
	PutRecords(ctx context.Context, records []storage.Record) error
	DeleteRecords(ctx context.Context, refs []storage.RecordRef) error
}

const (
	snapshotKey = "recall-" // and the number of the part
	// snapshotLeast is the smallest index, in memories, that has a snapshot. A smaller one is built from its records in 5 to 11 ms,
	// at a third of what writing a snapshot takes: a hundred users of a sidecar that ends would make it write for seconds.
	snapshotLeast = 1024
	// A changed index is written once it has been left alone for Config.SnapshotAfter if at least one in snapshotShare of its
	// turns is new, and after snapshotLate times that however little has changed.
	snapshotShare = 64
	snapshotLate  = 20
	// snapshotTick is how often the engine looks what there is to do.
	snapshotTick = time.Second
	// snapshotTimeout bounds one write, closeTimeout all that Close writes.
	snapshotTimeout = 30 * time.Second
	closeTimeout    = 5 * time.Second
	// maxEvicted is how many evicted indexes may wait to be written, and one in evictedShare the share of Config.MaxBytes that they
	// may take; one more is dropped without a snapshot.
	maxEvicted   = 4
	evictedShare = 4
	// maxStale bounds the scopes whose snapshots wait to be deleted.
	maxStale = 10_000
)

// evicted is an index that is no longer held but not written yet.
type evicted struct {
	scope storage.Scope
	ix    *index
	tally *tally
	bytes int64 // of ix
}

// rest is what a scope must know of its snapshot; the scope's lock guards it.
type rest struct {
	tally    *tally // nil where there are no snapshots
	changes  int    // since the last snapshot
	changed  time.Time
	unsaved  bool // there are changes, or there is no snapshot
	hopeless bool // the tally is not the store's, or the index not sound: no snapshot until something changes
}

// touch notes a change.
func (r *rest) touch(n int) {
	r.changes += n
	r.changed, r.unsaved, r.hopeless = time.Now(), true, false
}

// due reports whether it is time to write.
func (r *rest) due(ix *index, after time.Duration, now time.Time) bool {
	if !r.unsaved || r.hopeless || !(blobWriter{ix}).snapshotable() {
		return false
	}
	quiet := now.Sub(r.changed)
	return quiet >= after && (r.changes*snapshotShare >= ix.live || quiet >= snapshotLate*after)
}

// keepSnapshots writes what is due until ctx ends.
func (e *Engine) keepSnapshots(ctx context.Context) {
	tick := time.NewTicker(snapshotTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.deleteStale(ctx)
			e.saveEvicted(ctx)
			e.saveDue(ctx, func(s *scopeIndex) bool { return s.rest.due(s.ix, e.cfg.SnapshotAfter, time.Now()) })
		}
	}
}

// finishSnapshots writes what is left, the most recently used first, as far as time allows.
func (e *Engine) finishSnapshots() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	e.deleteStale(ctx)
	e.saveEvicted(ctx)
	e.saveDue(ctx, func(s *scopeIndex) bool {
		return s.rest.unsaved && !s.rest.hopeless && (blobWriter{s.ix}).snapshotable()
	})
}

// saveDue writes the scopes that are due, the most recently used first. A panic costs that snapshot.
func (e *Engine) saveDue(ctx context.Context, due func(s *scopeIndex) bool) {
	var all []*scopeIndex
	e.scopes.Range(func(_, v any) bool {
		s := v.(*scopeIndex)
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.ix != nil && s.rest.tally != nil && due(s) {
			all = append(all, s)
		}
		return true
	})
	slices.SortFunc(all, func(a, b *scopeIndex) int { return int(b.used.Load() - a.used.Load()) })
	for _, s := range all {
		if ctx.Err() != nil {
			return
		}
		e.saveScope(ctx, s)
	}
}

func (e *Engine) saveScope(ctx context.Context, s *scopeIndex) {
	s.mu.RLock() // the copy takes a tenth of a millisecond for 10,000 memories
	if s.ix == nil || s.gone {
		s.mu.RUnlock()
		return
	}
	ix, t, changes, changed := s.ix.capture(), s.rest.tally.clone(), s.rest.changes, s.rest.changed
	s.mu.RUnlock()
	s.mu.Lock()
	s.rest.changes -= changes
	s.rest.unsaved = s.rest.changes > 0 || s.rest.changed != changed
	s.mu.Unlock()
	err := e.save(ctx, s.scope, ix, t, func() bool {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.gone
	})
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Nothing has changed since, so no Add is on its way; nor will what can't be searched be so in a second.
	if (errors.Is(err, errOtherMemories) || errors.Is(err, errBlob)) && !s.rest.unsaved {
		s.rest.hopeless = true
		return
	}
	s.rest.touch(changes) // again after as long a rest, not at every tick of an outage
}

// saveEvicted writes the indexes that were evicted.
func (e *Engine) saveEvicted(ctx context.Context) {
	for {
		select {
		case v := <-e.evictedIndexes:
			_ = e.save(ctx, v.scope, v.ix, v.tally, func() bool { return false }) // it was logged
			e.wrote(v)
		default:
			return
		}
	}
}

// errOtherMemories: the store holds other memories than the index was made of.
var errOtherMemories = errors.New("the store holds other memories than the index")

// save writes a snapshot. If the scope is erased meanwhile, or its memories change, the snapshot goes again.
func (e *Engine) save(ctx context.Context, scope storage.Scope, ix *index, t *tally, gone func() bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic")
		}
		if err != nil && !errors.Is(err, errOtherMemories) {
			e.log.Warn("recall index snapshot not written", "error", err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	done, ok := e.erasing.writes(ctx, scope)
	if !ok {
		return ctx.Err()
	}
	defer done()
	current := func() (bool, error) {
		d, err := e.snapshots.Digest(ctx, scope)
		return d == t.digest, err
	}
	same, err := current()
	if err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	if !same {
		return errOtherMemories
	}
	now := storage.TimeOf(time.Now())
	expired := func(i int32) bool {
		at := ix.expires(i)
		return at != 0 && at <= now
	}
	if lapsed := (blobWriter{ix}).anyMemory(expired); ix.dead > 0 || lapsed {
		ix = compactor{ix}.rebuilt(len(ix.turns), expired)
	}
	ix.learnOfEnough() // of a copy, or of what nobody asks any more
	if gone() {
		return nil
	}
	until := (blobWriter{ix}).firstExpiry()
	parts := (blobWriter{ix}).encode(t, rand.Uint64())
	if err := verify(parts); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	var records []storage.Record
	for i, part := range parts {
		records = append(records, storage.Record{
			Bucket: storage.BucketIndex, Scope: scope, Key: partKey(i), Value: part, ExpiresAt: until,
		})
	}
	if err := e.snapshots.PutRecords(ctx, records); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	e.saved.Add(1)
	same, err = current()
	keep := 0
	if err == nil && same && !gone() {
		keep = len(records) // a larger one that was there before may have left parts
	}
	if err := errors.Join(err, e.deleteSnapshot(ctx, scope, keep)); err != nil {
		return fmt.Errorf("digest or delete: %w", err)
	}
	if !same {
		return errOtherMemories
	}
	return nil
}

func partKey(n int) string { return fmt.Sprintf("%s%04d", snapshotKey, n) }

// deleteSnapshot deletes the parts of a snapshot from a number on. It names all that there could be, since a snapshot is written in one
// commit: to list them would unseal them.
func (e *Engine) deleteSnapshot(ctx context.Context, scope storage.Scope, from int) error {
	var refs []storage.RecordRef
	for n := from; n < storage.MaxRecords; n++ {
		refs = append(refs, storage.RecordRef{Bucket: storage.BucketIndex, Scope: scope, Key: partKey(n)})
	}
	if len(refs) == 0 {
		return nil
	}
	return e.snapshots.DeleteRecords(ctx, refs)
}

// stale notes that a scope's snapshot holds what was forgotten.
func (e *Engine) stale(scope storage.Scope) {
	if e.snapshots == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.staleScopes) < maxStale {
		e.staleScopes[scope] = struct{}{}
	}
}

// Erased deletes a scope's snapshot at once where a person wants memories gone: a crash in the second that Forget takes
// would keep their text until the scope is loaded again.
func (e *Engine) Erased(scope storage.Scope, _ ...string) {
	if e.snapshots == nil {
		return
	}
	ctx, cancel := context.WithTimeout(e.life, snapshotTimeout)
	defer cancel()
	if err := e.deleteSnapshot(ctx, scope, 0); err != nil {
		e.stale(scope)
	}
}

// deleteStale deletes the snapshots that hold what was forgotten. Those that the store does not delete now are tried again.
func (e *Engine) deleteStale(ctx context.Context) {
	e.mu.Lock()
	all := e.staleScopes
	e.staleScopes = map[storage.Scope]struct{}{}
	e.mu.Unlock()
	for scope := range all {
		if err := e.deleteSnapshot(ctx, scope, 0); err != nil {
			e.stale(scope)
		}
	}
}

// restore loads an index from its snapshot. It returns none where there is no snapshot, where the memories have changed
// since, and where anything about it is wrong, which is counted.
func (e *Engine) restore(ctx context.Context, scope storage.Scope) (*index, *tally) {
	ix, t, err := e.readSnapshot(ctx, scope)
	switch {
	case err == nil && ix != nil:
		e.restored.Add(1)
		return ix, t
	case errors.Is(err, errBlob):
		e.rejected.Add(1)
		e.log.Warn("recall index snapshot not usable: the index is built from the memories", "error", err)
	case err != nil && !errors.Is(err, errOtherMemories):
		e.log.Debug("recall index snapshot not read", "error", err)
	}
	return nil, nil
}

func (e *Engine) readSnapshot(ctx context.Context, scope storage.Scope) (ix *index, t *tally, err error) {
	defer func() {
		if r := recover(); r != nil {
			ix, t, err = nil, nil, errBlob
		}
	}()
	want, err := e.snapshots.Digest(ctx, scope)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	parts := partReader{ctx: ctx, from: e.snapshots, scope: scope}
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
	for range partsAhead { // there is one of chunks, at least
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
	ix.words = e.analyzer
	return ix, t, ix.complete(sampleEvery)
}

// take makes chunks of a part, and returns the lengths of those that are still to come.
func (a *arena) take(part []byte, lengths []int) ([]int, error) {
	for first := true; first || len(part) > 0; first = false {
		if len(lengths) == 0 || lengths[0] <= 0 || lengths[0] > len(part) {
			return nil, errBlob
		}
		n := lengths[0]
		a.chunks = append(a.chunks, part[:n:n])
		a.size += int64(n)
		part, lengths = part[n:], lengths[1:]
	}
	return lengths, nil
}
