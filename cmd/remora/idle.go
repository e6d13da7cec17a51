package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Bounds of giving memory back.
const (
	idleTick    = time.Second
	idleAllocs  = 16 << 20 // bytes allocated in a tick: less is idle, or near enough for a collection not to matter
	idleGarbage = 8 << 20  // bytes that would come free: less is not worth a collection
)

// Bounds of the collector's headroom, in per cent of what lives.
const (
	leastGCPercent = 25
	mostGCPercent  = 100 // the runtime's default
)

// gcPercent is the headroom that lets the collector run about twice a second at the rate of allocs bytes a tick. What lives
// here are indexes and a store's tables, tens of MiB that seldom change: the default of once as much again is memory that
// a quiet process never needs.
func gcPercent(allocs, live uint64) int {
	if live == 0 {
		return mostGCPercent
	}
	quarters := (allocs/2*100/live + leastGCPercent - 1) / leastGCPercent // setting it stops the world for a moment
	return int(min(max(quarters*leastGCPercent, leastGCPercent), mostGCPercent))
}

// giveBack returns memory to the system when nothing goes on: after an index was loaded or a burst has passed, the
// runtime would keep what it grew to for minutes, which a pod is billed for. Under load it does nothing but give the
// collector its headroom, unless GOGC is set.
func giveBack(ctx context.Context) error {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	percent := debug.SetGCPercent(mostGCPercent)
	own := percent == mostGCPercent
	debug.SetGCPercent(percent)
	for last, left := uint64(0), uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(samples)
		allocs, objects, free, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()
		if want := gcPercent(allocs-last, live); own && want != percent {
			percent = want
			debug.SetGCPercent(percent)
		}
		idle := allocs-last < idleAllocs
		last = allocs
		if spare := free + objects - min(objects, live); idle && spare > idleGarbage+left {
			debug.FreeOSMemory()
			metrics.Read(samples)
			left = samples[2].Value.Uint64() // what did not come free will not next time either
		} else if !idle {
			left = 0
		}
	}
}
