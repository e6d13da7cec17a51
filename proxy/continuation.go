package proxy

import (
	"net/http"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// reached records the position of the answer with this id.
func (x *exchange) reached(id string) {
	if x.next == nil || id == "" {
		return
	}
	next := x.next
	x.next = nil
	next.Record(id)
}

// identified is a dialect whose answers can be continued by their id.
type identified interface {
	ReplyID(head []byte) string
}

// place prepares the position that the answer to this request will have. said is what the person said in the newest turn,
// before what is unanswered before it.
func (x *exchange) place(conv, said string, before []string) {
	if x.req.Unstored && !x.req.Held && !x.socket {
		return // no HTTP request can continue it
	}
	if _, ok := x.d.(identified); !ok {
		return
	}
	x.next = x.splice.walk.Continue(x.req, conv, said, before)
}

// replyHead is how much of an answer is searched for its id, in bytes.
const replyHead = 64 << 10

// reachedEncoded is watch for an answer whose bytes don't show its id: the copy is decoded once it is whole. It runs
// before the next request on the connection does, which may continue this answer.
func (x *exchange) reachedEncoded(h http.Header, t *tee) {
	reader, ok := x.d.(identified)
	if x.next == nil || !ok || !encoded(h) {
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
	if x.next == nil || !ok {
		return sink
	}
	var head []byte
	return func(p []byte) {
		if sink != nil {
			sink(p)
		}
		if x.next == nil || len(head) == replyHead {
			return
		}
		if p = p[:min(len(p), replyHead-len(head))]; len(head) == 0 { // in the first, as a rule, which needs no copy then
			if x.reached(reader.ReplyID(p)); x.next == nil {
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
func (x *exchange) goOn(scope storage.Scope, conv string) []dialect.Insertion {
	w := &x.splice.walk
	x.persist = x.persist && w.Said != ""
	x.turn = x.newTurn(scope, conv, w.TurnKey(conv), inOrder(w.Before, w.Said))
	if !x.rights.replay {
		return nil
	}
	return x.insert(x.splice.placement, fence.Block{})
}
