package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// upstreamFront is how much of a request body the mock upstream looks at.
const upstreamFront = 4 << 10

// maxUpstreamEvents bounds a stream, and with it what is built for it ahead.
const maxUpstreamEvents = 10_000

// upstream is a lean server of all dialects: whatever is asked, it sends a
// prebuilt answer of the path's. A request whose model bears a [replyScript] is
// answered by it, any other by the defaults, streaming where the body says
// "stream":true.
type upstream struct {
	defaults replyScript
	apis     []api
	replies  []*replies // one for each of apis
	pacer    *pacer
	answers  atomic.Int64 // given so far, for their ids

	mu      sync.Mutex
	streams map[streamKind][]streamScript
	conns   map[net.Conn]struct{}
}

// streamKind is what scripts of streams are built for.
type streamKind struct{ api, events int }

// maxStreamScripts is the maximum number of kinds of streams that are kept
// built; others are built each time.
const maxStreamScripts = 16

func newUpstream(defaults replyScript) *upstream {
	u := &upstream{
		defaults: defaults,
		apis:     apis(),
		pacer:    newPacer(),
		streams:  map[streamKind][]streamScript{},
		conns:    map[net.Conn]struct{}{},
	}
	for _, a := range u.apis {
		u.replies = append(u.replies, newReplies(a))
	}
	return u
}

func RunUpstream(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	latency := flags.Duration("latency", 0, "wait before the first byte of a response")
	events := flags.Int("events", 16, "events of a stream")
	gap := flags.Duration("gap", 2*time.Millisecond, "time between two events")
	cert := flags.String("cert", "", "PEM `file` of the certificate to serve TLS with (default: plain HTTP)")
	key := flags.String("key", "", "PEM `file` of its key")
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	if *events < 1 || *events > maxUpstreamEvents {
		return cli.UsageError(fmt.Sprintf("-events: must be 1 to %d", maxUpstreamEvents))
	}
	secure, err := serverTLS(*cert, *key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	shortenSlices()
	fmt.Fprintln(stdout, listeningPrefix+l.Addr().String())
	return newUpstream(replyScript{*latency, *events, *gap}).serve(ctx, l)
}

// serve answers until ctx ends, then closes all connections and returns nil.
func (u *upstream) serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { u.pacer.run(ctx) })
	wg.Go(func() {
		<-ctx.Done()
		_ = l.Close()
		u.mu.Lock()
		defer u.mu.Unlock()
		for c := range u.conns {
			_ = c.Close()
		}
	})
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			cancel()
			return fmt.Errorf("accept: %w", err)
		}
		u.mu.Lock()
		u.conns[c] = struct{}{}
		u.mu.Unlock()
		wg.Go(func() {
			u.connection(ctx, c)
			_ = c.Close()
			u.mu.Lock()
			delete(u.conns, c)
			u.mu.Unlock()
		})
	}
}

// connection reads one request after the other. It does not wait for an answer
// that the pacer sends: the client asks again only after that.
func (u *upstream) connection(ctx context.Context, c net.Conn) {
	in := newWireReader(c, wireBuffer)
	front := make([]byte, 0, upstreamFront)
	reply := make([]byte, 0, 2*jsonReplySize)
	sink := func(piece []byte) {
		front = append(front, piece[:min(len(piece), cap(front)-len(front))]...)
	}
	for n := 0; ; n++ {
		h, err := in.head()
		if err != nil {
			return
		}
		spoken := apiAt(u.apis, h.start)
		front = front[:0]
		if err := in.body(h, false, sink); err != nil {
			return
		}
		script, ok := parseReplyScript(front)
		if !ok {
			script = u.defaults
			if !bytes.Contains(front, []byte(`"stream":true`)) && !bytes.Contains(front, []byte(`"stream": true`)) {
				script.events = 0
			}
		}
		q := asked{conn: c, n: n, api: spoken, at: in.lastRead, buf: reply}
		if !u.answer(ctx, q, script) || h.close {
			return
		}
	}
}

// asked is a request to be answered.
type asked struct {
	conn net.Conn
	n    int // of the connection
	api  int
	at   time.Time
	buf  []byte // for an answer that is given at once
}

func (u *upstream) answer(ctx context.Context, q asked, script replyScript) bool {
	id := u.answers.Add(1)
	if script.events == 0 {
		reply := u.replies[q.api].json[q.n%replyTexts]
		if script.latency == 0 {
			_, err := q.conn.Write(reply.stamped(q.buf, id))
			return err == nil
		}
		u.pacer.at(ctx, q.at.Add(script.latency), &jsonReply{q.conn, reply.stamped(nil, id)})
		return true
	}
	if script.events > maxUpstreamEvents {
		return false
	}
	s := &streamReply{
		conn: q.conn, script: u.stream(q.n, streamKind{q.api, script.events}), gap: script.gap, id: id, due: q.at.Add(script.latency),
	}
	length := script.latency + time.Duration(script.events)*script.gap
	_ = q.conn.SetWriteDeadline(q.at.Add(length + 30*time.Second))
	for again := true; again; {
		if wait := time.Until(s.due); wait > 0 {
			u.pacer.at(ctx, s.due, s)
			return true
		}
		_, again = s.fire()
	}
	return !s.failed
}

// stream returns a script for the n-th request of a connection.
func (u *upstream) stream(n int, kind streamKind) streamScript {
	const variants = 8
	u.mu.Lock()
	defer u.mu.Unlock()
	built := u.streams[kind]
	if built == nil {
		for i := range variants {
			built = append(built, u.replies[kind.api].stream(i, kind.events))
		}
		if len(u.streams) < maxStreamScripts {
			u.streams[kind] = built
		}
	}
	return built[n%variants]
}

// jsonReply is a response that is due later.
type jsonReply struct {
	conn  net.Conn
	reply []byte
}

func (r *jsonReply) fire() (time.Time, bool) {
	if _, err := r.conn.Write(r.reply); err != nil {
		_ = r.conn.Close()
	}
	return time.Time{}, false
}

// streamReply is an event stream under way. Events keep their times even when
// one was late.
type streamReply struct {
	conn   net.Conn
	script streamScript
	gap    time.Duration
	id     int64
	next   int
	due    time.Time
	chunk  []byte // the one being sent
	failed bool
}

func (r *streamReply) fire() (time.Time, bool) {
	r.chunk = r.script.chunks[r.next].copied(r.chunk, r.id)
	stampDigits(r.chunk[r.script.sent[r.next]:], time.Now().UnixNano())
	if _, err := r.conn.Write(r.chunk); err != nil {
		_ = r.conn.Close()
		r.failed = true
		return time.Time{}, false
	}
	r.next++
	r.due = r.due.Add(r.gap)
	return r.due, r.next < len(r.script.chunks)
}
