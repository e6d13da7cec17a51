package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// exchange is one request and its answer. It belongs to the goroutine that serves it.
type exchange struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context // the request's, with the span
	start time.Time
	up    *httpclient.Upstream // set from the start where the host was intercepted
	host  string               // the host that was intercepted, "" at the reverse door
	trace *exchangeSpan

	d        dialect.Dialect // nil = passes through
	counts   bool            // asks for a count of tokens: read-only, replays only
	rights   rights
	body     *body         // as it came, held once; nil = not in memory
	stream   io.ReadCloser // where body is nil
	open     *openBody     // that, over HTTP/1
	plain    *body         // body, decoded; body itself where it has no content encoding
	encoding []string      // Content-Encoding, while it is taken out of the head
	req      *dialect.Request
	client   *identity.Profile // who sent it; set once req is
	said     string            // the human's words of the newest turn
	heard    int               // bytes of texts that were read for such words; see hear
	socket   bool              // it is a frame of a WebSocket
	side     bool              // it is no turn of a conversation: see Side

	status   Status
	memories int
	recallUS int64
	cause    string // why it failed, for the log: a kind of problem, or what problem.go has beside; "" = it did not
	detail   string // that of the problem
	persist  bool   // the turn is stored if its answer is final
	turn     persist.Turn
	splice   splice // what went into the request; see memory.go
	taken    bool   // accepted was told so
	opening  opening
	next     *ledger.Continuation // the answer's place in a conversation that the upstream keeps; nil = none, or recorded

	found []recall.Scored // room for what recall finds, kept from request to request
	lines []fence.Line    // the same for the lines of a block

	chain   []ledger.Hash // and for the hashes of a chain
	turns   [][16]byte    // and for those that recall is told of
	guarded *guardedBody  // what read reads from, kept likewise
}

// passBuffer is up to what size a body that gets no memory is read before the upstream is called, in bytes. Streaming
// bodies lose some answers that come before the body has been sent (golang.org/issue/40747).
const passBuffer = 1 << 20

// recycle gives x back for another request.
//
//go:noinline
func (x *exchange) recycle() {
	if x.guarded != nil {
		*x.guarded = guardedBody{}
	}
	if cap(x.chain) > mostChain {
		x.chain = nil
	}
	if cap(x.turns) > mostChain {
		x.turns = nil
	}
	*x = exchange{found: x.found, lines: x.lines, chain: x.chain[:0], turns: x.turns[:0], guarded: x.guarded}
	exchanges.Put(x)
}

func (x *exchange) serve() {
	x.ctx = x.r.Context()
	if x.up == nil {
		x.up = x.h.plane.choose(x.r)
	}
	if x.up == nil {
		setStatus(x.w.Header(), x.toldStatus(), "0")
		x.h.plane.leaveBody(x.w, x.r)
		problemNoUpstream.write(x.w)
		return
	}
	if isUpgrade(x.r) {
		setStatus(x.w.Header(), x.toldStatus(), "0")
		x.h.stats.statuses[x.status].Add(1)
		if x.h.fallsBack(x.r, x.mode()) {
			x.w.Header()["Upgrade"] = []string{"HTTP/1.1"} // RFC 9110, 15.5.22
			x.h.plane.leaveBody(x.w, x.r)
			problemFallback.write(x.w)
			x.finish(problemFallback.Status, relayed{})
			return
		}
		carry := tunnelFor(x.r)
		if x.enriches() {
			carry = newSocket(x).carry
			delete(x.r.Header, "Sec-Websocket-Extensions")
		}
		out := x.h.plane.upgrade(x.w, x.r, x.up, carry)
		x.finish(out.Status, out)
		return
	}
	to := x.h.route(x.r)
	x.d, x.counts = to.d, to.counts
	if x.d != nil {
		x.startSpan()
		x.allow()
	}
	if !x.read() {
		return
	}
	var inserts []dialect.Insertion
	if x.body != nil && x.d != nil && x.rights != (rights{}) {
		inserts = x.remember()
	}
	x.send(inserts)
}

// allow decides from the head alone what this request may have of memory.
func (x *exchange) allow() {
	mode := x.mode()
	if mode == ModeOff {
		x.status = StatusOff
	} else if !signed(x.r.Header) {
		x.rights = modeRights[mode]
	}
	if x.counts {
		x.rights = rights{replay: x.rights.replay}
	}
}

