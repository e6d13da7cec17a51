package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// upstreamFront is how much of a request body the mock upstream looks at.
const upstreamFront = 4 << 10

// maxUpstreamEvents bounds a stream, and with it what is built for it ahead.
const maxUpstreamEvents = 10_000

// upstream is a lean OpenAI-compatible server: whatever is asked, it sends a prebuilt answer. A request whose model
// bears a [replyScript] is answered by it, any other by the defaults, streaming where the body says "stream":true.
type upstream struct {
	defaults replyScript
	replies  *replies
	pacer    *pacer

	mu      sync.Mutex
	streams map[int][]streamScript // by number of events
	conns   map[net.Conn]struct{}
}

// maxStreamScripts bounds how many lengths of streams are kept built; another one is built anew each time.
const maxStreamScripts = 16

func newUpstream(defaults replyScript) *upstream {
	return &upstream{
		defaults: defaults,
		replies:  newReplies(),
		pacer:    newPacer(),
		streams:  map[int][]streamScript{},
		conns:    map[net.Conn]struct{}{},
	}
}

func runUpstream(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	latency := flags.Duration("latency", 0, "wait before the first byte of a response")
	events := flags.Int("events", 16, "events of a stream")
	gap := flags.Duration("gap", 2*time.Millisecond, "time between two events")
	if err := parseCommandLine(flags, args); err != nil {
		return err
	}
	if *events < 1 || *events > maxUpstreamEvents {
		return usageError{fmt.Sprintf("-events: must be 1 to %d", maxUpstreamEvents)}
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
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

// connection reads one request after the other. It does not wait for an answer that the pacer sends: the client asks
// again only after that.
func (u *upstream) connection(ctx context.Context, c net.Conn) {
	in := newWireReader(c, wireBuffer)
	front := make([]byte, 0, upstreamFront)
	sink := func(piece []byte) {
		front = append(front, piece[:min(len(piece), cap(front)-len(front))]...)
	}
	for n := 0; ; n++ {
		h, err := in.head()
		if err != nil {
			return
		}
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
		if !u.answer(ctx, c, n, script, in.lastRead) || h.close {
			return
		}
	}
}

func (u *upstream) answer(ctx context.Context, c net.Conn, n int, script replyScript, asked time.Time) bool {
	if script.events == 0 {
		reply := u.replies.json[n%replyTexts]
		if script.latency == 0 {
			_, err := c.Write(reply)
			return err == nil
		}
		u.pacer.at(ctx, asked.Add(script.latency), &jsonReply{c, reply})
		return true
	}
	if script.events > maxUpstreamEvents {
		return false
	}
	s := &streamReply{conn: c, script: u.stream(n, script.events), gap: script.gap, due: asked.Add(script.latency)}
	length := script.latency + time.Duration(script.events)*script.gap
	_ = c.SetWriteDeadline(asked.Add(length + 30*time.Second))
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
func (u *upstream) stream(n, events int) streamScript {
	const variants = 8
	u.mu.Lock()
	defer u.mu.Unlock()
	built := u.streams[events]
	if built == nil {
		for i := range variants {
			built = append(built, u.replies.stream(i, events))
		}
		if len(u.streams) < maxStreamScripts {
			u.streams[events] = built
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

// streamReply is an event stream under way. Events keep their times even when one was late.
type streamReply struct {
	conn   net.Conn
	script streamScript
	gap    time.Duration
	next   int
	due    time.Time
	chunk  []byte // the one being sent
	failed bool
}

func (r *streamReply) fire() (time.Time, bool) {
	r.chunk = append(r.chunk[:0], r.script.chunks[r.next]...)
	stampSent(r.chunk[r.script.sent[r.next]:], time.Now().UnixNano())
	if _, err := r.conn.Write(r.chunk); err != nil {
		_ = r.conn.Close()
		r.failed = true
		return time.Time{}, false
	}
	r.next++
	r.due = r.due.Add(r.gap)
	return r.due, r.next < len(r.script.chunks)
}
