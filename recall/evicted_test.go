package recall

import "testing"

// Evicted indexes count while they wait to be written, and no more of them wait than their share.
func TestEvictedIndexesCount(t *testing.T) {
	src := newDigesting(t, town(1000))
	e := loadedEngine(t, src)
	s := resting(t, e)
	one := evicted{alice, s.ix, s.rest.tally, s.ix.bytes()}
	before := e.held.Load()
	e.cfg.MaxBytes = 2*evictedShare*one.bytes + 1
	for range maxEvicted {
		e.keepEvicted(one)
	}
	if n, held := len(e.evictedIndexes), e.held.Load()-before; n != 2 || held != 2*one.bytes {
		t.Errorf("%d indexes wait and count %d bytes, want 2 and %d", n, held, 2*one.bytes)
	}
	e.saveEvicted(t.Context())
	if got := e.Stats(); got.Saved != 2 || e.held.Load() != before || e.unwritten.Load() != 0 {
		t.Errorf("after writing %+v, %d bytes count more than before", got, e.held.Load()-before)
	}
}
