// Package persist turns finished turns into memories, off the request path.
//
//	Enqueue -> queue -> spooler -> storer -> auditor
//
// The spooler strips, redacts and commits turns. The storer makes episodes of
// them and updates the index. The auditor reads windows of conversations and
// keeps facts, summaries and the limits of each scope.
//
// Guarantees:
//
//   - Enqueue never blocks and does no I/O. The queue is bounded in turns and
//     in bytes; at the limit turns are refused and counted. A turn counts until
//     it is a memory, so memory stays bounded while the store is away.
//   - Text is redacted, and recalled blocks are removed from it, before it
//     reaches a disk, an index, a log or a trace.
//   - A turn counts as persisted once its spool commit has returned nil, and
//     survives a crash from then on. What the spool holds at the start of Run
//     becomes memories before anything new does. A turn that was stored but not
//     yet deleted from the spool is stored again to the same effect.
//   - One turn id is one turn: the same texts again change nothing, other texts
//     replace. Turns keep the order in which they were handed in.
//   - Run returns only when its context ends, whatever the store, the index or
//     a single turn does. A turn that panics or that the store refuses is tried
//     three times and then set aside ([Pipeline.Quarantined]).
//   - Facts are the user's own statements, with ids made of their words: an
//     audit made twice adds nothing. An audit that was due at a crash is due
//     again after it. Under overload audits are dropped and counted, turns are
//     not.
//   - Text shaped like an instruction to a model is stored with trust 0: kept
//     for review, never recalled.
//   - Of statements that can't both hold, the one said last holds, whenever it
//     was audited. What was forgotten is saved again only if it is said again.
//   - An erasure leaves nothing behind, neither in the queue, nor in the spool,
//     nor with the auditor ([Pipeline.ForgetUser]).
//
// The proxy, imports and benchmarks hand in turns; cmd/remora runs the Pipeline
// and forgets through it. Package extract reads statements out of texts, facts
// decides what becomes of them, distill asks a model for them.
package persist

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Errors of Enqueue, in addition to those that wrap storage.ErrInvalid. With
// each, the turn is dropped and counted.
var (
	ErrFull        = errors.New("persist queue full")
	ErrRateLimited = errors.New("too many turns of one user")
	ErrClosed      = errors.New("persist pipeline stopped")
)

// Pipeline persists turns. All methods are safe for concurrent use; Run is
// called once.
type Pipeline struct {
	*shared
	limiter limiter
	spooler spooler
	storer  storer
	auditor *auditor
	running atomic.Bool
	stopped chan struct{} // closed when Run has returned
}

// New returns a Pipeline, which works while Run does. index, log and tp may be
// nil; red may be nil if the texts are redacted already. cfg must be valid.
func New(cfg Config, store storage.Store, local storage.Local, index Indexer, red *redact.Redactor, log *slog.Logger, tp trace.TracerProvider) *Pipeline {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if tp == nil {
		tp = noop.NewTracerProvider()
	}
	s := &shared{
		cfg: cfg, tuning: defaultTuning, store: store, local: local, log: log, tracer: tp.Tracer(tracerName),
		redactor: redactor{rules: red, maxMessage: cfg.MaxMessageBytes, keepOriginals: cfg.KeepOriginals, local: local},
		index:    notifier{index: index, log: log},
		gate:     newGate(), queue: newQueue(cfg.QueueTurns, cfg.QueueBytes), passages: make(passageLock, 1),
	}
	a := newAuditor(s)
	return &Pipeline{
		shared: s, limiter: limiter{rate: cfg.TurnsPerSecond}, stopped: make(chan struct{}),
		spooler: spooler{shared: s}, storer: storer{shared: s, auditor: a}, auditor: a,
	}
}

// SetDistiller has a model propose what to save. Call it before Run; nil means
// the built-in rules.
func (p *Pipeline) SetDistiller(d Distiller) { p.auditor.distiller = d }

// Enqueue hands in a turn and never blocks. A nil error means that the turn is
// in memory, not that it is persisted. Messages without a time get the current
// one.
func (p *Pipeline) Enqueue(t Turn) error {
	now := time.Now()
	if t.validate() == nil && !p.limiter.allow(t.Scope, now) {
		p.stats.drop(DropRateLimited)
		return ErrRateLimited
	}
	err := p.enqueue(t, now)
	switch {
	case errors.Is(err, ErrFull):
		p.stats.drop(DropFull)
	case errors.Is(err, ErrClosed):
		p.stats.drop(DropStopped)
	}
	return err
}

