package proxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gobwas/ws"

	"github.com/remora-proxy/remora/proxy/dialect"
)

// socket gives memory to a WebSocket of the Responses API: the frames that begin a response are treated like requests,
// those that tell its events like the answer. Handshake, control frames and all other messages pass as they came; only
// compression is not agreed on, since what is compressed can't be read.
//
// Memory works for one response at a time, in the order in which they were asked for. Once that can't be told any more,
// no answer would find its question: after a message over the body limit or the budget, an event over socketFrame, or
// maxPending responses at once, the socket is carried on without memory until it ends.
type socket struct {
	x        *exchange // of the upgrade
	header   http.Header
	client   io.Writer
	upstream io.Writer

	toUpstream lane // a refused message is sent again by the other direction

	mu      sync.Mutex
	pending []*frameExchange // the first of them is being answered
	lost    bool             // nothing new is taken in
}

// lane is held while something is written to one side.
type lane struct {
	sync.Mutex
	open bool // a message has begun that has not ended: no other may come in between
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
	// socketFrame is the largest event that is looked at, in bytes; larger ones pass, and their answer is not remembered.
	socketFrame = 8 << 20
	// maxFragments is in how many frames a message may come that is looked at.
	maxFragments = 1 << 10
)

// enriches says whether the frames of this upgrade get memory.
func (x *exchange) enriches() bool {
	return x.h.cfg.WebSocket == WebSocketEnrich && isResponsesSocket(x.r) && x.mode() != ModeOff && !signed(x.r.Header)
}

func newSocket(x *exchange) *socket { return &socket{x: x, header: x.r.Header.Clone()} }

// carry takes the place of tunnel.
func (s *socket) carry(ctx context.Context, client, upstream io.ReadWriteCloser) (fromClient, fromUpstream int64) {
	closeBoth := sync.OnceFunc(func() {
		_ = client.Close()
		_ = upstream.Close()
	})
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	s.client, s.upstream = client, upstream
	limit := int(s.x.h.cfg.Limits.BodyBytes)
	var both sync.WaitGroup
	both.Go(func() {
		defer closeBoth()
		fromClient = pump(client, upstream, limit, &s.x.h.bodies, &s.toUpstream, s.asked, func() { s.lose(false) })
	})
	fromUpstream = pump(upstream, client, socketFrame, &s.x.h.tees, new(lane), s.answered, func() { s.lose(true) })
	closeBoth()
	both.Wait()
	for _, y := range s.pending { // cut
		s.done(y, relayed{Status: http.StatusSwitchingProtocols, Failed: failedUpstream, Err: io.ErrUnexpectedEOF})
	}
	return fromClient, fromUpstream
}

// pump passes messages on until either side ends, and returns the bytes of their payloads. Text messages of up to limit
// bytes are handed to change, whose pieces go out in their place; nil leaves the message as it came, an empty list
// swallows it. missed is told of each text message that change does not see: it is over the limit, in too many frames,
// or the budget, to which messages are charged while they are held, is used up. to is held while something is written.
func pump(src io.Reader, dst io.Writer, limit int, b *budget, to *lane, change func(text []byte) [][]byte, missed func()) (total int64) {
	in := bufio.NewReader(src)
	var held []ws.Header // frames of the message that is being read
	var text []byte
	passing := false // the rest of the message goes by
	charged := int64(0)
	defer func() { b.release(charged) }()
	drop := func() {
		b.release(charged)
		held, text, charged = nil, nil, 0
	}
	flush := func() bool {
		rest := text
		for _, h := range held {
			if writeFrame(dst, h, rest[:h.Length]) != nil {
				return false
			}
			rest = rest[h.Length:]
		}
		drop()
		return true
	}
	for {
		h, err := ws.ReadHeader(in)
		if err != nil {
			return total
		}
		total += h.Length
		whole := h.OpCode == ws.OpText || h.OpCode == ws.OpContinuation && len(held) > 0
		if h.OpCode.IsControl() || !whole || passing || h.Rsv != 0 || h.Length > int64(limit-len(text)) ||
			len(held) == maxFragments || !b.acquire(h.Length) {
			if whole {
				missed()
			}
			to.Lock()
			if !h.OpCode.IsControl() {
				passing = !h.Fin
				to.open = passing
			}
			ok := (h.OpCode.IsControl() || flush()) && passFrame(dst, h, in) == nil
			to.Unlock()
			if !ok {
				return total
			}
			continue
		}
		charged += h.Length
		at := len(text)
		text = slices.Grow(text, int(h.Length))[:at+int(h.Length)]
		if _, err := io.ReadFull(in, text[at:]); err != nil {
			return total
		}
		if h.Masked {
			ws.Cipher(text[at:], h.Mask, 0)
		}
		if held = append(held, h); !h.Fin {
			continue
		}
		to.Lock()
		pieces := change(text)
		ok := true
		switch {
		case pieces == nil:
			ok = flush()
		case len(pieces) > 0:
			ok = writeMessage(dst, held[0].Masked, pieces) == nil
		}
		drop()
		to.Unlock()
		if !ok {
			return total
		}
	}
}

// passFrame copies one frame as it came.
func passFrame(dst io.Writer, h ws.Header, in io.Reader) error {
	if err := ws.WriteHeader(dst, h); err != nil {
		return err
	}
	_, err := io.CopyN(dst, in, h.Length)
	return err
}

