package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

var garbage [][]byte

// The garbage of a burst goes back to the system once nothing goes on.
func TestMemoryIsReturned(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nobody else collects it
	held := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); returnMemory(ctx, 20*time.Millisecond) }()
	defer func() { cancel(); <-done }()
	before := held()
	for range 64 {
		garbage = append(garbage, make([]byte, 1<<20))
	}
	garbage = nil
	for by := time.Now().Add(time.Minute); held() > before+16<<20; {
		if time.Now().After(by) {
			t.Fatalf("%d MiB are held, %d before the burst", held()>>20, before>>20)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
