package proxy

import (
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// learned remembers which upstreams and models refuse a message of its own before the user's, as strict chat templates do.
// It steps from BeforeUser to InUser to nothing, one step at a time, each only after a refused request has succeeded
// without its block. A refusal whose text names roles or the template counts at once, for everybody; of others, which may be
// about the memory's content or the request, it takes two in different conversations, and they count for their user alone:
// nobody's refusals may move what stands in another's conversations. It holds at most learnedMax lessons; at the bound the
// one that was learned first is forgotten. A restart forgets all, which costs one refused request each.
//
// It also remembers where models took a block in a stream, which then needs no look before its head passes on (opening.go). Of
// these, too, it holds at most learnedMax; at the bound any one is forgotten, and looked at once more.
type learned struct {
	now func() time.Time

	mu     sync.RWMutex
	models map[modelKey]lesson
	taking map[placed]struct{}
}

// placed is a block's place in the requests of a model.
type placed struct {
	model modelKey
	at    dialect.Placement
}

// modelKey is what a lesson is about; scope is empty where it is everybody's.
type modelKey struct {
	upstream, dialect, model string
	scope                    storage.Scope
}

func (k modelKey) of(scope storage.Scope) modelKey { k.scope = scope; return k }

type lesson struct {
	inUser time.Time // until then blocks stand in the user's message
	off    time.Time // until then no placement is accepted
	strike string    // conversation of an unexplained refusal
	struck time.Time
}

func (s lesson) learned() time.Time {
	if s.struck.After(s.inUser) {
		return s.struck
	}
	return s.inUser
}

const (
	learnedMax    = 1024
	learnedInUser = 24 * time.Hour // templates change with the server: try again the next day
	learnedOff    = time.Hour
	learnedStrike = 24 * time.Hour
)

func newLearned(now func() time.Time) *learned {
	return &learned{now: now, models: map[modelKey]lesson{}, taking: map[placed]struct{}{}}
}

// takes says whether a block was taken there.
func (l *learned) takes(p placed) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, ok := l.taking[p]
	return ok
}

// took is told that one was.
func (l *learned) took(p placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.taking) >= learnedMax {
		for other := range l.taking {
			delete(l.taking, other)
			break
		}
	}
	l.taking[p] = struct{}{}
}

// doubt is told that one was not, any more.
func (l *learned) doubt(p placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taking, p)
}

// placement returns where a block of a scope goes for this model; ok is false where the model takes none.
func (l *learned) placement(k modelKey, scope storage.Scope, want dialect.Placement) (p dialect.Placement, ok bool) {
	l.mu.RLock()
	everybodys, known := l.models[k]
	own, found := l.models[k.of(scope)]
	l.mu.RUnlock()
	if !known && !found {
		return want, true
	}
	now := l.now()
	if want == dialect.BeforeUser && (now.Before(everybodys.inUser) || now.Before(own.inUser)) {
		want = dialect.InUser
	}
	return want, !now.Before(everybodys.off) && !now.Before(own.off)
}

// refused is told that an enriched request of a scope with blocks at placement p was refused and succeeded without them, and
// whether it is certain that their place was at fault.
func (l *learned) refused(k modelKey, scope storage.Scope, p dialect.Placement, conv string, certain bool) {
	if !certain {
		k = k.of(scope)
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s, found := l.models[k]
	if !found && len(l.models) >= learnedMax {
		var first modelKey
		for c, v := range l.models {
			if first == (modelKey{}) || v.learned().Before(l.models[first].learned()) {
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
