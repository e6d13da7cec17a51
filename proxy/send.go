package proxy

import (
	"bytes"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/ledger"
)

// send is the fifth stage: it takes the request to the upstream and the answer
// to the client.
func (x *httpExchange) send() {
	defer func() {
		x.release()
		x.body.started.leave() // nothing is sent any more
	}()
	defer x.guardAbort()
	if x.ctx != x.r.Context() {
		x.r = x.r.WithContext(x.ctx)
	}
	resp, err := x.roundTrip(x.repairer().edits(x.plan.inserts, x.plan.repairs))
	if err == nil {
		var over bool
		if resp, over = x.repairer().repair(resp); !over && len(x.plan.inserts) > 0 && !x.continuesThread() {
			resp = x.retryRefused(resp)
		}
	}
	x.release() // a stream may last for minutes, and the request is not needed any more
	x.h.stats.statuses[x.plan.status].Add(1)
	setStatus(x.w.Header(), x.statusHeader(), strconv.Itoa(x.plan.memories))
	x.trace.memory(x.plan.status, x.plan.memories)
	early := x.body.open.answer(x.w.Header())
	if err != nil {
		x.fail(err)
	} else {
		x.relay(resp).abort()
	}
	if early {
		x.body.open.abandon()
	}
}

// continuesThread reports whether the request continues a thread, which it may
// do once: sent again, it would be refused for that.
func (x *exchange) continuesThread() bool {
	return x.read.req != nil && x.read.req.Threaded && x.read.req.PreviousID != ""
}

// relay copies the answer to the client, learns from it as it passes, and hands
// a copy of it to the observers.
func (x *httpExchange) relay(resp *http.Response) relayed {
	x.trace.answered(resp.StatusCode)
	accepted := resp.StatusCode/100 == 2
	if accepted && !hasBegun(resp) {
		x.accept()
	}
	var hold func([]byte, bool) bool
	if accepted && x.plan.walk.Recording() {
		hold = x.holdEnd()
	}
	var sink func([]byte)
	t := x.newTee(resp)
	if t != nil {
		sink = t.write
	}
	if accepted {
		sink = x.watchAnswer(sink)
	}
	out := x.h.plane.relay(x.w, x.r, resp, hold, sink)
	if accepted { // even if nothing of a body reached the client
		x.accept()
	}
	x.assemble(resp, t, out)
	x.finish(outcome{relayed: out})
	return out
}

// fail tells the client what went wrong with the upstream, if it is still
// there.
func (x *httpExchange) fail(err error) {
	x.trace.failed("upstream")
	p, present := problemFor(x.r, x.up, err)
	out := outcome{cause: p.Kind(), detail: p.Detail}
	if present {
		p.Write(x.w)
		out.Status = p.Status
	} else {
		out.cause, out.detail = causeOfLeaving(x.ctx, err), ""
	}
	x.finish(out)
	x.h.recordReceipt(finishReceipt(&x.exchange, &out.relayed))
	x.trace.end(x.h.deps.Now())
	if !present {
		panic(http.ErrAbortHandler) // or net/http would answer 200
	}
}

// release gives back the memory of the request. It may be called twice.
func (x *httpExchange) release() {
	x.body.release()
	x.read.release()
	x.plan.inserts, x.plan.repairs = nil, nil // they refer to it
}

// guardAbort is deferred. It passes http.ErrAbortHandler on, which ends the
// client's connection; any other panic is a defect, is counted, and ends it
// too.
func (x *httpExchange) guardAbort() {
	if p := recover(); p != nil {
		if p != http.ErrAbortHandler {
			x.h.stats.Panics.Add(1)
			x.h.stats.failures.Add("panic")
			x.h.log.Error("panic", "in", "exchange", "stack", string(debug.Stack()))
			x.trace.failed("panic")
			x.trace.end(x.h.deps.Now())
		}
		panic(http.ErrAbortHandler)
	}
}

// roundTrip sends the body with the insertions, or unchanged. An enriched body
// leaves decoded, without Content-Encoding.
func (x *httpExchange) roundTrip(inserts []dialect.Insertion) (*http.Response, error) {
	b := &x.body
	body := httpclient.StreamBody(b.stream, x.r.ContentLength)
	switch {
	case len(inserts) > 0:
		body = httpclient.NewBody(&b.plain.lease, dialect.Splice(b.plain.bytes, inserts)...)
		b.encoding = x.r.Header["Content-Encoding"]
		delete(x.r.Header, "Content-Encoding")
	case b.raw != nil:
		body = httpclient.NewBody(&b.raw.lease, b.raw.bytes)
		if b.encoding != nil { // the first try left without it
			x.r.Header["Content-Encoding"] = b.encoding
		}
	}
	return x.up.RoundTrip(x.w, x.r, body)
}

// What is learned from an answer while it passes to the client.

// accept records that the upstream has accepted the request.
func (x *exchange) accept() {
	if !x.plan.accepted {
		x.plan.accepted = true
		x.plan.walk.Confirm()
	}
}

// storedWithin is how long the end of an answer may wait for the journal to
// have what was inserted for it. The upstream takes longer than that, so it has
// it by then as a rule.
const storedWithin = 100 * time.Millisecond

// holdEnd returns what keeps the end of an answer from the client until what
// was inserted for it is in the journal: once the client has all of it, the
// process may be killed, and the next request must repeat the insertion. The
// first piece of a stream does not wait, unless it looks like the last.
func (x *httpExchange) holdEnd() func(p []byte, ends bool) (over bool) {
	first := true
	return func(p []byte, ends bool) bool {
		if first && !ends && !mayEnd(p) {
			first = false
			return false
		}
		x.accept()
		if x.plan.late = !x.plan.walk.Stored(storedWithin); x.plan.late {
			x.h.stats.LedgerLate.Add(1)
		}
		return true
	}
}

// endMarks are in the last events of streams. A stream that is short enough to
// come in one piece, and has none of them, is not held.
var endMarks = [...][]byte{
	[]byte(`"stop_reason":"`), []byte("message_stop"), []byte(`"finish_reason":"`), []byte("[DONE]"), []byte("response.completed"),
	[]byte("response.incomplete"), []byte(`"done":true`), []byte(`"finishReason"`),
}

func mayEnd(p []byte) bool {
	return slices.ContainsFunc(endMarks[:], func(mark []byte) bool { return bytes.Contains(p, mark) })
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
		if p = p[:min(len(p), maxIDHead-len(head))]; len(head) == 0 { // mostly in the first bytes, which then need no copy
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
	if plain, release, err := t.decode(h); err == nil {
		x.recordPosition(reader.ReplyID(plain))
		release()
	}
}

func encoded(h http.Header) bool { return len(h["Content-Encoding"]) > 0 }

// statusHeader returns the exchange's status, followed by Deps.Note if there is
// any.
func (x *exchange) statusHeader() Status {
	if x.h.deps.Note != nil {
		if note := x.h.deps.Note(); note != "" {
			return x.plan.status + Status("; "+note)
		}
	}
	return x.plan.status
}
