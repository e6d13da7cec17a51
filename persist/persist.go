// Package persist turns finished turns into memories, off the request path.
//
//	Enqueue -> queue -> spooler: strip, redact, encode, one durable commit -> storer: episodes, Put, index, delete from spool
//	                                                                             |
//	                                         auditor: windows of conversations, facts, summaries, bounds of each scope
//
// Guarantees:
//
//   - Enqueue never blocks and does no I/O. The queue is bounded in turns and in bytes; at the bound turns are refused and
//     counted. A turn counts against the bounds until it is a memory, so memory stays bounded while the store is away.
//   - Text is redacted, and recalled blocks are taken out of it, before it reaches a disk, an index, a log or a trace.
//   - A turn is persisted once its spool commit returned nil, and from then on survives a crash: what the spool holds at
//     the start of Run becomes memories before anything new does. A turn that was stored but not yet taken from the spool
//     is found again and stored to the same effect.
//   - One turn id is one turn: the same texts again change nothing, other texts replace. Turns keep the order in which
//     they were handed in.
//   - Run returns only when its context ends, whatever store, index or a single turn do. A turn that panics or that the
//     store refuses is tried three times and then set aside ([Pipeline.Quarantined]).
//   - Facts are the user's own statements. They have ids of their words, so an audit made twice adds nothing; an audit
//     that was due at a crash is due again after it. Under overload audits are left out and counted, turns are not.
//   - What is shaped like an instruction to a model, or orders one about without being the user's own words, is stored with
//     Trust 0: kept for review, never recalled.
//   - Of statements that can't both hold the one that was said last does, whenever it was audited. What was forgotten is saved
//     again only if it was said after that.
//   - An erasure leaves nothing behind: neither in the queue, nor in the spool, nor with the auditor ([Pipeline.ForgetUser]).
package persist

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// Errors of Enqueue, beside those that wrap storage.ErrInvalid. The turn is counted and dropped with each.
var (
	ErrFull        = errors.New("persist queue full")
	ErrRateLimited = errors.New("too many turns of one user")
	ErrClosed      = errors.New("persist pipeline stopped")
)

// Indexer is told of every change, after it is durable. Calls come one at a time and in order.
type Indexer interface {
	// Add hands in new memories. With a turn, ms is the whole truth about that turn: what it left before is gone.
	Add(scope storage.Scope, turn string, ms []storage.Memory)
	// Forget takes memories out.
	Forget(scope storage.Scope, ids ...string)
}

// Config of a Pipeline.
type Config struct {
	// QueueTurns and QueueBytes bound the turns that are not memories yet. Bytes are those of the texts plus a constant.
	QueueTurns int
	QueueBytes int64
	// TurnsPerSecond is the rate of turns that one scope may hand in, with a burst of one second; 0 = no limit.
	TurnsPerSecond float64
	// CommitInterval and CommitTurns: a spool commit waits for so many turns, at most so long. It takes more, up to
	// MaxBatchTurns, where they have queued up meanwhile.
	CommitInterval time.Duration
	CommitTurns    int
	// BatchInterval and BatchTurns: the same for the write to the store. A backlog is written in batches of MaxBatchTurns.
	BatchInterval time.Duration
	BatchTurns    int
	MaxBatchTurns int
	// MaxMessageBytes cuts longer messages.
	MaxMessageBytes int
	// MaxWrite is the largest write that the store takes. What a turn has beyond it is left out.
	MaxWrite int
	// Retention is how long episodes live, from the time they were said.
	Retention time.Duration
	// DrainTimeout bounds how long Run goes on after its context has ended. What is spooled by then is not lost.
	DrainTimeout time.Duration
	// KeepOriginals stores the originals of redacted personal data beside each memory, as redact.EncodeOriginals makes them. They are
	// sealed as the memory is, and go with it. Secrets' are never kept.
	KeepOriginals bool
	// Workers prepare turns (redaction) beside the one that always does, where many wait.
	Workers int
	// MaxQuarantined bounds the turns kept for inspection; beyond it, poison turns are dropped and counted.
	MaxQuarantined int
	// Audit and Facts are about what is distilled from conversations, and about the bounds of one scope.
	Audit AuditConfig
	Facts FactConfig
}

// DefaultConfig suits one machine. Few large writes take less processor time than many small ones, in both processes, and
// requests wait for that time; a turn is searchable within a fifth of a second all the same.
func DefaultConfig() Config {
	return Config{
		QueueTurns: 20_000, QueueBytes: 32 << 20, TurnsPerSecond: 100,
		CommitInterval: 20 * time.Millisecond, CommitTurns: 64,
		BatchInterval: 100 * time.Millisecond, BatchTurns: 64, MaxBatchTurns: 256,
		MaxMessageBytes: 128 << 10, MaxWrite: storage.MaxWrite, KeepOriginals: true, Retention: 90 * 24 * time.Hour, DrainTimeout: 10 * time.Second,
		Workers: 2, MaxQuarantined: 1000, Audit: DefaultAuditConfig(), Facts: DefaultFactConfig(),
	}
}

