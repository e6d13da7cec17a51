package proxy

import (
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// learned remembers which upstreams and models refuse a message of its own before the user's, as strict chat templates do.
// It steps from BeforeUser to InUser to nothing, one step at a time, each only after a refused request has succeeded
// without its block. It holds at most learnedMax models; at the bound the one that was learned first is forgotten. A
// restart forgets all, which costs one refused request each.
type learned struct {
	now func() time.Time

	mu     sync.RWMutex
	models map[modelKey]lesson
}

type modelKey struct{ upstream, model string }

type lesson struct {
	off   bool // no placement is accepted
	until time.Time
}

const (
	learnedMax    = 1024
	learnedInUser = 24 * time.Hour // templates change with the server: try again the next day
	learnedOff    = time.Hour
)

func newLearned(now func() time.Time) *learned {
	return &learned{now: now, models: map[modelKey]lesson{}}
}

// placement returns where a block goes for this model; ok is false where the model takes none.
func (l *learned) placement(upstream, model string, want dialect.Placement) (p dialect.Placement, ok bool) {
	l.mu.RLock()
	s, found := l.models[modelKey{upstream, model}]
	l.mu.RUnlock()
	if !found || l.now().After(s.until) {
		return want, true
	}
	if want == dialect.BeforeUser {
		want = dialect.InUser
	}
	return want, !s.off
}

// refused is told that an enriched request with blocks at placement p was refused and succeeded without them.
func (l *learned) refused(upstream, model string, p dialect.Placement) {
	now := l.now()
	s := lesson{until: now.Add(learnedInUser)}
	if p != dialect.BeforeUser {
		s = lesson{off: true, until: now.Add(learnedOff)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := modelKey{upstream, model}
	if _, found := l.models[k]; !found && len(l.models) >= learnedMax {
		var first modelKey
		for c, v := range l.models {
			if first == (modelKey{}) || v.until.Before(l.models[first].until) {
				first = c
			}
		}
		delete(l.models, first)
	}
	l.models[k] = s
}
