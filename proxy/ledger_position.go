package proxy

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/proxy/dialect"
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
	// said is what the human said in that turn, for as long as it has no final answer, and before what stands unanswered before
	// it. They are not redacted yet, so they are never stored: a restart in the middle of a tool loop loses the turn.
	said   string
	before []string
}

const (
	positionTurns    = 64
	positionParents  = 256 // positions that are followed back
	positionOverhead = 160
)

func (p *position) size() int64 {
	n := positionOverhead + int64(len(p.conv)+len(p.said)+16*len(p.turns))
	for _, words := range p.before {
		n += int64(16 + len(words))
	}
	return n
}

// heldKey is where requests start that continue something which the upstream holds: a response, or a conversation.
func heldKey(start chainHash, kind byte, id string) chainHash {
	b := append(appendHash(make([]byte, 0, 17+len(id)), start), kind)
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
	l.answered(s, p)
	for _, key := range keys {
		grown := p.size()
		if e := s.entries[key]; e != nil {
			grown -= e.size()
		}
		at := p
		s.set(key, &entry{at: &at})
		l.charge(s, grown)
		l.save(s, key)
	}
}

// answered drops what was said in turns that the position p leaves behind. The step right before p may be tried again.
// Needs s.mu.
func (l *ledger) answered(s *scopeLedger, p position) {
	e := s.entries[p.parent]
	if e != nil && e.at != nil && e.at.newest == p.newest {
		e = s.entries[e.at.parent]
	}
	if e != nil && e.at != nil && e.at.said != "" {
		n := e.at.size()
		e.at.said, e.at.before = "", nil
		l.charge(s, e.at.size()-n)
	}
}

// hold adds to w what the upstream holds up to the position at key: turns, memories that stand there, and blocks that were
// put into the system prompt, which the upstream does not keep.
func (l *ledger) hold(s *scopeLedger, w *walk, key chainHash, peek bool) {
	now := l.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.heldTurns, w.heldIDs = map[chainHash]struct{}{}, map[string]struct{}{}
	var system []replayed
	for range positionParents {
		e := s.entries[key]
		if key == (chainHash{}) || e == nil || e.at == nil {
			break
		}
		p := e.at
		if !peek && now.Sub(p.used) > l.cfg.TTL/8 {
			p.used = now
			l.save(s, key)
		}
		for _, h := range slices.Backward(p.turns) {
			w.heldTurns[h] = struct{}{}
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
		key = p.parent
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

func appendPosition(b []byte, p *position) []byte {
	b = append(b, positionVersion)
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

// decodePosition reads what follows the version byte.
func decodePosition(d decoder) (*position, error) {
	p := &position{conv: d.string()}
	p.parent, p.self, p.newest = d.hash(), d.hash(), d.hash()
	for range d.uint(positionTurns) {
		p.turns = append(p.turns, d.hash())
	}
	p.used = storage.Time(d.uint(1 << 62)).Std()
	if d.broken() || len(d.rest) > 0 {
		return nil, errEntry
	}
	return p, nil
}
