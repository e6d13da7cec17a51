package persist

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// latencies counts durations in buckets that grow by the fourth root of two,
// from a tenth of a millisecond on.
type latencies struct {
	buckets [96]atomic.Uint64
	count   atomic.Uint64
	micros  atomic.Uint64
}

const firstBucket = 100 * time.Microsecond

func (l *latencies) add(d time.Duration) {
	l.count.Add(1)
	l.micros.Add(uint64(max(d.Microseconds(), 0)))
	i := 0
	if d > firstBucket {
		i = int(math.Ceil(4 * math.Log2(float64(d)/float64(firstBucket))))
	}
	l.buckets[min(i, len(l.buckets)-1)].Add(1)
}

// mean returns the mean in milliseconds.
func (l *latencies) mean() float64 {
	if n := l.count.Load(); n > 0 {
		return float64(l.micros.Load()) / 1000 / float64(n)
	}
	return 0
}

// quantile returns an upper bound of a quantile in milliseconds.
func (l *latencies) quantile(q float64) float64 {
	n := l.count.Load()
	if n == 0 {
		return 0
	}
	seen := uint64(0)
	for i := range l.buckets {
		if seen += l.buckets[i].Load(); float64(seen) >= q*float64(n) {
			return float64(firstBucket) / float64(time.Millisecond) * math.Exp2(float64(i)/4)
		}
	}
	return math.Inf(1)
}

// recent counts events of the last hour, by minutes.
type recent struct {
	mu      sync.Mutex
	minutes [60]int
	at      int64 // the newest minute, since the epoch
}

func (r *recent) add(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	r.minutes[r.at%60] += n
}

func (r *recent) lastHour(now time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	for _, m := range r.minutes {
		n += m
	}
	return n
}

// advance clears the minutes that have begun since the last call. A clock that
// goes back stands still here.
func (r *recent) advance(now time.Time) {
	to := now.Unix() / 60
	if to-r.at >= 60 {
		r.minutes, r.at = [60]int{}, to
	}
	for r.at < to {
		r.at++
		r.minutes[r.at%60] = 0
	}
}
