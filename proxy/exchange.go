package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"

	"github.com/remora-proxy/remora/proxy/ledger"
)

// call is a request as far as its head tells.
type call struct {
	h     *Handler
	r     *http.Request
	ctx   context.Context // r's, with the span
	start time.Time
	up    *httpclient.Upstream
	host  string        // the host that was intercepted, "" at the reverse proxy
	api   route         // without a dialect the request passes through
	frame bool          // it came as a frame of a WebSocket
	trace *exchangeSpan // nil = not traced
}

// exchange takes a call through the stages that memory needs, each of which
// works on what the one before it has found:
//
//	head     rights   what the request may have of memory        rights.go
//	parse    read     the request in its body                    parse.go, words.go
//	resolve  caller   whose memory it is about                   parse.go
//	plan     plan     what to insert, what to store afterwards   plan.go, search.go
//	send     outcome  the answer, relayed to the client          send.go, refusal.go
//	observe           the turn, the span, the line in the log    observe.go, assemble.go
//
// An HTTP request goes through all of them (httpExchange); a frame of a
// WebSocket (frameExchange) has its own way of being sent. An exchange belongs
// to the goroutine that serves it.
type exchange struct {
	call
	rights rights
	read   reading
	class  policy.Class // what may go to this upstream and model
	plan   plan
	room   room
}

// httpExchange is one HTTP request and its answer.
type httpExchange struct {
	exchange
	w     http.ResponseWriter
	body  payload
	first firstEventWatch
}

// payload is the body of a request, held in memory once or streamed.
type payload struct {
	raw      *body         // as received; nil = not in memory
	plain    *body         // raw, decoded; raw itself if it has no content encoding
	stream   io.ReadCloser // if raw is nil
	open     *openBody     // stream, over HTTP/1
	started  *startedBody  // stream, if part of it was read first
	encoding []string      // Content-Encoding, while it is removed from the head
}

// release gives the body's memory back. The transport may hold it for longer.
func (p *payload) release() {
	if p.plain != nil && p.plain != p.raw {
		p.plain.lease.Release()
	}
	if p.raw != nil {
		p.raw.lease.Release()
	}
	p.raw, p.plain = nil, nil
}

// room is memory that one exchange leaves to the next.
type room struct {
	found   []recall.Scored // for what recall finds
	lines   []fence.Line    // for the lines of a block
	chain   []ledger.Hash   // for the hashes of a chain
	turns   [][16]byte      // for those that recall is given
	guarded *guardedBody    // for readBody
}

// Limits on the room that is kept, in elements. More is rare, and would hold 16
// KiB of memories or 4 KiB of hashes.
const (
	maxKeptMemories = 32
	maxKeptHashes   = 256
)

// keep keeps what another exchange may use.
func (m *room) keep() {
	if m.guarded != nil {
		*m.guarded = guardedBody{}
	}
	if cap(m.chain) > maxKeptHashes {
		m.chain = nil
	}
	if cap(m.turns) > maxKeptHashes {
		m.turns = nil
	}
	m.chain, m.turns = m.chain[:0], m.turns[:0]
}

// keepFound keeps the room of found, which must not be read any more.
func (m *room) keepFound(found []recall.Scored) {
	found = found[:cap(found)] // rejected memories are behind the end
	kept := m.found[:cap(m.found)]
	if len(found) == 0 || len(kept) > 0 && &found[0] == &kept[0] {
		clear(kept) // a search that was cut short leaves what it had
		return
	}
	clear(kept)
	if clear(found); len(found) <= maxKeptMemories {
		m.found = found[:0]
	}
}

// exchanges are pooled to keep them off the stack. A stream holds its
// goroutine's stack for minutes, and the collector shrinks it from 16 KiB to 8
// only if less than 3.2 KiB are in use while the stream waits for its next
// event; net/http uses 1.2 of them.
var exchanges = sync.Pool{New: func() any { return new(httpExchange) }}

// recycle gives x back for another request.
//
//go:noinline
func (x *httpExchange) recycle() {
	x.room.keep()
	*x = httpExchange{exchange: exchange{room: x.room}}
	exchanges.Put(x)
}

// serve takes the request through all stages.
func (x *httpExchange) serve() {
	x.ctx = x.r.Context()
	if x.up == nil {
		x.up = x.h.plane.choose(x.r)
	}
	switch {
	case x.up == nil:
		setStatus(x.w.Header(), x.statusHeader(), "0")
		x.h.plane.leaveBody(x.w, x.r)
		problemNoUpstream.Write(x.w)
		x.h.stats.failures.Add(problemNoUpstream.Kind())
		return
	case isUpgrade(x.r):
		x.upgrade()
		return
	}
	x.head()
	if !x.readBody() {
		return
	}
	if x.body.raw != nil && x.rights != (rights{}) {
		x.remember(&x.body)
	}
	if x.body.raw != nil && x.binds() {
		x.repairer().load(&x.body)
	}
	x.send()
}

// head finds the API and the rights of the request.
func (x *exchange) head() {
	if x.api = x.h.route(x.r); x.api.d != nil {
		x.startSpan()
		x.rights, x.plan.status = x.headRights()
	}
}

// remember takes the call through parse, resolve and plan. Whatever fails in
// them, the original goes out.
func (x *exchange) remember(p *payload) {
	defer x.h.guard("remember", func() { x.plan = plan{status: StatusUnavailable} })
	if x.plan.status = x.parse(p); x.plan.status != "" {
		return
	}
	var who caller
	if who, x.plan.status = x.resolve(); x.plan.status != "" {
		return
	}
	if x.read.demoteResults() != nil {
		x.plan.status = StatusUnsupported
		return
	}
	x.read.readNewest()
	if x.rights = x.policyRights(); x.rights == (rights{}) {
		x.plan.status = StatusOff
		return
	}
	x.rights, x.plan.side = x.requestRights()
	x.compose(who, p)
}

