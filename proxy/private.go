package proxy

import (
	"slices"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// What an answer repeats of a private memory must stay private, so the turn of
// a request that was given one is private itself. Of earlier turns' blocks it
// is not known whether they show private memories: a conversation that was not
// seen since the start counts as having some, where they are allowed at all.

// privacies remembers which conversations were given private memories. Of those
// that are not used, the older half is dropped once maxUsages others were; they
// count as private then.
type privacies struct {
	mu            sync.Mutex
	recent, older map[conversationKey]bool
}

// note notes what a conversation was given now, and reports whether it was ever
// given private memories. replays reports that earlier blocks are sent, too.
func (p *privacies) note(key conversationKey, private, replays bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.recent[key]
	if !known {
		was, known = p.older[key]
	}
	private = private || was || !known && replays
	if p.recent == nil || len(p.recent) >= maxUsages {
		p.recent, p.older = map[conversationKey]bool{}, p.recent
	}
	p.recent[key] = private
	return private
}

// isPrivate reports whether the turn of a request is private, given what it
// gets now.
func isPrivate(x *exchange) bool {
	if !x.class.Private() {
		return false
	}
	key := conversationKey{x.plan.target.scope, x.plan.turn.Conversation}
	return x.h.privacies.note(key, x.plan.private, len(x.plan.walk.Replays)+len(x.plan.walk.HeldIDs) > 0)
}

func hasPrivate(tags []string) bool { return slices.Contains(tags, storage.PrivateTag) }
