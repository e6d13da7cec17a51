package persist

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// maxBuckets bounds each of the limiter's two generations.
const maxBuckets = 8192

// limiter is a token bucket per scope: rate tokens a second, at most one
// second's worth. Enqueue calls it.
//
// It keeps two generations of buckets. When the young one is full it becomes
// the old one and the old one is dropped, so that memory is bounded and no call
// sweeps; a dropped scope starts over with a full bucket.
type limiter struct {
	rate float64 // 0 = no limit

	mu         sync.Mutex
	seed       maphash.Seed
	young, old map[uint64]bucket // by hash: scopes are long, and two that collide merely share a bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func (l *limiter) allow(scope storage.Scope, now time.Time) bool {
	if l.rate == 0 {
		return true
	}
	burst := max(1, l.rate)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.young == nil {
		l.seed, l.young = maphash.MakeSeed(), make(map[uint64]bucket)
	}
	key := maphash.Comparable(l.seed, scope)
	b, ok := l.young[key]
	if !ok {
		if b, ok = l.old[key]; !ok {
			b = bucket{tokens: burst, at: now}
		}
		if len(l.young) >= maxBuckets {
			l.old, l.young = l.young, make(map[uint64]bucket)
		}
	}
	b.tokens = min(burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.rate)
	b.at = now
	allowed := b.tokens >= 1
	if allowed {
		b.tokens--
	}
	l.young[key] = b
	return allowed
}
