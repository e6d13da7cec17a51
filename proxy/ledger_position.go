package proxy

import (
	"encoding/binary"
	"net/http"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// position is where a response left a conversation that the upstream keeps. A request that continues the response shows
// nothing of what went before, so the ledger remembers it: under the response's id, and under that of a server-side
// conversation for its newest response. A position is an entry like the others: it lives as long after its last use,
// counts for the same bounds, and is stored with them. One that is lost costs the conversation's name and may repeat a
// memory, nothing else.
type position struct {
	conv   string
	parent chainHash   // the position that the response continued; zero = none
	self   chainHash   // what requests that continue the response start from
	turns  []chainHash // user turns that the request carried, the newest ones, at most positionTurns
	newest chainHash   // the turn that the response belongs to
	used   time.Time
	// said is what the human said in that turn, for as long as it has no final answer. It is not redacted yet, so it is
	// never stored: a restart in the middle of a tool loop loses the turn.
	said string
}

const (
	positionTurns    = 64
	positionParents  = 256 // positions that are followed back
	positionOverhead = 160
)

func (p *position) size() int64 {
	return positionOverhead + int64(len(p.conv)+len(p.said)+16*len(p.turns))
}

// heldKey is where requests start that continue something which the upstream holds: a response, or a conversation.
func heldKey(start chainHash, kind byte, id string) chainHash {
	b := make([]byte, 0, 17+len(id))
	b = binary.BigEndian.AppendUint64(b, start.Hi)
	b = binary.BigEndian.AppendUint64(b, start.Lo)
	b = append(b, kind)
	return xxh3.Hash128(append(b, id...))
}

const (
	heldResponse     = 'r'
	heldConversation = 'c'
)

// position returns a copy of what stands at key.
func (l *ledger) position(s *scopeLedger, key chainHash) (p position, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil || e.at == nil || l.now().Sub(e.at.used) > l.cfg.TTL {
		return position{}, false
	}
	return *e.at, true
}

// place puts p at each of the keys.
func (l *ledger) place(s *scopeLedger, p position, keys ...chainHash) {
	now := l.now()
	p.used = now
	s.mu.Lock()
	defer s.mu.Unlock()
	l.sweep(s, now)
	for _, key := range keys {
		grown := p.size()
		if e := s.entries[key]; e != nil {
			grown -= e.size()
		}
		at := p
		s.entries[key] = &entry{at: &at}
		l.charge(s, grown)
		l.save(s, key)
	}
}

// hold adds to w what the upstream holds before the position p: turns, memories that stand there, and blocks that were
// put into the system prompt, which the upstream does not keep.
func (l *ledger) hold(s *scopeLedger, w *walk, p position, peek bool) {
	now := l.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.heldTurns, w.heldIDs = map[string]struct{}{}, map[string]struct{}{}
	var system []replayed
	for range positionParents {
		for _, h := range slices.Backward(p.turns) {
			w.heldTurns[chainText(h)] = struct{}{}
			v := s.entries[h].sent(p.conv)
			if v == nil {
				continue
			}
			if !peek {
				l.touch(s, h, v, now)
			}
			w.count++
			w.tokens += tokensOf(v.block)
			if v.placement == dialect.System {
				system = append(system, replayed{-1, h, v.placement, v.block, v})
				continue
			}
			for _, sp := range v.block.Spans {
				w.heldIDs[sp.ID] = struct{}{}
			}
		}
		e := s.entries[p.parent]
		if p.parent == (chainHash{}) || e == nil || e.at == nil {
			break
		}
		if !peek && now.Sub(e.at.used) > l.cfg.TTL/8 {
			e.at.used = now
			l.save(s, p.parent)
		}
		p = *e.at
	}
	slices.Reverse(system)
	w.blocks = append(system, w.blocks...)
}

// sent is the block that a turn of this conversation was sent with last, nil where there was none.
func (e *entry) sent(conv string) *variant {
	if e == nil {
		return nil
	}
	for _, v := range slices.Backward(e.variants) {
		if v.conv == conv && !v.ghost && v.block.Text != "" {
			return v
		}
	}
	return nil
}

// A position on disk is a version byte of its own, the conversation, parent, self, newest, the turns, and the last use (ms).
const positionVersion = 2

func encodePosition(p *position) []byte {
	b := append(make([]byte, 0, p.size()), positionVersion)
	b = appendString(b, p.conv)
	for _, h := range [...]chainHash{p.parent, p.self, p.newest} {
		b = appendHash(b, h)
	}
	b = binary.AppendUvarint(b, uint64(len(p.turns)))
	for _, h := range p.turns {
		b = appendHash(b, h)
	}
	return binary.AppendUvarint(b, uint64(storage.TimeOf(p.used)))
}

func appendHash(b []byte, h chainHash) []byte {
	b = binary.BigEndian.AppendUint64(b, h.Hi)
	return binary.BigEndian.AppendUint64(b, h.Lo)
}

// decodePosition reads what follows the version byte.
func decodePosition(d decoder) (*position, error) {
	hash := func() chainHash { return chainHash{Hi: d.uint64(), Lo: d.uint64()} }
	p := &position{conv: d.string()}
	p.parent, p.self, p.newest = hash(), hash(), hash()
	for range d.uint(positionTurns) {
		p.turns = append(p.turns, hash())
	}
	p.used = storage.Time(d.uint(1 << 62)).Std()
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return p, nil
}

// origin is where a request starts: at the beginning of a conversation, or behind a position.
type origin struct {
	seed  chainHash
	at    position
	known bool // at is what the ledger knows
	// held: the upstream holds what went before.
	held bool
}

// origin finds where req starts. ready: the scope's entries are in memory.
func (x *exchange) origin(s *scopeLedger, start chainHash, ready bool) origin {
	o := origin{seed: start}
	switch {
	case x.req.PreviousID != "":
		o.seed, o.held = heldKey(start, heldResponse, x.req.PreviousID), true
	case x.req.Held:
		o.seed, o.held = heldKey(start, heldConversation, x.req.Conversation), true
	default:
		return o
	}
	if !ready {
		return o
	}
	if o.at, o.known = x.h.ledger.position(s, o.seed); o.known {
		o.seed = o.at.self // the newest response of a server-side conversation
	}
	return o
}

// conversation is the id of the conversation behind the origin, "" where it begins one.
func (o origin) conversation() string {
	switch {
	case !o.held:
		return ""
	case o.known:
		return o.at.conv
	default:
		return "chain:" + chainText(o.seed)
	}
}

// placing waits for the id of the response, to remember where that leaves the conversation.
type placing struct {
	ledger *scopeLedger
	start  chainHash
	next   position
	conv   string // id of the server-side conversation, "" = none
}

// reached is told the id.
func (x *exchange) reached(id string) {
	p := x.placing
	if p == nil || id == "" {
		return
	}
	x.placing = nil
	p.next.self = heldKey(p.start, heldResponse, id)
	keys := []chainHash{p.next.self}
	if p.conv != "" {
		keys = append(keys, heldKey(p.start, heldConversation, p.conv))
	}
	x.h.ledger.place(p.ledger, p.next, keys...)
}

// place notes the position that an answer to this request will have. said is what the newest turn's human said.
func (x *exchange) place(s *scopeLedger, start chainHash, o origin, w walk, conv, said string) {
	if x.req.Unstored && !x.req.Held && !x.socket {
		return // nothing can continue it over HTTP
	}
	if _, ok := x.d.(interface{ ReplyID([]byte) string }); !ok {
		return
	}
	next := position{conv: conv, said: said, newest: o.at.newest}
	if o.held {
		next.parent = o.seed
	}
	for i, m := range x.req.Messages {
		if m.Role == dialect.RoleUser && len(x.req.Messages)-i <= positionTurns*8 {
			next.turns = append(next.turns, w.chain[i])
			next.newest = w.chain[i]
		}
	}
	if n := len(next.turns) - positionTurns; n > 0 {
		next.turns = slices.Clone(next.turns[n:])
	}
	x.placing = &placing{ledger: s, start: start, next: next}
	if x.req.Held {
		x.placing.conv = x.req.Conversation
	}
}

// replyHead is how much of an answer is searched for its id, in bytes.
const replyHead = 64 << 10

// reachedEncoded is watch for an answer whose bytes don't show its id: the copy is decoded once it is whole. It runs
// before the next request on the connection does, which may continue this answer.
func (x *exchange) reachedEncoded(h http.Header, t *tee) {
	reader, ok := x.d.(interface{ ReplyID([]byte) string })
	if x.placing == nil || !ok || !encoded(h) {
		return
	}
	if plain, err := decodeAnswer(h, t.join(), x.h.cfg.Limits.TeeBytes); err == nil {
		x.reached(reader.ReplyID(plain))
	}
}

func encoded(h http.Header) bool { return len(h["Content-Encoding"]) > 0 }

// watch passes an answer's bytes on to sink, and looks for the response's id in the first of them.
func (x *exchange) watch(sink func([]byte)) func([]byte) {
	reader, ok := x.d.(interface{ ReplyID([]byte) string })
	if x.placing == nil || !ok {
		return sink
	}
	var head []byte
	return func(p []byte) {
		if sink != nil {
			sink(p)
		}
		if x.placing == nil || len(head) == replyHead {
			return
		}
		head = append(head, p[:min(len(p), replyHead-len(head))]...)
		x.reached(reader.ReplyID(head))
	}
}

// goOn is compose for a request that adds to a turn which the upstream holds, as a step of a tool loop does: nothing is
// recalled, and what the system prompt had, it has again.
func (x *exchange) goOn(scope storage.Scope, secret []byte, o origin, w walk, conv string) []dialect.Insertion {
	x.persist = x.persist && o.known && o.at.said != ""
	x.turn = x.newTurn(scope, conv, chainText(o.at.newest), turnID(secret, scope, conv, o.at.newest), o.at.said)
	if !x.rights.replay {
		return nil
	}
	return x.insert(w, x.splice.placement, fence.Block{})
}
