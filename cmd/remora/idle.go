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

// giveBack returns memory to the system when nothing goes on: after an index was loaded or a burst has passed, the
// runtime would keep what it grew to for minutes, which a pod is billed for. Under load it does nothing.
func giveBack(ctx context.Context) error {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	for last, left := uint64(0), uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		metrics.Read(samples)
		allocs, objects, free, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()
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
