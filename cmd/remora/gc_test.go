package main

import (
	"runtime"
	"testing"
	"time"
)

func TestMappedFiles(t *testing.T) {
	const mib = 1 << 20
	var m mappedFiles
	for i, tick := range []struct {
		allocs, mapped uint64
		want           bool
	}{
		{20 * mib, 10 * mib, false}, // the start is busy
		{mib / 2, 14 * mib, true},
		{mib / 2, 9 * mib, false}, // what a light load uses
		{mib / 2, 11 * mib, false},
		{mib / 2, 14 * mib, true}, // a user was loaded
		{mib / 2, 11 * mib, false},
		{0, 11 * mib, true}, // it ends
		{0, 3 * mib, false},
		{0, 3 * mib, false},
		{20 * mib, 30 * mib, false},
		{0, 30 * mib, true},
		{0, 6 * mib, false}, // can't be let go of
		{0, 6 * mib, false},
	} {
		if got := m.due(tick.allocs, tick.allocs < idleAllocs, tick.mapped); got != tick.want {
			t.Errorf("tick %d: %t, want %t", i, got, tick.want)
		}
	}
}

func TestWarmth(t *testing.T) {
	var w warmth
	after := func(load, rest int) bool {
		for range load {
			if w.cold(true) {
				t.Error("cold under load")
			}
		}
		for range rest - 1 {
			if w.cold(false) {
				t.Errorf("cold too early after a load of %d ticks", load)
				return false
			}
		}
		return w.cold(false)
	}
	if !after(0, 1) || !after(2, 6) || !after(5, 15) || !after(1000, 30) || !after(0, 1) {
		t.Error("still warm")
	}
}

func TestBurstRate(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		allocs  uint64
		elapsed time.Duration
		want    uint64
	}{
		{4 * mib, 10 * time.Millisecond, 16 * mib}, // may be all there is to come
		{40 * mib, idleTick / 2, 80 * mib},
		{40 * mib, idleTick, 40 * mib},
		{40 * mib, 3 * idleTick, 40 * mib}, // the tick was late
	} {
		if got := burstRate(tt.allocs, tt.elapsed); got != tt.want {
			t.Errorf("%d bytes in %v: got %d, want %d", tt.allocs, tt.elapsed, got, tt.want)
		}
	}
}

func TestCollections(t *testing.T) {
	collected, ignore := collections()
	for range 3 { // again and again
		runtime.GC()
		<-collected
	}
	ignore()
	runtime.GC() // what is under way may still tell
	runtime.GC()
	for len(collected) > 0 {
		<-collected
	}
	runtime.GC()
	select {
	case <-collected:
		t.Error("a collection was told of after the end")
	default:
	}
}

func TestGarbageWorth(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		burst uint64
		quiet int
		want  uint64
	}{
		{0, 0, idleGarbage},
		{0, restAfter - 1, idleGarbage},
		{0, restAfter, restGarbage},
		{20 * mib, 0, 40 * mib}, // two ticks' allocations
	} {
		if got := garbageWorth(tt.burst, tt.quiet); got != tt.want {
			t.Errorf("%d bytes, %d quiet ticks: got %d, want %d", tt.burst, tt.quiet, got, tt.want)
		}
	}
}
