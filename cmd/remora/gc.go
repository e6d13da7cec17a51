package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage/mapped"
)

// Bounds of giving memory back.
const (
	idleTick    = time.Second
	burstWindow = idleTick / 4 // of a tick that a collection ended: of less no rate is made out
	idleAllocs  = 1 << 20      // bytes allocated in a tick: less is idle, some dozens of requests at the most; what is given back must be had again by those that follow
	idleGarbage = 3 << 20      // bytes that would come free: less is not worth a collection, nor is less than two ticks' allocations
	idleMapped  = 2 << 20      // bytes of files, mapped in since they were let go of: less is not worth it
	quietAllocs = 128 << 10    // bytes allocated in a tick: less is nothing going on
	restAfter   = 10           // ticks in which nothing went on, after which a collection is in nobody's way
	restGarbage = 1 << 20      // bytes that would come free, worth one then: what a minute or two of upkeep leaves
	warmFor     = 3            // ticks that memory is kept for each one of load
	mostWarm    = 30           // ticks that it is kept at the most
)

// Bounds of the collector's headroom.
const (
	leastGCPercent = 25        // of what lives
	mostGCPercent  = 100       // the runtime's default, where memory is limited or headroom gets large
	leastHeap      = 4 << 20   // bytes that the runtime applies the percentage to where less lives
	gcEvery        = 4         // ticks between two collections: each takes some 20 ms of all processors under load, which every two seconds is a hundredth of the requests
	gcHeadroom     = 128 << 20 // bytes, where nothing limits memory
)

// gcPercent is the headroom that lets the collector run once in gcEvery ticks at the rate of allocs bytes a tick: up to
// headroom bytes, or the runtime's default where that is more. What lives here are indexes and a store's tables, tens of
// MiB that seldom change: the default of once as much again is memory that a quiet process never needs, and has a busy one
// collect several times a second.
func gcPercent(allocs, live, headroom uint64) int {
	if live == 0 { // not collected yet
		return mostGCPercent
	}
	live = max(live, leastHeap)
	most := max(headroom*100/live, mostGCPercent)
	quarters := (allocs*gcEvery*100/live + leastGCPercent - 1) / leastGCPercent // setting it stops the world for a moment
	return int(min(max(quarters*leastGCPercent, leastGCPercent), most))
}

// headroomWithin is the headroom for a process whose memory is limited to limit bytes, by GOMEMLIMIT or its container:
// an eighth of that, which is two processes' at the most.
func headroomWithin(limit uint64) uint64 { return min(gcHeadroom, limit/8) }

// memoryLimit is what GOMEMLIMIT or the container's control group allows, in bytes.
func memoryLimit() uint64 {
	limit := uint64(debug.SetMemoryLimit(-1))
	if n := containerMemory(os.ReadFile); n > 0 {
		limit = min(limit, n)
	}
	return limit
}

// burstRate is how many bytes a whole tick would allocate at the rate of allocs bytes in so much of one. At the end of a tick a
// burst that began within it would have had the small headroom of a quiet process for up to all of it, and dozens of
// collections.
func burstRate(allocs uint64, elapsed time.Duration) uint64 {
	return uint64(float64(allocs) * float64(idleTick) / float64(min(max(elapsed, burstWindow), idleTick)))
}

// collections sends after each run of the collector, without waiting for the receiver, until stop is called.
func collections() (ran <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	var stopped atomic.Bool
	type mark struct{ _ *mark }
	var found func(*mark)
	found = func(m *mark) {
		if stopped.Load() {
			return
		}
		select {
		case c <- struct{}{}:
		default:
		}
		runtime.SetFinalizer(m, found)
	}
	runtime.SetFinalizer(new(mark), found)
	return c, func() { stopped.Store(true) }
}

// warmth is for how many ticks more memory is kept as a load has left it. Whoever asked will ask again within seconds as a rule, once a
// tool has run or a person has read the answer: what was given back by then must be had from the system again, page by page, and the
// collector runs once more before it knows the load. After a short load, as of one index, there is little to keep it for.
type warmth int

// cold is called once a tick and reports whether memory need not be kept any longer.
func (w *warmth) cold(loaded bool) bool {
	if loaded {
		*w = min(*w+warmFor, mostWarm)
	} else {
		*w = max(*w-1, 0)
	}
	return *w == 0
}

// garbageWorth is how many bytes must come free for a collection to be worth it, with burst bytes allocated in the last tick and
// nothing going on for so many ticks.
func garbageWorth(burst uint64, quiet int) uint64 {
	if quiet >= restAfter {
		return restGarbage
	}
	return max(idleGarbage, 2*burst)
}

// giveBack returns memory to the system some time after next to nothing goes on: after an index was loaded or a burst has
// passed, the runtime would keep what it grew to for minutes, which a pod is billed for. Under load it does nothing but give the
// collector its headroom, unless GOGC is set. unmap lets go of pages of mapped files, which come back at a touch.
func giveBack(ctx context.Context, unmap func(context.Context)) error {
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
	headroom := headroomWithin(memoryLimit())
	collected, ignore := collections()
	defer ignore()
	var files mappedFiles
	var warm warmth
	quiet := 0          // ticks
	began := time.Now() // the tick
	for last, left := uint64(0), uint64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-collected:
			metrics.Read(samples[:1])
			rate := burstRate(samples[0].Value.Uint64()-last, time.Since(began))
			metrics.Read(samples[3:])
			if want := gcPercent(rate, samples[3].Value.Uint64(), headroom); own && want > percent {
				percent = want
				debug.SetGCPercent(percent)
			}
			continue
		case <-tick.C:
		}
		began = time.Now()
		metrics.Read(samples)
		allocs, objects, free, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64()
		burst := allocs - last
		loaded := burst >= idleAllocs && last > 0 // what the start allocates is no load
		last = allocs
		idle := warm.cold(loaded)
		if quiet++; !idle || burst >= quietAllocs {
			quiet = 0
		}
		if want := gcPercent(burst, live, headroom); own && want != percent && (loaded || idle) {
			percent = want
			debug.SetGCPercent(percent)
		}
		if files.due(burst, idle, mapped.Resident()) {
			unmap(ctx)
		}
		if spare := free + objects - min(objects, live); idle && spare > garbageWorth(burst, quiet)+left {
			debug.FreeOSMemory()
			metrics.Read(samples)
			left = samples[2].Value.Uint64() // what did not come free will not next time either
		} else if !idle {
			left = 0
		}
	}
}

// mappedFiles says when pages of mapped files are to be let go of.
type mappedFiles struct {
	left  uint64 // what came back at once: it is in use
	let   bool   // at the last tick
	quiet bool   // so was the last tick
}

// due is called once a tick with what was allocated within it, whether memory need not be kept, and what is mapped now. Under a
// light load pages are let go of once, and again when something beyond what that uses has been mapped in; when it ends, once more.
func (m *mappedFiles) due(allocs uint64, idle bool, mapped uint64) bool {
	if m.let {
		m.left = mapped
	}
	quiet := idle && allocs < quietAllocs
	if quiet && !m.quiet {
		m.left = 0
	}
	m.quiet = quiet
	m.let = idle && mapped > m.left+idleMapped
	return m.let
}

// dropProgram lets go of the parts of the program's file that the start has mapped in: two thirds of it run once, in what
// the dependencies do before main. They stay in the page cache, which both processes share.
func dropProgram() {
	if self, err := os.Readlink("/proc/self/exe"); err == nil {
		_ = mapped.Release(func(path string) bool { return path == self }) // else it keeps them
	}
}
