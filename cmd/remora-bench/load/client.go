package load

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"
)

// client is one keep-alive connection to a target. One goroutine at a time may
// send on it and one receive.
type client struct {
	conn  net.Conn
	in    *wireReader
	meter *eventMeter // nil where responses are not streams

	first  time.Time // when the first byte of the newest body came in
	remora []byte    // X-Remora-Status of the newest response
	sink   func([]byte)
}

// dialClient connects to d and ends all reads and writes at deadline.
func dialClient(ctx context.Context, d route, deadline time.Time, meter *eventMeter) (*client, error) {
	conn, err := d.dial(ctx, deadline)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, in: newWireReader(conn, 16<<10), meter: meter}
	c.sink = func(piece []byte) {
		if c.first.IsZero() {
			c.first = c.in.lastRead
		}
		if c.meter != nil {
			c.meter.piece(piece, c.in.lastRead)
		}
	}
	return c, nil
}

func (c *client) close() { _ = c.conn.Close() }

// eventCount is the number of events of the newest response.
func (c *client) eventCount() int {
	if c.meter == nil {
		return 0
	}
	return c.meter.events
}

// response is what came back; remora is valid until the next receive.
type response struct {
	status int
	remora []byte
	first  time.Time // first byte of the body, or the end where there is none
	done   time.Time
	close  bool
}

// receive reads one final response; informational ones are skipped.
func (c *client) receive() (response, error) {
	c.first = time.Time{}
	for {
		h, err := c.in.head()
		if err != nil {
			return response{}, err
		}
		r := response{status: h.status(), close: h.close || (h.length < 0 && !h.chunked)}
		if r.status >= 100 && r.status < 200 {
			continue
		}
		c.remora = append(c.remora[:0], h.remora...) // reading the body may overwrite the head
		if c.meter != nil {
			c.meter.begin()
		}
		if err := c.in.body(h, true, c.sink); err != nil {
			return r, fmt.Errorf("read response: %w", err)
		}
		r.remora = c.remora
		r.done = c.in.lastRead
		r.first = c.first
		if r.first.IsZero() {
			r.first = r.done
		}
		return r, nil
	}
}

// eventMeter takes the time that each event of a stream was on its way. The
// mock upstream puts the time of sending into the event; both read the clock of
// one machine.
type eventMeter struct {
	gap     time.Duration // between two events as they are sent
	window  window        // events that left outside of it are not measured
	delays  histogram
	merged  int // reads that brought events together which left at least half a gap apart; a stall is one such read
	events  int // of the newest response
	partial []byte
	read    time.Time // of the newest piece
	sent    int64     // of the first event of that read; 0 = none yet, -1 = counted in merged
}

// maxEvent bounds one event; a longer one loses its beginning and is not
// measured.
const maxEvent = 64 << 10

func (m *eventMeter) begin() {
	m.partial = m.partial[:0]
	m.events = 0
	m.sent = 0
}

func (m *eventMeter) piece(p []byte, read time.Time) {
	if !read.Equal(m.read) {
		m.read, m.sent = read, 0
	}
	m.partial = append(m.partial, p...)
	rest := m.partial
	for {
		event, after, ok := bytes.Cut(rest, []byte("\n\n"))
		if !ok {
			break
		}
		m.event(event)
		rest = after
	}
	if len(rest) > maxEvent {
		rest = nil
	}
	m.partial = m.partial[:copy(m.partial, rest)]
}

func (m *eventMeter) event(e []byte) {
	sent, ok := sentTime(e)
	if !ok {
		return
	}
	m.events++
	if !m.window.holds(time.Unix(0, sent)) {
		return
	}
	m.delays.add(time.Duration(m.read.UnixNano() - sent))
	switch {
	case m.sent == 0:
		m.sent = sent
	case m.sent > 0 && m.gap > 0 && time.Duration(sent-m.sent) >= m.gap/2:
		m.merged++
		m.sent = -1
	}
}
