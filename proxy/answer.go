package proxy

import (
	"net/http"

	"github.com/remora-proxy/remora/proxy/ledger"
)

// What is learned from an answer while it passes to the client.

// accept records that the upstream has accepted the request.
func (x *exchange) accept() {
	if !x.plan.accepted {
		x.plan.accepted = true
		x.plan.walk.Confirm()
	}
}

// hasBegun reports whether the first bytes of a stream are here, so that accept
// may follow them: nothing keeps them from the client, and the end reaches it
// only after relay has returned. Of another answer the client may have all by
// then.
func hasBegun(resp *http.Response) bool {
	b, own := resp.Body.(waitingBody)
	return own && resp.ContentLength < 0 && b.Ready()
}

// watchAnswer returns a sink that passes bytes on to sink. It accepts the
// request once the client has the first of them, and looks in them for the
// first event and the id of the response.
func (x *httpExchange) watchAnswer(sink func([]byte)) func([]byte) {
	if sink = x.watchID(sink); !x.plan.walk.Recording() {
		return sink
	}
	return func(p []byte) {
		x.accept()
		if x.first.expect != expectNothing {
			x.learnFirstEvent(p)
		}
		if sink != nil {
			sink(p)
		}
	}
}

// maxIDHead is how much of an answer is searched for its id, in bytes.
const maxIDHead = 64 << 10

// watchID returns a sink that passes bytes on to sink, and records the answer's
// position when its id has passed.
func (x *exchange) watchID(sink func([]byte)) func([]byte) {
	reader, ok := x.api.d.(identified)
	if x.plan.next == nil || !ok {
		return sink
	}
	var head []byte
	return func(p []byte) {
		if sink != nil {
			sink(p)
		}
		if x.plan.next == nil || len(head) == maxIDHead {
			return
		}
		if p = p[:min(len(p), maxIDHead-len(head))]; len(head) == 0 { // mostly in the first bytes, which need no copy then
			if x.recordPosition(reader.ReplyID(p)); x.plan.next == nil {
				return
			}
			head = append(head, p...)
			return
		}
		head = append(head, p...)
		x.recordPosition(reader.ReplyID(head))
	}
}

// recordPosition records the position of the answer with this id, once.
func (x *exchange) recordPosition(id string) {
	if x.plan.next != nil && id != "" {
		var next *ledger.Continuation
		next, x.plan.next = x.plan.next, nil
		next.Record(id)
	}
}

// recordEncodedPosition is for an answer with a content encoding: the whole
// copy is decoded. It runs before the next request on the connection does,
// which may continue this answer.
func (x *exchange) recordEncodedPosition(h http.Header, t *tee) {
	reader, ok := x.api.d.(identified)
	if x.plan.next == nil || !ok || !encoded(h) {
		return
	}
	defer x.h.guard("read answer", nil)
	if plain, err := decodeAnswer(h, t.join(), x.h.cfg.Limits.TeeBytes); err == nil {
		x.recordPosition(reader.ReplyID(plain))
	}
}

func encoded(h http.Header) bool { return len(h["Content-Encoding"]) > 0 }
