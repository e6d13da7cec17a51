package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/listener"
)

// socket gives memory to a WebSocket of the Responses API. The frames that
// begin a response are treated like requests, and those with its events like
// the answer. The handshake, control frames and all other messages pass
// unchanged; only compression is declined, because compressed frames can't be
// read.
//
// Events are matched with the response that was requested first in their lane
// (stream_id; those without one share a lane). Once that is uncertain, an
// answer could not be matched with its question: after a message over the body
// limit or the budget, an event over socketFrame, or more than maxPending
// responses at once, the socket continues without memory until it ends.
//
// When the listener closes, a socket on which no response is awaited gets a
// close frame and ends. One with a response in progress may finish it, within
// the drain.
type socket struct {
	x        call // the upgrade
	header   http.Header
	upstream io.Writer
	end      func()        // closes both sides
	over     chan struct{} // closed when both sides are
	finished chan struct{} // holds one: a response has ended

	toUpstream *lane // a refused message is sent again next to the client's
	toClient   *lane // the close frame is sent next to the upstream's messages

	mu      sync.Mutex
	pending []*frameExchange // the goroutine that reads the upstream answers the first
	refused int              // waiting to be sent again
	lost    bool             // nothing new is taken in
	blind   bool             // answers can no longer be matched
	lanes   bool             // some response was requested in a lane of its own
	again   sync.WaitGroup   // of originals that are being sent again
}

// frameExchange is a response that was requested over a socket.
type frameExchange struct {
	exchange
	lane     string // stream_id
	original []byte // sent again if the enriched frame is refused, charged to the budget of bodies; nil = none
	tee      *tee
	bytes    int64
	began    bool // an event of it has been relayed
}

const (
	maxPending = 16
	// socketFrame is the largest event that is examined, in bytes. Larger ones
	// pass, and their answer is not remembered.
	socketFrame = 8 << 20
	// maxFragments is the maximum number of frames of a message that is
	// examined.
	maxFragments = 1 << 10
)

func newSocket(x call) *socket {
	return &socket{
		x: x, header: x.r.Header.Clone(), toUpstream: newLane(), toClient: newLane(), over: make(chan struct{}), finished: make(chan struct{}, 1),
	}
}

// carry implements carrier.
func (s *socket) carry(ctx context.Context, client, upstream io.ReadWriteCloser) (fromClient, fromUpstream int64) {
	closeBoth := sync.OnceFunc(func() {
		_ = client.Close()
		_ = upstream.Close()
		close(s.over)
	})
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	s.upstream, s.end = upstream, closeBoth
	idle := s.x.h.plane.stream.ReadIdle
	var asks sync.WaitGroup
	asks.Go(func() {
		defer closeBoth()
		up := &pump{
			src: client, dst: upstream, limit: int(s.x.h.cfg.Limits.BodyBytes), budget: &s.x.h.bodies, to: s.toUpstream,
			change: s.asked, missed: func() { s.lose(false) }, idle: idle, late: closeBoth,
		}
		fromClient = up.run()
	})
	asks.Go(func() { s.leave(listener.Closing(ctx), client) })
	down := &pump{
		src: upstream, dst: client, limit: socketFrame, budget: &s.x.h.tees, to: s.toClient,
		change: s.answered, missed: func() { s.lose(true); s.cut() }, idle: idle, late: closeBoth,
	}
	fromUpstream = down.run()
	closeBoth()
	s.toClient.close()
	asks.Wait()
	s.toUpstream.close()
	s.again.Wait()
	for _, y := range s.pending { // cut
		s.done(y, relayed{Status: http.StatusSwitchingProtocols, Failed: failedUpstream, Err: io.ErrUnexpectedEOF})
	}
	return fromClient, fromUpstream
}

// leave ends the socket once the listener closes and no response is awaited.
func (s *socket) leave(closing <-chan struct{}, client io.Writer) {
	for closes := false; ; {
		select {
		case <-s.over:
			return
		case <-closing:
			closing, closes = nil, true
		case <-s.finished:
		}
		if !closes {
			continue
		}
		s.mu.Lock()
		awaited := len(s.pending) + s.refused
		s.mu.Unlock()
		if awaited > 0 {
			continue
		}
		s.toClient.Lock()
		if s.toClient.free() {
			_ = listener.WriteGoingAway(client)
		}
		s.toClient.release()
		s.end()
		return
	}
}