// enqueue takes in a turn, or fails. It counts what is invalid.
func (p *Pipeline) enqueue(t Turn, now time.Time) error {
	if err := t.validate(); err != nil {
		p.stats.drop(DropInvalid)
		return err
	}
	t.Messages = slices.Clone(t.Messages)
	for i := range t.Messages {
		m := &t.Messages[i]
		if m.Time == 0 {
			m.Time = storage.Now()
		}
		m.Text = strings.Clone(m.Text) // it may be part of a request body, which would stay in memory whole
	}
	if err := p.queue.add(&item{turn: t, size: t.size(), since: now}); err != nil {
		return err
	}
	p.stats.enqueued.Add(1)
	return nil
}

// Import is Enqueue for many turns at once: it waits for room instead of
// dropping, and no rate applies.
func (p *Pipeline) Import(ctx context.Context, t Turn) error {
	for {
		err := p.enqueue(t, time.Now())
		if !errors.Is(err, ErrFull) {
			return err
		}
		timer := time.NewTimer(importPause)
		select {
		case <-timer.C:
		case <-p.stopped:
			return ErrClosed
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// importPause is how long an import waits for room in the queue.
const importPause = 20 * time.Millisecond

// Flush waits until every turn accepted before the call is searchable, set
// aside or dropped. It needs Run to be running.
func (p *Pipeline) Flush(ctx context.Context) error {
	done, release := p.queue.flush()
	defer release()
	return p.await(ctx, done)
}

// Settle audits all that was accepted before the call, whether due or not, and
// waits for it. It needs Run to be running.
func (p *Pipeline) Settle(ctx context.Context) error {
	if err := p.Flush(ctx); err != nil {
		return err
	}
	done, ok := p.auditor.settle()
	if !ok {
		return ErrClosed
	}
	return p.await(ctx, done)
}

// await returns nil when done is closed, and fails if the pipeline stops or ctx
// ends before.
func (p *Pipeline) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-p.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run works until ctx ends and then drains what was accepted, for at most
// Config.DrainTimeout. If the store never came and nothing was accepted, it
// ends at once. It fails only when called twice: a failing store is waited for.
// Turns that are not durable by the end are dropped and counted; the next Run
// on the same store continues with durable ones.
func (p *Pipeline) Run(ctx context.Context) error {
	if p.running.Swap(true) {
		return errors.New("persist pipeline is running already")
	}
	defer close(p.stopped)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var stages sync.WaitGroup
	ending := make(chan struct{}) // closed once no more turns are accepted
	stages.Go(func() {            // ends when the drain does, or cuts it short
		select {
		case <-ctx.Done():
		case <-work.Done():
			return
		}
		p.queue.close()
		close(ending)
		timer := time.NewTimer(p.cfg.DrainTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			stop()
		case <-work.Done():
		}
	})

	recovered := p.gate.enter(work)
	if recovered {
		recovered = p.recover(ctx, work)
		p.gate.leave()
	}
	if recovered {
		spooling, auditing := make(chan struct{}), make(chan struct{})
		stages.Go(func() {
			defer close(spooling)
			p.spooler.run(ctx, work, ending)
		})
		stages.Go(func() {
			defer close(auditing)
			p.auditor.run(ctx, work, ending)
		})
		p.storer.run(ctx, work, spooling)
		<-auditing
	}
	stop()
	stages.Wait()
	lost, left := p.queue.abandon()
	for range lost {
		p.stats.drop(DropStopped)
	}
	if lost+left > 0 {
		p.log.Warn("persistence stopped before its queue was empty", "dropped", lost, "left_in_spool", left)
	}
	return nil
}

// Waiting returns the scopes of turns that are not memories yet, which the
// store may not know.
func (p *Pipeline) Waiting() []storage.Scope {
	scopes := map[storage.Scope]bool{}
	p.queue.find(func(t *Turn) bool { scopes[t.Scope] = true; return false })
	return slices.Collect(maps.Keys(scopes))
}