// guard is deferred around memory code: a panic in it is counted and logged
// without its value, which may hold content.
func (h *Handler) guard(what string, then func()) {
	if p := recover(); p != nil {
		h.stats.Panics.Add(1)
		h.log.Error("panic", "in", what, "stack", string(debug.Stack()))
		if then != nil {
			then()
		}
	}
}

// upgrade takes a request to leave HTTP to the upstream, or answers 426 to
// clients that then continue over HTTP, where they get memory.
func (x *httpExchange) upgrade() {
	setStatus(x.w.Header(), x.statusHeader(), "0")
	x.h.stats.statuses[x.plan.status].Add(1)
	if x.fallsBack() {
		x.w.Header()["Upgrade"] = []string{"HTTP/1.1"} // RFC 9110, 15.5.22
		x.h.plane.leaveBody(x.w, x.r)
		problemFallback.Write(x.w)
		x.log(outcome{relayed: relayed{Status: problemFallback.Status}})
		return
	}
	carry := listener.TunnelFor(x.r)
	if x.enrichesFrames() {
		carry = newSocket(x.call).carry
		delete(x.r.Header, "Sec-Websocket-Extensions")
	}
	x.finish(outcome{relayed: x.h.plane.upgrade(x.w, x.r, x.up, carry)})
}

// passBuffer is the largest body, in bytes, that is buffered before dialing the
// upstream when memory is not needed. Streamed bodies lose some answers that
// come before the body has been sent (golang.org/issue/40747).
const passBuffer = 1 << 20

// readBody reads the body into memory if memory needs it or it is small. It
// reports false if the client has left or its body is broken, and has answered
// then.
func (x *httpExchange) readBody() bool {
	limit := int64(passBuffer)
	if x.rights != (rights{}) || x.binds() {
		limit = x.h.cfg.Limits.BodyBytes
	} else if x.r.ContentLength <= 0 || x.r.ContentLength > limit {
		x.streamBody(x.h.plane.requestBody(x.w, x.r))
		return true
	}
	src := x.h.plane.guard(x.w, x.r, &x.room.guarded)
	b, rest, err := readBody(src, x.r.ContentLength, limit, &x.h.bodies)
	if err != nil {
		x.trace.failed("request_body")
		p := problemBody
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p = problemTooSlow
		}
		setStatus(x.w.Header(), x.statusHeader(), "0")
		p.Write(x.w)
		x.finish(outcome{relayed: relayed{Status: p.Status}, cause: p.Kind()})
		x.trace.end(x.h.deps.Now())
		return false
	}
	x.body.raw = b
	if rest != nil {
		x.room.guarded = nil // the stream keeps it
		x.body.started, _ = rest.(*startedBody)
		x.streamBody(rest)
		x.rights, x.plan.status = x.streamedRights()
	}
	return true
}

// streamBody makes the body go to the upstream as it comes.
func (x *httpExchange) streamBody(src io.ReadCloser) {
	if x.body.stream = src; x.r.ProtoMajor == 1 && x.r.ContentLength != 0 {
		x.body.open = newOpenBody(x.w, x.r, src)
		x.body.stream = x.body.open
	}
}

// route is one API: the path of its requests ends in suffix, which begins with
// a segment.
type route struct {
	suffix string
	d      dialect.Dialect // nil = none
	counts bool            // the answer is a count of tokens, and the request is not part of a conversation
	side   bool            // the request is about a conversation, and no turn of it
	within string          // what the path must contain besides
}

// Where Google's paths name a model.
const (
	modelsPath = "/models/"
	claudePath = "/publishers/anthropic/models/"
)

// pathModel returns the model that a path of Google's names, "" if it names
// none.
func pathModel(path string) string {
	_, model, ok := strings.Cut(path, modelsPath)
	if !ok {
		return ""
	}
	model, _, _ = strings.Cut(model, ":")
	return model
}

// routes returns all paths that get a memory. Any other passes through.
func routes() []route {
	return []route{
		{suffix: "/chat/completions", d: dialect.Chat{}},
		{suffix: "/v1/messages", d: dialect.Messages{}}, // whole: OpenAI has a /messages of its own, under /v1/threads
		{suffix: "/v1/messages/count_tokens", d: dialect.Messages{}, counts: true},
		{suffix: "/responses", d: dialect.Responses{}},
		{suffix: "/responses/input_tokens", d: dialect.Responses{}, counts: true},
		{suffix: "/responses/compact", d: dialect.Responses{}, side: true},
		{suffix: "/api/chat", d: dialect.Ollama{}},
		{suffix: ":generateContent", d: dialect.Gemini{}, within: modelsPath},
		{suffix: ":streamGenerateContent", d: dialect.Gemini{}, within: modelsPath},
		{suffix: ":countTokens", d: dialect.Gemini{}, counts: true, within: modelsPath},
		{suffix: ":rawPredict", d: dialect.Messages{}, within: claudePath}, // of Vertex
		{suffix: ":streamRawPredict", d: dialect.Messages{}, within: claudePath},
	}
}

// route returns the API of a request. Its dialect is nil if there is none.
func (h *Handler) route(r *http.Request) route {
	if r.Method != http.MethodPost {
		return route{}
	}
	for _, to := range h.routes {
		if strings.HasSuffix(r.URL.Path, to.suffix) && strings.Contains(r.URL.Path, to.within) {
			if to.counts && !h.cfg.Injection.CountTokens {
				return route{}
			}
			return to
		}
	}
	return route{}
}