// asked gets each message of the client.
func (s *socket) asked(text []byte) (pieces [][]byte) {
	if (dialect.Responses{}).EventType(text) != "response.create" {
		return nil
	}
	s.mu.Lock()
	s.lost = s.lost || len(s.pending)+s.refused >= maxPending
	lost := s.lost
	s.mu.Unlock()
	if lost {
		return nil
	}
	var y *frameExchange
	defer s.x.h.guard("frame", func() {
		pieces = nil
		if y != nil {
			s.settled(y)
		}
		// It is sent unchanged, and its answer belongs to no exchange.
		s.mu.Lock()
		s.lost, s.blind = true, true
		s.mu.Unlock()
	})
	y = &frameExchange{exchange: exchange{call: call{
		h: s.x.h, r: s.request(text), ctx: s.x.ctx, start: s.x.h.deps.Now(), up: s.x.up, host: s.x.host, frame: true,
		api: route{d: dialect.Responses{}},
	}}, lane: (dialect.Responses{}).StreamID(text)}
	y.startSpan()
	y.rights, y.plan.status = y.headRights()
	if y.rights == (rights{}) {
		s.enter(y)
		return nil
	}
	frame := &body{bytes: text, budget: &s.x.h.bodies} // its memory is the pump's
	defer frame.uncharge()
	y.remember(&payload{raw: frame})
	inserts := y.plan.inserts
	y.trace.memory(y.plan.status, y.plan.memories)
	if y.plan.persist || y.trace != nil || y.plan.receipt != nil {
		y.tee = &tee{limit: s.x.h.cfg.Limits.TeeBytes, budget: &s.x.h.tees}
	}
	switch {
	case len(inserts) == 0:
	case s.x.h.bodies.acquire(int64(len(text))):
		y.original = bytes.Clone(text)
		pieces = dialect.Splice(text, inserts)
	default: // what could not be sent again is not changed
		y.plan.status, y.plan.memories = StatusTooLarge, 0
		y.withdraw()
	}
	y.read.release()
	y.plan.inserts = nil
	if !s.enter(y) {
		if pieces != nil {
			y.withdraw()
		}
		s.settled(y)
		return nil
	}
	return pieces
}

// enter reports false if answers can no longer be matched.
func (s *socket) enter(y *frameExchange) bool {
	s.x.h.stats.Exchanges.Add(1)
	s.x.h.stats.statuses[y.plan.status].Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return false
	}
	s.pending = append(s.pending, y)
	s.lanes = s.lanes || y.lane != ""
	return true
}

// awaited returns the response that an event belongs to, nil if none was
// requested in its lane. Needs s.mu.
func (s *socket) awaited(event []byte) *frameExchange {
	lane := ""
	if s.lanes {
		lane = (dialect.Responses{}).StreamID(event)
	}
	for _, y := range s.pending {
		if y.lane == lane {
			return y
		}
	}
	return nil
}

// lose ends memory for the socket. With answers, those in progress are
// incomplete here, so they are not remembered; see cut.
func (s *socket) lose(answers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answers && len(s.pending)+s.refused == 0 {
		return // an answer that nobody requested here
	}
	s.lost = true
	s.blind = s.blind || answers
}

// cut ends the responses in progress if answers can no longer be matched, and
// reports whether that is so. Only the goroutine that reads the upstream calls
// it, because it owns what is pending.
func (s *socket) cut() bool {
	s.mu.Lock()
	blind := s.blind
	var cut []*frameExchange
	if blind {
		cut, s.pending = s.pending, nil
	}
	s.mu.Unlock()
	for _, y := range cut {
		if y.tee != nil {
			y.tee.release()
			y.tee.over = true
		}
		s.done(y, relayed{Status: http.StatusOK, Complete: true, Bytes: y.bytes})
	}
	return blind
}

// settled drops what would be sent again.
func (s *socket) settled(y *frameExchange) {
	s.x.h.bodies.release(int64(len(y.original)))
	y.original = nil
}

// frameHeaders begins the names of what Codex puts into a frame's metadata as
// it does into a request's head. No other member is taken for a header, because
// an application may put there what its users say.
const frameHeaders = "x-codex-"

