package ledger

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// Search finds the conversation that a request continues.
type Search struct {
	ledger  *Ledger
	scope   storage.Scope
	req     *dialect.Request
	room    []Hash // for the chain
	seed    Hash   // of the scope's chains
	held    Hash   // what the upstream holds of the conversation, see heldKey; zero = nothing
	chain   []Hash // after each message; nil if the upstream holds what went before
	outline []Hash // of a thread, see outline
	last    Hash   // of the last turn that something follows; zero = there is none
	// entries are those of the conversation, or at first of the pointer to it.
	entries  *Entries
	resolved bool // entries are those of the conversation
}

// Seed is what a chain begins with. Conversations of different seeds have
// nothing in common, whatever is said in them.
type Seed struct {
	Scope  storage.Scope
	Secret []byte // of the installation
	// Class is the policy class of the upstream: what one may be given is not
	// replayed to another.
	Class string
}

// Find begins to load the conversation that req continues, unless it is in
// memory or req begins it. room is used for the chain if it is large enough.
// Call Await, and then Walk.
func (l *Ledger) Find(of Seed, req *dialect.Request, room []Hash) *Search {
	scope := of.Scope
	f := &Search{ledger: l, scope: scope, req: req, room: room, seed: l.seed(of)}
	switch {
	case req.PreviousID != "":
		f.held = heldKey(f.seed, heldResponse, req.PreviousID)
	case req.Held:
		f.held = heldKey(f.seed, heldConversation, req.Conversation)
	}
	if f.held != (Hash{}) {
		f.entries = l.group(groupKey{scope, f.held})
		if !f.entries.has(f.held) {
			l.load(f.entries)
		}
		f.resolve()
		return f
	}
	f.chain = chain(f.seed, req, room)
	if req.Threaded {
		f.outline = outline(f.seed, req)
	}
	root, first, last := f.seed, -1, -1 // the first user message, and the last one that something follows
	for i := range req.Messages {
		if req.Messages[i].Role != dialect.RoleUser {
			continue
		}
		if first < 0 {
			first = i
		}
		if i+1 < len(req.Messages) {
			last = i
		}
	}
	switch {
	case first >= 0 && req.Threaded:
		root = outlineKey(f.outline[first])
	case first >= 0:
		root = f.chain[first]
	}
	f.entries, f.resolved = l.group(groupKey{scope, root}), true
	if last >= 0 {
		if f.last = f.chain[last]; !f.inMemory(last) {
			l.load(f.entries)
		}
	}
	return f
}

// inMemory reports whether the conversation is in memory: all that begin with
// its first turn, or else its turn i. What follows that tells it from others
// that begin alike.
func (f *Search) inMemory(i int) bool {
	s, next := f.entries, f.req.Messages[i+1].Hash
	if s.begun {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[f.chain[i]]
	if e == nil && f.req.Threaded {
		e = s.entries[outlineKey(f.outline[i])]
	}
	return e != nil && slices.ContainsFunc(e.variants, func(v *variant) bool { return v.next == next || v.answer.matches(f.req, i) > 0 })
}

// has reports whether there is an entry for h in memory.
func (s *Entries) has(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[h] != nil
}

// resolve follows the pointer to the conversation once it is in memory. Without
// a pointer the conversation begins here, as far as is known.
func (f *Search) resolve() {
	s := f.entries
	if f.resolved {
		return
	}
	now := s.ledger.now()
	s.mu.Lock()
	e := s.entries[f.held]
	if e == nil || e.pointer == nil || now.Sub(e.pointer.used) > s.ledger.cfg.TTL {
		f.resolved = e != nil || !s.isLoading()
		s.mu.Unlock()
		return
	}
	if now.Sub(e.pointer.used) > s.ledger.cfg.TTL/8 {
		e.pointer.used = now
		s.save(f.held)
	}
	root := e.pointer.root
	s.mu.Unlock()
	f.entries, f.resolved = f.ledger.group(groupKey{f.scope, root}), true
	if !f.entries.has(f.held) {
		f.ledger.load(f.entries)
	}
}

// Loading reports whether entries that the request needs are being loaded.
// since is when a load of the scope began that is under way, zero if none is.
func (f *Search) Loading() (since time.Time, loading bool) {
	f.ledger.mu.Lock()
	defer f.ledger.mu.Unlock()
	return f.ledger.loads[f.scope].began, f.entries.load != nil && !f.entries.load.ended()
}

// Await waits until the entries are loaded. It returns ctx's error if that ends
// first, and the store's if loading failed, unless the conversation's last turn
// is in memory.
func (f *Search) Await(ctx context.Context) error {
	for {
		err := f.entries.await(ctx)
		if err != nil && f.entries.has(f.last) {
			err = nil
		}
		if err != nil || f.resolved {
			return err
		}
		f.resolve()
	}
}

// pointer tells in which group the entries are that belong to something which
// the upstream holds.
type pointer struct {
	root Hash
	used time.Time
}

const pointerSize = 64

// point makes the group at key lead to root.
func (l *Ledger) point(scope storage.Scope, key, root Hash) {
	s := l.group(groupKey{scope, key})
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := int64(pointerSize)
	if e := s.entries[key]; e != nil {
		grown -= e.size()
	}
	s.confirmed = true // the upstream has answered
	s.set(key, &entry{pointer: &pointer{root: root, used: l.now()}})
	s.charge(grown)
	s.save(key)
}

// A pointer on disk is a version byte, the root, and the last use (ms).
const pointerVersion = 6

func appendPointer(b []byte, p *pointer) []byte {
	b = appendHash(append(b, pointerVersion), p.root)
	return binary.AppendUvarint(b, uint64(storage.TimeOf(p.used)))
}

// decodePointer reads what follows the version byte.
func decodePointer(d decoder) (*pointer, error) {
	p := &pointer{root: d.hash(), used: storage.Time(d.uint(1 << 62)).Std()}
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return p, nil
}
