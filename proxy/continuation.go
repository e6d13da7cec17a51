package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

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
		return chainPrefix + chainText(o.seed)
	}
}

// placing is what will be remembered once the response has told its id: where it leaves the conversation.
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

// identified is a dialect whose answers can be continued by their id.
type identified interface {
	ReplyID(head []byte) string
}

// place notes the position that an answer to this request will have. said is what the newest turn's human said, before what was said
// before that and has no answer.
func (x *exchange) place(s *scopeLedger, start chainHash, o origin, w walk, conv, said string, before []string) {
	if x.req.Unstored && !x.req.Held && !x.socket {
		return // nothing can continue it by an HTTP request
	}
	if _, ok := x.d.(identified); !ok {
		return
	}
	next := position{conv: conv, said: strings.Clone(said), newest: o.at.newest}
	for _, words := range before {
		next.before = append(next.before, strings.Clone(words))
	}
	if o.held {
		next.parent = o.seed
	}
	for i := x.req.Turn; i >= 0 && len(next.turns) < positionTurns; i = x.req.Previous(i) {
		next.turns = append(next.turns, w.chain[i])
	}
	if len(next.turns) > 0 {
		next.newest = next.turns[0]
	}
	slices.Reverse(next.turns)
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
	reader, ok := x.d.(identified)
	if x.placing == nil || !ok || !encoded(h) {
		return
	}
	defer x.h.guard("read answer", nil)
	if plain, err := decodeAnswer(h, t.join(), x.h.cfg.Limits.TeeBytes); err == nil {
		x.reached(reader.ReplyID(plain))
	}
}

func encoded(h http.Header) bool { return len(h["Content-Encoding"]) > 0 }

// watch passes an answer's bytes on to sink, and looks for the response's id in the first of them.
func (x *exchange) watch(sink func([]byte)) func([]byte) {
	reader, ok := x.d.(identified)
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
		if p = p[:min(len(p), replyHead-len(head))]; len(head) == 0 { // in the first, as a rule, which needs no copy then
			if x.reached(reader.ReplyID(p)); x.placing == nil {
				return
			}
			head = append(head, p...)
			return
		}
		head = append(head, p...)
		x.reached(reader.ReplyID(head))
	}
}

// goOn is compose for a request that adds to a turn which the upstream holds, as a step of a tool loop does: nothing is
// recalled, and what the system prompt had, it has again.
func (x *exchange) goOn(scope storage.Scope, o origin, w walk, conv string) []dialect.Insertion {
	x.persist = x.persist && o.known && o.at.said != ""
	x.turn = x.newTurn(scope, conv, chainText(o.at.newest), inOrder(o.at.before, o.at.said))
	if !x.rights.replay {
		return nil
	}
	return x.insert(w, x.splice.placement, fence.Block{})
}
