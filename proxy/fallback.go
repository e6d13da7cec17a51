package proxy

import (
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// learned remembers which upstreams and models refuse a message of its own before the user's, as strict chat templates do.
// It steps from BeforeUser to InUser to nothing, one step at a time, each only after a refused request has succeeded
// without its block. A refusal whose text names roles or the template counts at once; of others, which may be about the
// memory's content or the request, it takes two in different conversations. It holds at most learnedMax models; at the
// bound the one that was learned first is forgotten. A restart forgets all, which costs one refused request each.
type learned struct {
	now func() time.Time

	mu     sync.RWMutex
	models map[modelKey]lesson
}

type modelKey struct{ upstream, dialect, model string }

type lesson struct {
	inUser time.Time // until then blocks stand in the user's message
	off    time.Time // until then no placement is accepted
	strike string    // conversation of an unexplained refusal
	struck time.Time
}

const (
	learnedMax    = 1024
	learnedInUser = 24 * time.Hour // templates change with the server: try again the next day
	learnedOff    = time.Hour
	learnedStrike = 24 * time.Hour
)

func newLearned(now func() time.Time) *learned {
	return &learned{now: now, models: map[modelKey]lesson{}}
}

// placement returns where a block goes for this model; ok is false where the model takes none.
func (l *learned) placement(k modelKey, want dialect.Placement) (p dialect.Placement, ok bool) {
	l.mu.RLock()
	s, found := l.models[k]
	l.mu.RUnlock()
	if !found {
		return want, true
	}
	now := l.now()
	if want == dialect.BeforeUser && now.Before(s.inUser) {
		want = dialect.InUser
	}
	return want, !now.Before(s.off)
}

// refused is told that an enriched request with blocks at placement p was refused and succeeded without them, and
// whether it is certain that their place was at fault.
func (l *learned) refused(k modelKey, p dialect.Placement, conv string, certain bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s, found := l.models[k]
	if !found && len(l.models) >= learnedMax {
		var first modelKey
		for c, v := range l.models {
			if first == (modelKey{}) || v.inUser.Before(l.models[first].inUser) {
				first = c
			}
		}
		delete(l.models, first)
	}
	if !certain && (s.strike == "" || s.strike == conv || now.Sub(s.struck) > learnedStrike) {
		s.strike, s.struck = conv, now
		l.models[k] = s
		return
	}
	s.strike = ""
	s.inUser = now.Add(learnedInUser)
	if p != dialect.BeforeUser {
		s.off = now.Add(learnedOff)
	}
	l.models[k] = s
}
