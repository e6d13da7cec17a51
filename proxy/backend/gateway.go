package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/recall/breaker"
	"github.com/remora-proxy/remora/storage"
)

// Deps are what a backend works with.
type Deps struct {
	// Redact is applied to what leaves the process, and to curated files. It is
	// required.
	Redact func(text string) string
	// OnlyPlaceholders reports whether nothing but placeholders is left of a
	// redacted text, which is then not sent. nil = nothing is.
	OnlyPlaceholders func(text string) bool
	Log              *slog.Logger     // nil = none
	Now              func() time.Time // nil = time.Now
}

// fill sets defaults, or fails.
func (d *Deps) fill() error {
	if d.Redact == nil {
		return errors.New("no redaction")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return nil
}

// Limits of turns that wait. Beyond them turns are dropped and counted.
const (
	maxQueued      = 1024
	maxQueuedBytes = 32 << 20
)

// Gateway is a client of a Memory Gateway. Run must be running for turns to be
// sent.
type Gateway struct {
	cfg  GatewayConfig
	base string // without a slash at its end
	deps Deps
	http *http.Client

	mu     sync.RWMutex // guards closed, and queue against being closed under a sender
	closed bool
	queue  chan persist.Turn
	bytes  atomic.Int64 // of the texts in queue
	last   int64        // the newest timestamp sent; Run's own

	searches breaker.Breaker

	accepted, recalls, added, flushed atomic.Int64
	dropped, skipped                  atomic.Int64
	failed                            map[operation]map[Category]*atomic.Int64 // fixed keys
}

// NewGateway returns a Gateway. It does no I/O.
func NewGateway(cfg GatewayConfig, deps Deps) (*Gateway, error) {
	if err := errors.Join(cfg.Validate(), deps.fill()); err != nil {
		return nil, fmt.Errorf("configure gateway: %w", err)
	}
	if cfg.AppID == "" {
		cfg.AppID = defaultPart
	}
	if cfg.ProjectID == "" {
		cfg.ProjectID = defaultPart
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	if cfg.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
	}
	g := &Gateway{
		cfg: cfg, base: strings.TrimRight(cfg.BaseURL, "/"), deps: deps, queue: make(chan persist.Turn, maxQueued),
		// A redirect would send the key to a server that no setting names.
		http:   &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		failed: map[operation]map[Category]*atomic.Int64{}, searches: breaker.Breaker{MinCooldown: minPause, MaxCooldown: maxPause},
	}
	for _, op := range operations {
		g.failed[op] = map[Category]*atomic.Int64{}
		for _, c := range Categories() {
			g.failed[op][c] = new(atomic.Int64)
		}
	}
	return g, nil
}

// Loaded reports true: there is nothing to load.
func (g *Gateway) Loaded(storage.Scope) (loaded bool, since time.Time) { return true, time.Time{} }

// Enqueue hands in a turn and never blocks. A nil error means that it waits to
// be sent.
func (g *Gateway) Enqueue(t persist.Turn) error {
	waiting := persist.Turn{Conversation: strings.Clone(t.Conversation)}
	size := int64(len(t.Conversation))
	for i := range t.Messages {
		m := t.Messages[i]
		m.Text = strings.Clone(m.Text[:min(len(m.Text), maxRead)]) // it may be part of a request body, which would stay in memory whole
		waiting.Messages = append(waiting.Messages, m)
		size += int64(len(m.Text))
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		g.dropped.Add(1)
		return persist.ErrClosed
	}
	if g.bytes.Add(size) <= maxQueuedBytes {
		select {
		case g.queue <- waiting:
			g.accepted.Add(1)
			return nil
		default:
		}
	}
	g.bytes.Add(-size)
	g.dropped.Add(1)
	return persist.ErrFull
}

// Run sends turns until ctx ends, and then those that wait, for at most
// GatewayConfig.Timeout. It is called once.
func (g *Gateway) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		g.close()
		late := time.NewTimer(g.cfg.Timeout)
		defer late.Stop()
		select {
		case <-late.C:
			stop()
		case <-work.Done():
		}
	})
	for t := range g.queue {
		g.bytes.Add(-sizeOf(&t))
		if work.Err() != nil {
			g.dropped.Add(1)
			continue
		}
		g.remember(work, &t)
	}
	stop()
	wg.Wait()
	g.http.CloseIdleConnections()
	return nil
}

func sizeOf(t *persist.Turn) int64 {
	n := len(t.Conversation)
	for i := range t.Messages {
		n += len(t.Messages[i].Text)
	}
	return int64(n)
}

// close ends the queue: what waits is still sent, and nothing more is taken.
func (g *Gateway) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	close(g.queue)
}

// GatewayStats are counters since the start.
type GatewayStats struct {
	Recalls  int64 // that were answered
	Accepted int64 // turns that were queued
	Added    int64 // turns
	Flushed  int64 // turns
	Waiting  int   // turns
	Dropped  int64 // turns for which there was no room or no time
	Skipped  int64 // turns of which nothing may be sent
	Paused   bool  // searches have failed, and the gateway is not asked for now
	// Failed counts failures by operation (recall, add, flush) and category.
	Failed map[string]map[Category]int64
}

// Lost returns how many turns the gateway does not have and never will: those
// dropped, and those whose add failed.
func (s GatewayStats) Lost() int64 {
	lost := s.Dropped
	for _, n := range s.Failed[string(opAdd)] {
		lost += n
	}
	return lost
}

// Stats returns the counters. Only failures that occurred are listed.
func (g *Gateway) Stats() GatewayStats {
	out := GatewayStats{
		Recalls: g.recalls.Load(), Accepted: g.accepted.Load(), Added: g.added.Load(), Flushed: g.flushed.Load(), Waiting: len(g.queue),
		Dropped: g.dropped.Load(), Skipped: g.skipped.Load(), Paused: g.searches.IsOpen(), Failed: map[string]map[Category]int64{},
	}
	for op, by := range g.failed {
		for c, n := range by {
			if v := n.Load(); v > 0 {
				if out.Failed[string(op)] == nil {
					out.Failed[string(op)] = map[Category]int64{}
				}
				out.Failed[string(op)][c] = v
			}
		}
	}
	return out
}