// mode is what the head asks of memory, and may have.
func (x *exchange) mode() Mode {
	if x.h.identity.FromPage(x.r, x.host) || x.h.deps.Recall == nil {
		return ModeOff
	}
	return parseMode(x.r.Header[headerMemory])
}

// signed says whether the head vouches for the body's bytes: whoever checks it would refuse any other.
func signed(h http.Header) bool {
	for _, name := range [...]string{
		"X-Amz-Content-Sha256", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Signature", "Signature-Input",
	} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// read takes the body into memory where memory needs it or it is small. false means that the client is gone or its body
// broken, and was answered.
func (x *exchange) read() bool {
	limit := int64(passBuffer)
	if x.rights != (rights{}) {
		limit = x.h.cfg.Limits.BodyBytes
	} else if x.r.ContentLength <= 0 || x.r.ContentLength > limit {
		x.streams(x.h.plane.requestBody(x.w, x.r))
		return true
	}
	src := x.h.plane.guard(x.w, x.r, &x.guarded)
	b, rest, err := readBody(src, x.r.ContentLength, limit, &x.h.bodies)
	if err != nil {
		x.trace.failed("request_body")
		p := problemBody
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p = problemTooSlow
		}
		setStatus(x.w.Header(), x.toldStatus(), "0")
		p.write(x.w)
		x.cause = p.kind()
		x.finish(p.Status, relayed{})
		x.trace.end(x.h.deps.Now())
		return false
	}
	x.body = b
	if rest != nil {
		x.guarded = nil // it goes on with the stream
		x.streams(struct {
			io.Reader
			io.Closer
		}{rest, src})
		if x.rights != (rights{}) {
			x.status, x.rights = StatusTooLarge, rights{}
		}
	}
	return true
}

// streams has the body go to the upstream as it comes.
func (x *exchange) streams(src io.ReadCloser) {
	if x.stream = src; x.r.ProtoMajor == 1 && x.r.ContentLength != 0 {
		x.open = newOpenBody(x.w, x.r, src)
		x.stream = x.open
	}
}

// remember works out what to insert. Whatever goes wrong in it, the original goes out.
func (x *exchange) remember() (inserts []dialect.Insertion) {
	defer x.h.guard("remember", func() {
		x.status, x.memories, x.persist, x.splice, x.next, inserts = StatusUnavailable, 0, false, splice{}, nil, nil
	})
	var err error
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(x.r.Header["Content-Encoding"], ",")))
	x.plain = x.body
	if encoding != "" && encoding != "identity" {
		if x.plain, err = decodeRequest(encoding, x.body.bytes, x.h.cfg.Limits.BodyBytes, &x.h.bodies); err != nil {
			x.status = StatusUnsupported
			if errors.Is(err, errTooLarge) {
				x.status = StatusTooLarge
			}
			return nil
		}
	}
	if x.req, err = x.d.Parse(x.plain.bytes); err != nil {
		x.status = StatusUnsupported
		return nil
	}
	x.client = x.h.identity.Profile(x.r.Header, x.req)
	x.trace.model(x.req.Model)
	secret, scope, ok := x.whose()
	if !ok {
		return nil
	}
	if x.demote() != nil {
		x.status = StatusUnsupported
		return nil
	}
	x.recognise()
	return x.compose(secret, scope)
}

// guard is deferred around memory code: a panic in it is counted and logged without its value, which may hold content.
func (h *Handler) guard(what string, then func()) {
	if p := recover(); p != nil {
		h.stats.Panics.Add(1)
		h.log.Error("panic", "in", what, "stack", string(debug.Stack()))
		if then != nil {
			then()
		}
	}
}

// send takes the request to the upstream and its answer to the client.
func (x *exchange) send(inserts []dialect.Insertion) {
	defer x.letGo()
	defer x.h.guardAbort(x)
	if x.ctx != x.r.Context() {
		x.r = x.r.WithContext(x.ctx)
	}
	resp, err := x.roundTrip(inserts)
	if err == nil && len(inserts) > 0 {
		resp = x.unharmed(resp)
	}
	x.letGo() // a stream may go on for minutes, and the request is not needed any more
	x.h.stats.statuses[x.status].Add(1)
	setStatus(x.w.Header(), x.toldStatus(), strconv.Itoa(x.memories))
	x.trace.memory(x.status, x.memories)
	early := x.open.answer(x.w.Header())
	if err != nil {
		x.failed(err)
		if early {
			x.open.abandon()
		}
		return
	}
	x.trace.answered(resp.StatusCode)
	accepted := resp.StatusCode/100 == 2
	if accepted && !begunStream(resp) {
		x.accepted()
	}
	t := x.tee(resp)
	var sink func([]byte)
	if t != nil {
		sink = t.write
	}
	if accepted {
		sink = x.accepting(x.watch(sink))
	}
	out := x.h.plane.relay(x.w, x.r, resp, sink)
	if accepted { // and nothing of a body reached the client
		x.accepted()
	}
	x.hand(resp, t, out)
	x.finish(resp.StatusCode, out)
	out.abort()
	if early {
		x.open.abandon()
	}
}

