package recall

import "testing"

// Evicted indexes count until they are written, and are bounded by their share.
func TestEvictedIndexesCount(t *testing.T) {
	src := newDigesting(t, town(1000))
	e := loadedEngine(t, src)
	s := resting(t, e)
	one := evictedIndex{alice, s.ix, s.saved.tally, s.ix.bytes()}
	before := e.cache.bytes.Load()
	e.cfg.MaxBytes = 2*evictedShare*one.bytes + 1
	for range maxEvicted {
		e.snapshots.queue(one)
	}
	if n, held := len(e.snapshots.evicted), e.cache.bytes.Load()-before; n != 2 || held != 2*one.bytes {
		t.Errorf("%d indexes are queued and count %d bytes, want 2 and %d", n, held, 2*one.bytes)
	}
	e.snapshots.saveEvicted(t.Context())
	if got := e.Stats(); got.Saved != 2 || e.cache.bytes.Load() != before || e.snapshots.evictedBytes.Load() != 0 {
		t.Errorf("after writing %+v, %d bytes count more than before", got, e.cache.bytes.Load()-before)
	}
}
