package proxy

import "sync/atomic"

// budget is a global limit in bytes. A caller that cannot get what it asks for
// does without it (streams through, skips the tee) and never waits.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) acquire(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) release(n int64) { b.used.Add(-n) }
