package ledger

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/storage"
)

// position is where a response left a conversation that the upstream keeps. A
// request that continues the response shows nothing of what went before, so the
// ledger remembers it: under the response's id, and under the id of a
// server-side conversation for its newest response. Positions live, count for
// the bounds and are stored like other entries. Losing one costs the
// conversation's name and may repeat a memory, nothing else.
type position struct {
	conversation string
	parent       Hash   // the position that the response continued; zero = none
	self         Hash   // the chain seed of requests that continue the response
	turns        []Hash // the newest user turns of the request, at most positionTurns
	newest       Hash   // the turn that the response belongs to
	outline      Hash   // of a thread: after the newest message; see outline
	used         time.Time
	// said is what the person said in that turn, for as long as it has no final
	// answer, and before what is unanswered before it. They are not redacted
	// yet, so they are never stored: a restart in the middle of a tool loop
	// loses the turn.
	said   string
	before []string
}

const (
	positionTurns    = 64
	positionParents  = 256 // positions that are followed back
	positionOverhead = 160
)

func (p *position) size() int64 {
	n := positionOverhead + int64(len(p.conversation)+len(p.said)+16*len(p.turns))
	for _, words := range p.before {
		n += int64(16 + len(words))
	}
	return n
}

// heldKey returns the chain seed of requests that continue something which the
// upstream holds: a response or a conversation.
func heldKey(seed Hash, kind byte, id string) Hash {
	b := append(appendHash(make([]byte, 0, 17+len(id)), seed), kind)
	return xxh3.Hash128(append(b, id...))
}

const (
	heldResponse     = 'r'
	heldConversation = 'c'
)

// origin is where a request starts: at the beginning of a conversation, or
// behind a position.
type origin struct {
	seed  Hash
	at    position
	known bool // the ledger knows at
	held  bool // the upstream holds what went before
}

// origin finds where the request starts.
func (f *Search) origin(blind bool) origin {
	o := origin{seed: f.seed}
	if f.held == (Hash{}) {
		return o
	}
	if o.seed, o.held = f.held, true; blind {
		return o
	}
	if o.at, o.known = f.entries.positionAt(o.seed); o.known {
		o.seed = o.at.self // the newest response of a server-side conversation
	}
	return o
}

// conversation returns the id of the conversation behind the origin, "" where
// it begins one.
func (o *origin) conversation() string {
	switch {
	case !o.held:
		return ""
	case o.known:
		return o.at.conversation
	default:
		return chainID(o.seed)
	}
}

// positionAt returns a copy of the position at key.
func (s *Entries) positionAt(key Hash) (p position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.position == nil || s.ledger.now().Sub(e.position.used) > s.ledger.cfg.TTL {
		return position{}, false
	}
	return *e.position, true
}

// place puts p at each of the keys.
func (s *Entries) place(p position, keys ...Hash) {
	now := s.ledger.now()
	p.used = now
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	s.dropAnswered(p)
	for _, key := range keys {
		grown := p.size()
		if e := s.entries[key]; e != nil {
			grown -= e.size()
		}
		at := p
		s.set(key, &entry{position: &at})
		s.charge(grown)
		s.save(key)
	}
}

// dropAnswered drops what was said in turns that p leaves behind. The step
// right before p is kept, since it may be tried again. Needs s.mu.
func (s *Entries) dropAnswered(p position) {
	e := s.entries[p.parent]
	if e != nil && e.position != nil && e.position.newest == p.newest {
		e = s.entries[e.position.parent]
	}
	if e != nil && e.position != nil && e.position.said != "" {
		n := e.position.size()
		e.position.said, e.position.before = "", nil
		s.charge(e.position.size() - n)
	}
}

