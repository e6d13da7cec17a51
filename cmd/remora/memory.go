package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limitMemory sets the soft memory limit of the Go runtime, in bytes; 0 sets
// none. GOMEMLIMIT and AUTOMEMLIMIT=off in the environment take precedence.
func limitMemory(limit int64) error {
	if limit == 0 {
		return nil
	}
	_, err := memlimit.Set(memlimit.WithProvider(memlimit.Limit(uint64(limit))), memlimit.WithRatio(1))
	return err
}

// What counts as quiet and as busy, in bytes allocated within quietPeriod.
const (
	quietPeriod = 5 * time.Second
	quietAllocs = 1 << 20
	busyAllocs  = 8 << 20
)

// returnMemory returns memory to the system once a busy process has been quiet
// for a period, until ctx ends. The runtime would keep the garbage of a burst,
// or of an index that was loaded, for two minutes and more. It collects garbage
// once for each burst, while nobody waits.
func returnMemory(ctx context.Context, period time.Duration) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	tick := time.NewTicker(period)
	defer tick.Stop()
	var last, returned uint64 // allocated by the last tick, and by the last return
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		now := sample[0].Value.Uint64()
		if now-last < quietAllocs && now-returned > busyAllocs {
			debug.FreeOSMemory()
			metrics.Read(sample)
			returned, now = sample[0].Value.Uint64(), sample[0].Value.Uint64()
		}
		last = now
	}
}