// Validate returns all problems.
func (c Config) Validate() error {
	var all checker
	check := all.check
	check(c.QueueTurns > 0, "queueTurns", "> 0")
	check(c.QueueBytes >= 1<<20, "queueBytes", ">= 1 MiB")
	check(c.TurnsPerSecond >= 0, "turnsPerSecond", ">= 0")
	check(c.CommitInterval >= 0, "commitInterval", ">= 0")
	check(c.CommitTurns > 0 && c.CommitTurns <= storage.MaxRecords, "commitTurns", "between 1 and "+strconv.Itoa(storage.MaxRecords))
	check(c.BatchInterval >= 0, "batchInterval", ">= 0")
	check(c.BatchTurns > 0, "batchTurns", "> 0")
	check(c.MaxBatchTurns >= c.BatchTurns && c.MaxBatchTurns <= storage.MaxRecords, "maxBatchTurns", "between batchTurns and "+strconv.Itoa(storage.MaxRecords))
	check(c.MaxMessageBytes >= 1024 && c.MaxMessageBytes <= 4<<20, "maxMessageBytes", "between 1 KiB and 4 MiB")
	check(c.MaxWrite >= 128<<10 && c.MaxWrite <= storage.MaxWrite, "maxWrite", "between 128 KiB and that of the storage contract")
	check(c.Retention > 0, "retention", "> 0")
	check(c.DrainTimeout >= 0, "drainTimeout", ">= 0")
	check(c.Workers > 0, "workers", "> 0")
	check(c.MaxQuarantined >= 0, "maxQuarantined", ">= 0")
	c.Audit.validate(&all)
	c.Facts.validate(&all)
	return errors.Join(all.errs...)
}

// Pipeline persists turns. All methods are safe for concurrent use; Run is called once.
type Pipeline struct {
	cfg    Config
	store  storage.Store
	local  storage.Local
	index  Indexer // nil = none
	redact *redact.Redactor
	log    *slog.Logger
	tracer trace.Tracer

	limiter limiter
	stats   counters
	running atomic.Bool
	stopped chan struct{} // closed when Run has returned
	gate    gate
	auditor *auditor
	telling sync.Mutex // one call of the index at a time
	turns   turnLock
	secret  atomic.Pointer[[]byte]

	mu       sync.Mutex // guards what follows
	closing  bool       // Run's context has ended: nothing more is taken
	queued   []*item    // taken, not yet spooled
	spooled  []*item    // durable, not yet stored
	inFlight ledger     // all of them, in order
	hurry    int        // Flush calls that wait: batches don't
	wakeA    chan struct{}
	wakeB    chan struct{}
	lastSeq  uint64 // of spool records; used by the spooler alone
	aside    int    // quarantined records in the spool; used by the storer alone once Run has recovered
}

// New makes a Pipeline; it works while Run does. index, log and tp may be nil; red may be nil where the texts are
// redacted already. cfg must be valid.
func New(cfg Config, store storage.Store, local storage.Local, index Indexer, red *redact.Redactor, log *slog.Logger, tp trace.TracerProvider) *Pipeline {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if tp == nil {
		tp = noop.NewTracerProvider()
	}
	p := &Pipeline{
		cfg: cfg, store: store, local: local, index: index, redact: red, log: log,
		tracer:  tp.Tracer(tracerName),
		limiter: limiter{rate: cfg.TurnsPerSecond},
		stopped: make(chan struct{}),
		turns:   make(turnLock, 1),
		wakeA:   make(chan struct{}, 1),
		wakeB:   make(chan struct{}, 1),
		gate:    newGate(),
	}
	p.auditor = newAuditor(p)
	return p
}

// Enqueue hands in a turn and never blocks. A nil error means that it is in the queue, in memory, not yet that it is
// persisted. Messages without a time are given the current one.
func (p *Pipeline) Enqueue(t Turn) error {
	if err := t.validate(); err != nil {
		p.stats.drop(DropInvalid)
		return err
	}
	now := time.Now()
	if !p.limiter.allow(t.Scope, now) {
		p.stats.drop(DropRateLimited)
		return ErrRateLimited
	}
	t.Messages = slices.Clone(t.Messages)
	for i := range t.Messages {
		m := &t.Messages[i]
		if m.Time == 0 {
			m.Time = storage.TimeOf(now)
		}
		m.Text = strings.Clone(m.Text) // it may be a part of a request body, which would stay in memory whole
	}
	it := &item{turn: t, size: t.size(), since: now}
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		p.stats.drop(DropStopped)
		return ErrClosed
	}
	if !p.inFlight.admits(it.size, p.cfg.QueueTurns, p.cfg.QueueBytes) {
		p.mu.Unlock()
		p.stats.drop(DropFull)
		return ErrFull
	}
	p.inFlight.push(it)
	p.queued = append(p.queued, it)
	p.mu.Unlock()
	p.stats.enqueued.Add(1)
	wake(p.wakeA)
	return nil
}

// Flush waits until every turn taken before the call is searchable, set aside or dropped. It needs Run to be running.
func (p *Pipeline) Flush(ctx context.Context) error {
	p.mu.Lock()
	done := p.inFlight.drained()
	p.hurry++
	p.mu.Unlock()
	wake(p.wakeA)
	wake(p.wakeB)
	defer func() {
		p.mu.Lock()
		p.hurry--
		p.mu.Unlock()
	}()
	select {
	case <-done:
		return nil
	default:
		return p.await(ctx, done)
	}
}

// await returns when done is closed, unless the pipeline has stopped or ctx is done before.
func (p *Pipeline) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-p.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell makes a call of the index.
func (p *Pipeline) tell(call func(Indexer)) {
	if p.index == nil {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	if err := guard(func() error { call(p.index); return nil }); err != nil {
		p.log.Error("index not told", "error", err)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