// walkHeld adds to w what the upstream holds up to the position at key: turns,
// the memories in their blocks, and blocks in the system prompt, which the
// upstream does not keep. Needs s.mu.
func (s *Entries) walkHeld(w *Walk, key Hash) {
	now := s.ledger.now()
	w.HeldTurns, w.HeldIDs = map[Hash]struct{}{}, map[string]struct{}{}
	var system []Replay
	for range positionParents {
		e := s.entries[key]
		if key == (Hash{}) || e == nil || e.position == nil {
			break
		}
		p := e.position
		if !w.peek && now.Sub(p.used) > s.ledger.cfg.TTL/8 {
			p.used = now
			s.save(key)
		}
		for _, h := range slices.Backward(p.turns) {
			w.HeldTurns[h] = struct{}{}
			v := s.entries[h].lastBlock(p.conversation)
			if v == nil {
				continue
			}
			if !w.peek {
				s.touch(h, v, now)
			}
			w.count++
			w.tokens += tokensOf(v.Block)
			if v.Placement == dialect.System {
				system = append(system, Replay{-1, v.Placement, v.Block, h, v})
				continue
			}
			for _, sp := range v.Block.Spans {
				w.HeldIDs[sp.ID] = struct{}{}
			}
		}
		key = p.parent
	}
	slices.Reverse(system)
	w.Replays = append(system, w.Replays...)
}

// Continuation is the position that the response to a request will have, to be
// recorded once its id is known.
type Continuation struct {
	entries *Entries
	seed    Hash
	next    position
	server  string // id of the server-side conversation, "" = none
}

// Continue prepares the position of the response to req. said is what the
// person said in the newest turn, and before what is unanswered before it.
func (w *Walk) Continue(req *dialect.Request, conversation, said string, before []string) *Continuation {
	next := position{conversation: conversation, said: strings.Clone(said), newest: w.origin.at.newest}
	for _, words := range before {
		next.before = append(next.before, strings.Clone(words))
	}
	if w.origin.held {
		next.parent = w.origin.seed
	}
	for i := req.Turn; i >= 0 && len(next.turns) < positionTurns; i = req.Previous(i) {
		next.turns = append(next.turns, w.Chain[i])
	}
	if len(next.turns) > 0 {
		next.newest = next.turns[0]
	}
	slices.Reverse(next.turns)
	if n := len(w.outline); n > 0 {
		next.outline = w.outline[n-1]
	}
	c := &Continuation{entries: w.entries, seed: w.seed, next: next}
	if req.Held {
		c.server = req.Conversation
	}
	return c
}

// Record records the position under the response's id.
func (c *Continuation) Record(responseID string) {
	c.next.self = heldKey(c.seed, heldResponse, responseID)
	keys := []Hash{c.next.self}
	if c.server != "" {
		keys = append(keys, heldKey(c.seed, heldConversation, c.server))
	}
	c.entries.place(c.next, keys...)
	for _, key := range keys {
		if group := c.entries.key; key != group.root {
			c.entries.ledger.point(group.scope, key, group.root)
		}
	}
}

// A position on disk is a version byte, the conversation, parent, self, newest,
// outline, the turns, and the last use (ms).
const positionVersion = 5

func appendPosition(b []byte, p *position) []byte {
	b = append(b, positionVersion)
	b = appendString(b, p.conversation)
	for _, h := range [...]Hash{p.parent, p.self, p.newest, p.outline} {
		b = appendHash(b, h)
	}
	b = binary.AppendUvarint(b, uint64(len(p.turns)))
	for _, h := range p.turns {
		b = appendHash(b, h)
	}
	return binary.AppendUvarint(b, uint64(storage.TimeOf(p.used)))
}

// decodePosition reads what follows the version byte.
func decodePosition(d decoder) (*position, error) {
	p := &position{conversation: d.string()}
	p.parent, p.self, p.newest, p.outline = d.hash(), d.hash(), d.hash(), d.hash()
	for range d.uint(positionTurns) {
		p.turns = append(p.turns, d.hash())
	}
	p.used = storage.Time(d.uint(1 << 62)).Std()
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return p, nil
}
