package load

import (
	"container/heap"
	"context"
	"runtime"
	"time"
)

// timed is something that a pacer does at its time.
type timed interface {
	// fire must not block. Where again is true it is called once more at next.
	fire() (next time.Time, again bool)
}

type pacedJob struct {
	due time.Time
	job timed
}

// pacer runs jobs at their times to within some 30 us, on a thread of its own.
// The runtime's timers wake up to a millisecond late while a process is idle,
// which is more than a proxy adds.
type pacer struct {
	jobs chan pacedJob
}

// pacerQueue bounds what waits for the pacer's attention, not what waits for
// its time. A full queue blocks the caller of at.
const pacerQueue = 1024

func newPacer() *pacer { return &pacer{jobs: make(chan pacedJob, pacerQueue)} }

// at has job run at due.
func (p *pacer) at(ctx context.Context, due time.Time, job timed) {
	select {
	case p.jobs <- pacedJob{due, job}:
	case <-ctx.Done():
	}
}

// run serves until ctx ends; jobs that are still waiting then are dropped.
func (p *pacer) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sharpenTimers()
	var waiting pacedHeap
	// A job that comes in during a sleep must not be due before the sleep ends,
	// so no sleep is longer than the shortest delay that was asked for.
	nap := time.Second
	take := func(j pacedJob) {
		nap = max(min(nap, time.Until(j.due)), 50*time.Microsecond)
		heap.Push(&waiting, j)
	}
	for ctx.Err() == nil {
		if len(waiting) == 0 {
			select {
			case j := <-p.jobs:
				take(j)
			case <-ctx.Done():
			}
			continue
		}
		select {
		case j := <-p.jobs:
			take(j)
			continue
		default:
		}
		if wait := time.Until(waiting[0].due); wait > 0 {
			preciseSleep(min(wait, nap))
			continue
		}
		j := heap.Pop(&waiting).(pacedJob)
		if next, again := j.job.fire(); again {
			take(pacedJob{next, j.job})
		}
	}
}

type pacedHeap []pacedJob

func (h pacedHeap) Len() int           { return len(h) }
func (h pacedHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h pacedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *pacedHeap) Push(x any)        { *h = append(*h, x.(pacedJob)) }
func (h *pacedHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = pacedJob{}
	*h = (*h)[:last]
	return j
}