// failed tells the client what went wrong with the upstream, if it is still there.
func (x *exchange) failed(err error) {
	x.trace.failed("upstream")
	code := 0 // the client is gone
	p, tell := problemFor(x.r, x.up, err)
	if tell {
		p.write(x.w)
		code = p.Status
	}
	if x.cause, x.detail = p.kind(), p.Detail; !tell {
		x.cause, x.detail = saidGone(x.ctx, err), ""
	}
	x.finish(code, relayed{})
	x.trace.end(x.h.deps.Now())
	if !tell {
		panic(http.ErrAbortHandler) // or net/http would answer 200
	}
}

// letGo gives the request's body back. The transport may hold it for longer.
func (x *exchange) letGo() {
	if x.plain != nil && x.plain != x.body {
		x.plain.lease.Release()
	}
	if x.body != nil {
		x.body.lease.Release()
	}
	x.req.Release()
	x.body, x.plain, x.req, x.said = nil, nil, nil, ""
}

// guardAbort lets http.ErrAbortHandler through, which ends the client's connection, and nothing else is expected.
func (h *Handler) guardAbort(x *exchange) {
	if p := recover(); p != nil {
		if p != http.ErrAbortHandler {
			h.stats.Panics.Add(1)
			h.log.Error("panic", "in", "exchange", "stack", string(debug.Stack()))
			x.trace.failed("panic")
			x.trace.end(h.deps.Now())
		}
		panic(http.ErrAbortHandler)
	}
}

// roundTrip sends the body with the insertions, or as it came. An enriched body leaves decoded, and its head says so.
func (x *exchange) roundTrip(inserts []dialect.Insertion) (*http.Response, error) {
	body := httpclient.StreamBody(x.stream, x.r.ContentLength)
	switch {
	case len(inserts) > 0:
		body = httpclient.NewBody(&x.plain.lease, dialect.Splice(x.plain.bytes, inserts)...)
		x.encoding = x.r.Header["Content-Encoding"]
		delete(x.r.Header, "Content-Encoding")
	case x.body != nil:
		body = httpclient.NewBody(&x.body.lease, x.body.bytes)
		if x.encoding != nil { // the first try left without
			x.r.Header["Content-Encoding"] = x.encoding
		}
	}
	return x.up.RoundTrip(x.w, x.r, body)
}

// unharmed looks at the answer to an enriched request. Where the upstream refuses it, the original bytes are sent, once,
// and their answer is the client's.
func (x *exchange) unharmed(resp *http.Response) *http.Response {
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		if resp.StatusCode/100 == 2 && streamed(resp.Header) {
			return x.unharmedStream(resp)
		}
		return resp
	}
	resp, head, _ := peekAnswer(x.h, resp, refusalTime, nil)
	template, length, content := x.whyRefused(resp, head)
	if resp.StatusCode == http.StatusInternalServerError && !template && !length {
		return resp
	}
	original, ok := x.original(resp)
	if ok && original.StatusCode/100 == 2 {
		x.rejected(template, !template && !length && !content)
	}
	return original
}

// original is the answer to the original bytes, in the place of a refusal; ok is false where there is none, and the refusal is all
// there is to tell.
func (x *exchange) original(refusal *http.Response) (resp *http.Response, ok bool) {
	resp, err := x.roundTrip(nil)
	if err != nil {
		return refusal, false
	}
	_ = refusal.Body.Close()
	x.h.stats.Retries.Add(1)
	x.status, x.memories = StatusRejected, 0
	return resp, true
}