// writeFrame writes a frame whose payload was unmasked; it masks payload again, in place.
func writeFrame(dst io.Writer, h ws.Header, payload []byte) error {
	if h.Masked {
		ws.Cipher(payload, h.Mask, 0)
		defer ws.Cipher(payload, h.Mask, 0)
	}
	var head bytes.Buffer
	if err := ws.WriteHeader(&head, h); err != nil {
		return err
	}
	_, err := dst.Write(append(head.Bytes(), payload...))
	return err
}

// writeMessage writes pieces as one message of one frame.
func writeMessage(dst io.Writer, masked bool, pieces [][]byte) error {
	payload := bytes.Join(pieces, nil)
	h := ws.Header{Fin: true, OpCode: ws.OpText, Length: int64(len(payload)), Masked: masked}
	if masked {
		h.Mask = ws.NewMask()
	}
	return writeFrame(dst, h, payload)
}

// asked is given each message of the client's.
func (s *socket) asked(text []byte) (pieces [][]byte) {
	if (dialect.Responses{}).EventType(text) != "response.create" {
		return nil
	}
	s.mu.Lock()
	s.lost = s.lost || len(s.pending) >= maxPending
	lost := s.lost
	s.mu.Unlock()
	if lost {
		return nil
	}
	defer s.x.h.guard("frame", func() {
		pieces = nil
		s.lose(true)
	})
	y := &frameExchange{exchange: exchange{
		h: s.x.h, w: s.x.w, r: s.request(text), start: s.x.h.deps.Now(), up: s.x.up, host: s.x.host, d: dialect.Responses{}, socket: true,
		status: StatusUnsupported,
	}}
	y.ctx = s.x.ctx
	y.startSpan()
	y.allow()
	if y.rights == (rights{}) {
		s.enter(y)
		return nil
	}
	y.plain = &body{bytes: text}
	y.body = y.plain
	inserts := y.remember()
	y.trace.memory(y.status, y.memories)
	if y.persist || y.trace != nil {
		y.tee = &tee{limit: s.x.h.cfg.Limits.TeeBytes, budget: &s.x.h.tees}
	}
	switch {
	case len(inserts) == 0:
	case s.x.h.bodies.acquire(int64(len(text))):
		y.original = bytes.Clone(text)
		pieces = dialect.Splice(text, inserts)
	default: // what could not be sent again is not changed
		y.status, y.memories = StatusTooLarge, 0
		y.rejected(false, false)
	}
	y.body, y.plain, y.req = nil, nil, nil
	if !s.enter(y) {
		if pieces != nil {
			y.rejected(false, false)
		}
		s.settled(y)
		return nil
	}
	return pieces
}

// enter is false where the answers can't be told apart any more.
func (s *socket) enter(y *frameExchange) bool {
	s.x.h.stats.Exchanges.Add(1)
	s.x.h.stats.statuses[y.status].Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost {
		return false
	}
	s.pending = append(s.pending, y)
	return true
}

// lose ends memory for the socket. answers: those under way are not whole here, so they are not remembered.
func (s *socket) lose(answers bool) {
	s.mu.Lock()
	if answers && len(s.pending) == 0 {
		s.mu.Unlock()
		return // an answer that nobody here asked for
	}
	s.lost = true
	var cut []*frameExchange
	if answers {
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
}

// settled lets go of what would be sent again.
func (s *socket) settled(y *frameExchange) {
	s.x.h.bodies.release(int64(len(y.original)))
	y.original = nil
}

// frameHeaders begin the names of what Codex tells in a frame's metadata as it does in a request's head. No other member
// is taken for a header: an application may put there what its users say.
const frameHeaders = "x-codex-"

// request is what the frame would be as a request: the upgrade's head, with what its metadata says of this one response
// in the place of what the head said of the connection.
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
	})
	kind := (dialect.Responses{}).EventType(text)
	if kind == "error" && !y.began && y.original != nil && s.again(y, text) {
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
		y.accepted()
	}
	y.began = true
	s.settled(y)
	y.bytes += int64(len(text))
	if y.tee != nil {
		y.tee.write(event)
	}
	if y.placing != nil {
		y.reached((dialect.Responses{}).ReplyID(event))
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

// again sends the original of a refused frame, once, where the refusal may be the block's fault. Its answer comes after
// those to what was asked for meanwhile.
func (s *socket) again(y *frameExchange, refusal []byte) bool {
	var told struct {
		Status int `json:"status"`
	}
	_ = json.Unmarshal(refusal, &told)
	template, length := dialect.TemplateRefusal(refusal), dialect.ContextLength(told.Status, refusal)
	switch told.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, 0:
	default:
		if !template && !length {
			return false
		}
	}
	s.toUpstream.Lock()
	defer s.toUpstream.Unlock()
	if s.toUpstream.open || writeMessage(s.upstream, true, [][]byte{y.original}) != nil {
		return false
	}
	s.settled(y)
	s.mu.Lock()
	s.pending = append(slices.DeleteFunc(s.pending, func(p *frameExchange) bool { return p == y }), y)
	s.mu.Unlock()
	s.x.h.stats.Retries.Add(1)
	y.status, y.memories = StatusRejected, 0
	y.rejected(template, !template && !length && !dialect.ContentRefusal(refusal))
	return true
}

// done hands a finished response to the assembler and writes its line. A socket has no headers to tell its status by.
func (s *socket) done(y *frameExchange, out relayed) {
	s.settled(y)
	resp := &http.Response{StatusCode: out.Status, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	y.hand(resp, y.tee, out)
	y.finish(out.Status, out)
}