// request returns the frame as a request: the upgrade's head, with the values
// in the frame's metadata instead of those of the connection.
func (s *socket) request(frame []byte) *http.Request {
	r := new(http.Request)
	*r = *s.x.r
	r.Header = s.header.Clone()
	for name, value := range (dialect.Responses{}).ClientMetadata(frame) {
		if strings.HasPrefix(name, frameHeaders) {
			r.Header.Set(name, value)
		}
	}
	return r
}

// answered gets each message of the upstream.
func (s *socket) answered(text []byte) (pieces [][]byte) {
	if s.cut() {
		return nil
	}
	s.mu.Lock()
	y := s.awaited(text)
	s.mu.Unlock()
	if y == nil {
		return nil
	}
	defer s.x.h.guard("event", func() {
		pieces = nil
		s.lose(true)
		s.cut()
	})
	kind := (dialect.Responses{}).EventType(text)
	if kind == "error" && !y.began && y.original != nil && s.retries(y, text) {
		return [][]byte{}
	}
	event := append([]byte("data: "), text...)
	for i, c := range event {
		if c == '\n' || c == '\r' { // JSON white space, which would end the line
			event[i] = ' '
		}
	}
	event = append(event, "\n\n"...)
	if !y.began && kind != "error" {
		y.accept()
		y.trace.taken(s.x.h.deps.Now())
	}
	switch kind {
	case "error":
		y.trace.reported(errorStatus(text))
	case "response.failed":
		y.trace.reported(0)
	}
	y.began = true
	s.settled(y)
	y.bytes += int64(len(text))
	if y.tee != nil {
		y.tee.write(event)
	}
	if y.plan.next != nil {
		y.recordPosition((dialect.Responses{}).ReplyID(event))
	}
	switch kind {
	case "error", "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		s.mu.Lock()
		s.pending = slices.DeleteFunc(s.pending, func(p *frameExchange) bool { return p == y })
		s.mu.Unlock()
		s.done(y, relayed{Status: http.StatusOK, Complete: true, Bytes: y.bytes})
	}
	return nil
}

// errorStatus returns the HTTP status that an error event gives, or 0.
func errorStatus(event []byte) int {
	var told struct {
		Status int `json:"status"`
	}
	_ = json.Unmarshal(event, &told)
	return told.Status
}

// retries sends the original of a refused frame, once, if the refusal may be
// the block's fault. Its answer comes after those to what was requested
// meanwhile.
func (s *socket) retries(y *frameExchange, event []byte) bool {
	status := errorStatus(event)
	why := refusalReason{
		template: dialect.TemplateRefusal(event), length: dialect.ContextLength(status, event), content: dialect.ContentRefusal(event),
	}
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, 0:
	default:
		if !why.template && !why.length {
			return false
		}
	}
	s.x.h.stats.Retries.Add(1)
	y.plan.status, y.plan.memories = StatusRejected, 0
	y.reject(why)
	s.mu.Lock()
	s.pending = slices.DeleteFunc(s.pending, func(p *frameExchange) bool { return p == y })
	s.refused++
	s.mu.Unlock()
	// Not here: an upstream that reads nothing before its own messages are read
	// would wait forever.
	s.again.Go(func() { s.resend(y) })
	return true
}

// resend writes the original of y, whose answer is awaited from before then.
func (s *socket) resend(y *frameExchange) {
	original := y.original
	defer s.x.h.bodies.release(int64(len(original)))
	s.toUpstream.Lock()
	defer s.toUpstream.release()
	free := s.toUpstream.free()
	y.original = nil
	s.mu.Lock()
	s.pending = append(s.pending, y)
	s.refused--
	s.mu.Unlock()
	if !free || writeMessage(s.upstream, true, [][]byte{original}) != nil {
		s.end()
	}
}

// done hands a finished response to the assembler and writes its log line. A
// socket has no headers for its status.
func (s *socket) done(y *frameExchange, out relayed) {
	s.settled(y)
	resp := &http.Response{StatusCode: out.Status, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	y.assemble(resp, y.tee, out)
	y.finish(outcome{relayed: out})
	select {
	case s.finished <- struct{}{}:
	default:
	}
}