// whyRefused reads in the beginning of a refusal whether a template, the length or what was said is at fault. One that can't
// be read says nothing.
func (x *exchange) whyRefused(resp *http.Response, head []byte) (template, length, content bool) {
	defer x.h.guard("read refusal", nil)
	length = resp.StatusCode == http.StatusRequestEntityTooLarge
	why, err := decodeAnswer(resp.Header, head, refusalPeek)
	if err != nil {
		return false, length, false
	}
	return dialect.TemplateRefusal(why), length || dialect.ContextLength(resp.StatusCode, why), dialect.ContentRefusal(why)
}

// tee starts the copy of an answer that somebody will read.
func (x *exchange) tee(resp *http.Response) *tee {
	if x.d == nil || resp.StatusCode/100 != 2 || !x.persist && x.trace == nil && !(x.next != nil && encoded(resp.Header)) && !x.splice.walk.Ambiguous() {
		return nil
	}
	return &tee{limit: x.h.cfg.Limits.TeeBytes, budget: &x.h.tees}
}

// hand gives a finished answer to the assembler.
func (x *exchange) hand(resp *http.Response, t *tee, out relayed) {
	now := x.h.deps.Now()
	if t == nil {
		x.trace.end(now)
		return
	}
	// A client may hang up once it has read the stream's last event, before the upstream has closed it; and an upstream may close it uncleanly.
	left := out.Failed != failedNone && streamed(resp.Header)
	if t.over || !out.Complete && !left {
		if t.over {
			x.h.stats.TeeSkipped.Add(1)
		} else {
			x.h.stats.NotFinal.Add(1)
			x.trace.failed("aborted")
		}
		t.release()
		x.trace.end(now)
		return
	}
	x.reachedEncoded(resp.Header, t)
	x.h.assembler.submit(&answer{
		d: x.d, header: resp.Header, tee: t, turn: x.turn, persist: x.persist, trace: x.trace, ended: now, left: left,
		sent: x.splice.walk.Sent(), system: x.splice.system,
	})
}

// finish writes the one line that tells what became of the exchange. Its span may end later, with the assembler.
func (x *exchange) finish(code int, out relayed) {
	if !x.h.log.Enabled(x.ctx, slog.LevelInfo) {
		return
	}
	now := x.h.deps.Now()
	attrs := []slog.Attr{
		slog.String("method", x.r.Method),
		slog.String("path", x.loggedPath()),
		slog.Int("code", code),
		slog.String("upstream", x.up.Name),
		slog.String("memory", string(x.status)),
		slog.Int("memories", x.memories),
		slog.Int64("recallUs", x.recallUS),
		slog.Int64("bytes", out.Bytes),
		slog.Float64("ms", float64(now.Sub(x.start).Microseconds())/1000),
	}
	if !out.FirstByte.IsZero() {
		attrs = append(attrs, slog.Float64("firstByteMs", float64(out.FirstByte.Sub(x.start).Microseconds())/1000))
	}
	switch {
	case out.Failed == failedClient:
		x.cause = saidGone(x.ctx, out.Err)
	case out.Failed == failedUpstream:
		x.cause = saidBroken(x.up, out.Err)
	case out.Err != nil: // an upgrade that was refused
		p := explain(x.up, out.Err)
		x.cause, x.detail = p.kind(), p.Detail
	}
	if x.cause != "" {
		attrs = append(attrs, slog.String("failed", x.cause))
	}
	if x.detail != "" {
		attrs = append(attrs, slog.String("detail", x.detail))
	}
	x.h.log.LogAttrs(x.ctx, slog.LevelInfo, "exchange", attrs...)
}

// loggedPath is what the log tells of where a request went: the known end of a path that Remora knows, another one redacted, for a path may
// hold keys and names.
func (x *exchange) loggedPath() string {
	path := x.r.URL.Path
	for _, to := range x.h.routes {
		if strings.HasSuffix(path, to.suffix) {
			return to.suffix
		}
	}
	if redact := x.h.deps.Redact; redact != nil {
		return redact(path[:min(len(path), maxLoggedPath)])
	}
	return ""
}

const maxLoggedPath = 256 // bytes

// newTurn is the turn as far as the request tells it. Its id follows when its answer is read.
func (x *exchange) newTurn(scope storage.Scope, conv, chain, text string) persist.Turn {
	t := persist.Turn{Scope: scope, Conversation: conv, Chain: chain, Model: x.req.Model, Source: "proxy"}
	if x.persist {
		t.Messages = append(make([]persist.Message, 0, 2), persist.Message{Role: storage.RoleUser, Text: text, Time: x.h.stamp(x.start)})
	}
	return t
}
