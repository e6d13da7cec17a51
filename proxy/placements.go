package proxy

import (
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// placements remembers which upstreams and models refuse a message of its own
// before the user's, as strict chat templates do. A lesson moves blocks from
// BeforeUser to InUser and then to nowhere, one step at a time, each only after
// a refused request has succeeded without its block.
//
// A refusal whose text names roles or the template counts at once, for
// everybody. Others may be about the memory's content or the request, so it
// takes two of them in different conversations, and they count for their user
// alone: one user's refusals must not move what is in another's conversations.
// At most maxLessons are held; at the limit the oldest is forgotten. A restart
// forgets all, which costs one refused request each.
//
// It also remembers where models accepted a block in a stream, whose head then
// passes on without waiting for the first event (refusal.go). At most
// maxLessons of these are held, too; at the limit any one is forgotten and
// learned again.
type placements struct {
	now func() time.Time

	mu       sync.RWMutex
	lessons  map[modelKey]lesson
	accepted map[modelPlacement]struct{}
}

// modelPlacement is a place for blocks in the requests of a model.
type modelPlacement struct {
	model modelKey
	at    dialect.Placement
}

// modelKey is what a lesson is about: templates differ by model, and what is
// made of a request by dialect. scope is empty if the lesson is for everybody.
type modelKey struct {
	upstream, dialect, model string
	scope                    storage.Scope
}

func (k modelKey) forScope(scope storage.Scope) modelKey { k.scope = scope; return k }

type lesson struct {
	inUser   time.Time // until then blocks go into the user's message
	off      time.Time // until then no placement is accepted
	strike   string    // conversation of an unexplained refusal
	strikeAt time.Time
}

func (l lesson) learned() time.Time {
	if l.strikeAt.After(l.inUser) {
		return l.strikeAt
	}
	return l.inUser
}

const (
	maxLessons   = 1024
	inUserExpiry = 24 * time.Hour // templates change with the server: try again the next day
	offExpiry    = time.Hour
	strikeExpiry = 24 * time.Hour
)

func newPlacements(now func() time.Time) *placements {
	return &placements{now: now, lessons: map[modelKey]lesson{}, accepted: map[modelPlacement]struct{}{}}
}

// isAccepted reports whether a block was accepted there in a stream.
func (p *placements) isAccepted(at modelPlacement) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.accepted[at]
	return ok
}

// noteAccepted records that a block was accepted there in a stream.
func (p *placements) noteAccepted(at modelPlacement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.accepted) >= maxLessons {
		for other := range p.accepted {
			delete(p.accepted, other)
			break
		}
	}
	p.accepted[at] = struct{}{}
}

// forgetAccepted records that a block was refused there in a stream.
func (p *placements) forgetAccepted(at modelPlacement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.accepted, at)
}

// choose returns where a block of a scope goes for this model. ok is false if
// the model accepts none.
func (p *placements) choose(k modelKey, scope storage.Scope, want dialect.Placement) (at dialect.Placement, ok bool) {
	p.mu.RLock()
	everybodys, known := p.lessons[k]
	own, found := p.lessons[k.forScope(scope)]
	p.mu.RUnlock()
	if !known && !found {
		return want, true
	}
	now := p.now()
	if want == dialect.BeforeUser && (now.Before(everybodys.inUser) || now.Before(own.inUser)) {
		want = dialect.InUser
	}
	return want, !now.Before(everybodys.off) && !now.Before(own.off)
}

// noteRefusal records that an enriched request was refused and succeeded
// without its blocks, and whether it is certain that their placement was the
// reason.
func (p *placements) noteRefusal(t target, conversation string, certain bool) {
	k := t.model
	if !certain {
		k = k.forScope(t.scope)
	}
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	l, found := p.lessons[k]
	if !found && len(p.lessons) >= maxLessons {
		var first modelKey
		for key, l := range p.lessons {
			if first == (modelKey{}) || l.learned().Before(p.lessons[first].learned()) {
				first = key
			}
		}
		delete(p.lessons, first)
	}
	if !certain && (l.strike == "" || l.strike == conversation || now.Sub(l.strikeAt) > strikeExpiry) {
		l.strike, l.strikeAt = conversation, now
		p.lessons[k] = l
		return
	}
	l.strike = ""
	l.inUser = now.Add(inUserExpiry)
	if t.placement != dialect.BeforeUser {
		l.off = now.Add(offExpiry)
	}
	p.lessons[k] = l
}
