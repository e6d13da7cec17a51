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
)

// socket gives memory to a WebSocket of the Responses API: the frames that
// begin a response are treated like requests, those that tell its events like
// the answer. Handshake, control frames and all other messages pass as they
// came; only compression is not agreed on, since what is compressed can't be
// read.
//
// Memory works for one response at a time, in the order in which they were
// asked for. Once that can't be told any more, no answer would find its
// question: after a message over the body limit or the budget, an event over
// socketFrame, or maxPending responses at once, the socket is carried on
// without memory until it ends.
//
// When the door closes, a socket on which no response is awaited is told so and
// ends, the others do once they have theirs.
type socket struct {
	x        call // the upgrade
	header   http.Header
	upstream io.Writer
	end      func()        // closes both sides
	over     chan struct{} // closed when they are
	finished chan struct{} // holds one: a response has ended

	toUpstream *lane // a refused message is sent again beside the client's
	toClient   *lane // the farewell comes beside the upstream's messages

	mu      sync.Mutex
	pending []*frameExchange // the first of them is being answered, by the goroutine that reads the upstream
	refused int              // waiting to be sent again
	lost    bool             // nothing new is taken in
	blind   bool             // no answer can be told any more
	again   sync.WaitGroup   // of what is being sent again
}

// frameExchange is a response that was asked for over a socket.
type frameExchange struct {
	exchange
	original []byte // what to send again where the enriched frame is refused, charged to the budget of bodies; nil = none
	tee      *tee
	bytes    int64
	began    bool // an event of it has been relayed
}

const (
	maxPending = 16
	// socketFrame is the largest event that is looked at, in bytes; larger ones
	// pass, and their answer is not remembered.
	socketFrame = 8 << 20
	// maxFragments is in how many frames a message may come that is looked at.
	maxFragments = 1 << 10
)

func newSocket(x call) *socket {
	return &socket{
		x: x, header: x.r.Header.Clone(), toUpstream: newLane(), toClient: newLane(), over: make(chan struct{}), finished: make(chan struct{}, 1),
	}
}

// carry takes the place of tunnel.
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
	asks.Go(func() { s.leave(closingOf(ctx), client) })
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

// leave ends the socket once the door closes and no response is awaited.
func (s *socket) leave(door *closing, client io.Writer) {
	var closing <-chan struct{} // never, where nothing tells
	if door != nil {
		closing = door.begun
	}
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
			_ = writeFarewell(client)
		}
		s.toClient.release()
		s.end()
		return
	}
}

// asked is given each message of the client's.
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
		// It goes out as it came, and its answer is nobody's.
		s.mu.Lock()
		s.lost, s.blind = true, true
		s.mu.Unlock()
	})
	y = &frameExchange{exchange: exchange{call: call{
		h: s.x.h, r: s.request(text), ctx: s.x.ctx, start: s.x.h.deps.Now(), up: s.x.up, host: s.x.host, frame: true,
		api: route{d: dialect.Responses{}},
	}}}
	y.startSpan()
	y.rights, y.plan.status = y.headRights()
	if y.rights == (rights{}) {
		s.enter(y)
		return nil
	}
	y.remember(&payload{raw: &body{bytes: text}})
	inserts := y.plan.inserts
	y.trace.memory(y.plan.status, y.plan.memories)
	if y.plan.persist || y.trace != nil {
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

// enter is false where the answers can't be told apart any more.
func (s *socket) enter(y *frameExchange) bool {
	s.x.h.stats.Exchanges.Add(1)
	s.x.h.stats.statuses[y.plan.status].Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return false
	}
	s.pending = append(s.pending, y)
	return true
}

// lose ends memory for the socket. answers: those under way are not whole here,
// so they are not remembered; see cut.
func (s *socket) lose(answers bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answers && len(s.pending)+s.refused == 0 {
		return // an answer that nobody here asked for
	}
	s.lost = true
	s.blind = s.blind || answers
}

// cut ends the responses under way where no answer can be told any more, and
// says whether that is so. What is pending belongs to the goroutine that reads
// the upstream, so only that calls it.
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

// settled lets go of what would be sent again.
func (s *socket) settled(y *frameExchange) {
	s.x.h.bodies.release(int64(len(y.original)))
	y.original = nil
}

// frameHeaders begin the names of what Codex tells in a frame's metadata as it
// does in a request's head. No other member is taken for a header: an
// application may put there what its users say.
const frameHeaders = "x-codex-"

// request is what the frame would be as a request: the upgrade's head, with
// what its metadata says of this one response in the place of what the head
// said of the connection.
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

// answered is given each message of the upstream's.
func (s *socket) answered(text []byte) (pieces [][]byte) {
	if s.cut() {
		return nil
	}
	s.mu.Lock()
	if len(s.pending) == 0 {
		s.mu.Unlock()
		return nil
	}
	y := s.pending[0]
	s.mu.Unlock()
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
		if c == '\n' || c == '\r' { // white space of JSON, which would end the line
			event[i] = ' '
		}
	}
	event = append(event, "\n\n"...)
	if !y.began && kind != "error" {
		y.accept()
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

// retries sends the original of a refused frame, once, where the refusal may be
// the block's fault. Its answer comes after those to what was asked for
// meanwhile.
func (s *socket) retries(y *frameExchange, event []byte) bool {
	var told struct {
		Status int `json:"status"`
	}
	_ = json.Unmarshal(event, &told)
	why := refusalReason{
		template: dialect.TemplateRefusal(event), length: dialect.ContextLength(told.Status, event), content: dialect.ContentRefusal(event),
	}
	switch told.Status {
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
	// Not here: an upstream that reads nothing before somebody has read what it
	// says would wait for ever.
	s.again.Go(func() { s.resend(y) })
	return true
}

// resend writes the original of y, whose answer is awaited from before that on.
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

// done hands a finished response to the assembler and writes its line. A socket
// has no headers to tell its status by.
func (s *socket) done(y *frameExchange, out relayed) {
	s.settled(y)
	resp := &http.Response{StatusCode: out.Status, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	y.assemble(resp, y.tee, out)
	y.log(outcome{relayed: out})
	select {
	case s.finished <- struct{}{}:
	default:
	}
}
