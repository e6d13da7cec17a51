// Package proxy is the data plane: a transparent reverse proxy that gives the
// requests passing through it a memory.
//
// One request's life: a listener accepts it, the router picks an upstream from
// the configuration, and the exchange parses, resolves whose memory it is,
// replays and recalls, splices, sends, relays the answer byte for byte, and
// hands a copy of the finished turn to persistence.
//
// # Guarantees
//
//   - A request that would succeed without Remora succeeds with it. If memory is
//     slow, broken or panics, the original bytes are sent; an upstream that
//     refuses an enriched body gets the original once.
//   - A body without memory leaves byte-identical. An enriched one differs only by
//     the inserted bytes.
//   - The answer is relayed as it arrives. Nothing waits for memory once the
//     upstream has answered.
//   - What an earlier request of a conversation was given, later requests carry
//     byte for byte (the ledger).
//   - Only names, counts and times are logged or traced.
//
// # Bounds
//
// Bodies that are read are bounded one by one and all together, and so are
// copies of answers, turns waiting to be assembled and ledger entries. Beyond
// any bound the traffic continues without that part of memory, which is
// counted.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// Recaller is the part of recall.Engine that an exchange needs.
type Recaller interface {
	// Recall's Result.Memories are the caller's, which overwrites them.
	Recall(ctx context.Context, r recall.Request) (recall.Result, error)
	// Loaded reports whether the scope's index is in memory, so that Recall
	// need not wait for the store.
	Loaded(scope storage.Scope) (loaded bool, since time.Time)
}

// Persister takes finished turns. Enqueue must not block.
type Persister interface {
	Enqueue(t persist.Turn) error
}

// Config configures the data plane.
type Config struct {
	Upstreams []httpclient.UpstreamConfig
	Transport httpclient.TransportConfig
	Streams   StreamConfig
	Identity  identity.Config
	Clients   []identity.Client // in addition to the known ones, or instead of those of the same name
	Limits    LimitsConfig
	Injection InjectionConfig
	Policy    []policy.Rule // the first that fits decides
	Ledger    ledger.Config
	WebSocket string // WebSocketFallback, WebSocketPass or WebSocketEnrich
	// RecallDeadline limits what memory may add to a request. FirstDeadline
	// applies while the user's index or ledger is not in memory yet.
	RecallDeadline time.Duration
	FirstDeadline  time.Duration
}

// LimitsConfig limits buffers, in bytes unless noted.
type LimitsConfig struct {
	BodyBytes     int64 // larger request bodies stream through unenriched
	BufferedBytes int64 // all request bodies held at once; beyond, requests stream through unenriched
	TeeBytes      int64 // larger answers are not remembered
	TeesBytes     int64 // all copies of answers held at once; beyond, answers are not remembered
	Assemblies    int   // finished answers waiting to be read for their turn; beyond, turns are dropped and counted
}

// InjectionConfig configures how recalled memories enter a request.
type InjectionConfig struct {
	Placement    string // beforeUser or system
	Responses    string // item or instructions: where blocks go in Responses, unless Placement is system
	CountTokens  bool   // requests that count tokens get what the counted request would get
	Repair       string // RepairStrip, RepairDropBlock or RepairOff
	RuleInSystem bool   // put the rule into the system prompt instead of each block; costs that prompt's cache once
}

// Values of InjectionConfig.Placement and InjectionConfig.Responses.
const (
	PlacementBeforeUser = "beforeUser"
	PlacementSystem     = "system"

	PlacementItem         = "item"
	PlacementInstructions = "instructions"
)

// DefaultConfig has the public upstreams only.
func DefaultConfig() Config {
	return Config{
		Upstreams: httpclient.DefaultUpstreams(),
		Transport: httpclient.DefaultTransportConfig(),
		Streams:   DefaultStreamConfig(),
		Identity:  identity.DefaultConfig(),
		Limits: LimitsConfig{
			BodyBytes: 32 << 20, BufferedBytes: 64 << 20, TeeBytes: 8 << 20, TeesBytes: 64 << 20, Assemblies: 4096,
		},
		Injection:      InjectionConfig{Placement: PlacementBeforeUser, Responses: PlacementItem, CountTokens: true, Repair: RepairStrip},
		Ledger:         ledger.DefaultConfig(),
		WebSocket:      WebSocketEnrich,
		RecallDeadline: 30 * time.Millisecond,
		FirstDeadline:  150 * time.Millisecond,
	}
}

// Validate returns all problems of c, joined, each with its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, msg string) {
		if !ok {
			errs = append(errs, errors.New(msg))
		}
	}
	within := func(section string, err error) {
		for _, e := range unjoin(err) {
			errs = append(errs, fmt.Errorf("%s.%w", section, e))
		}
	}
	errs = append(errs, unjoin(httpclient.ValidateUpstreams(c.Upstreams))...)
	within("transport", c.Transport.Validate())
	within("streams", c.Streams.Validate())
	within("identity", c.Identity.Validate())
	errs = append(errs, unjoin(identity.ValidateClients(c.Clients))...)
	within("ledger", c.Ledger.Validate())
	errs = append(errs, unjoin(policy.Validate(c.Policy))...)
	check(c.Limits.BodyBytes >= 1<<10 && c.Limits.BodyBytes <= 1<<30, "limits.bodyBytes: must be between 1024 and 1073741824")
	check(c.Limits.BufferedBytes >= c.Limits.BodyBytes, "limits.bufferedBytes: must be at least limits.bodyBytes")
	check(c.Limits.TeeBytes >= 1<<10 && c.Limits.TeeBytes <= 1<<30, "limits.teeBytes: must be between 1024 and 1073741824")
	check(c.Limits.TeesBytes >= c.Limits.TeeBytes, "limits.teesBytes: must be at least limits.teeBytes")
	check(c.Limits.Assemblies >= 1, "limits.assemblies: must be at least 1")
	check(c.Injection.Placement == PlacementBeforeUser || c.Injection.Placement == PlacementSystem,
		"injection.placement: must be beforeUser or system")
	check(c.WebSocket == WebSocketFallback || c.WebSocket == WebSocketPass || c.WebSocket == WebSocketEnrich,
		"websocket: must be fallback, pass or enrich")
	check(c.Injection.Responses == PlacementItem || c.Injection.Responses == PlacementInstructions,
		"injection.responses: must be item or instructions")
	check(c.Injection.Repair == RepairStrip || c.Injection.Repair == RepairDropBlock || c.Injection.Repair == RepairOff,
		"injection.repair: must be strip, dropBlock or off")
	check(c.RecallDeadline > 0, "recallDeadline: must be > 0")
	check(c.FirstDeadline >= c.RecallDeadline, "firstDeadline: must be at least recallDeadline")
	return errors.Join(errs...)
}

func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Deps are what a Handler works with. Recall, Persist and Local may be nil
// together; then everything passes through.
type Deps struct {
	Recall  Recaller
	Persist Persister
	// SaveNote takes what a model has saved with a memory tool of the client's.
	// It must not block; nil = nothing is taken.
	SaveNote func(scope storage.Scope, conversation, call, text string)
	// Receipts keeps the receipts of exchanges; nil = there are none.
	Receipts ReceiptRecorder
	Local    storage.Local
	// Journal is a directory for what the ledger has not yet stored in Local;
	// see [ledger.Ledger.OpenJournal]. "" = none.
	Journal string
	Log     *slog.Logger
	Tracer  trace.TracerProvider // nil = no tracing
	Meter   metric.MeterProvider // for what is measured of each exchange; nil = nothing is
	Now     func() time.Time     // nil = time.Now
	// Redact is applied to recalled memories before they are shown, because
	// rules may have been added since they were stored. It is on the request
	// path, so it should know most texts already. nil = none.
	Redact func(text string) string
	// Placeholder reports whether a text is what Redact writes for what it has
	// found. nil = nothing is.
	Placeholder func(text string) bool
	// Note returns what X-Remora-Status says about memory as a whole, after ";
	// ". It does no I/O. nil or "" = nothing.
	Note func() string
}

// Handler serves all listeners. Create it with New; Run must be running while
// it serves.
type Handler struct {
	cfg      Config
	plane    *plane
	identity *identity.Resolver
	policy   *policy.Policy
	routes   []route
	deps     Deps
	log      *slog.Logger
	tracer   trace.Tracer // nil = off
	meters   *meters      // nil = off
	w3c      propagation.TraceContext

	bodies, tees budget
	ledger       *ledger.Ledger
	placements   *placements
	assembler    *assembler
	usages       usages
	privacies    privacies
	secret       atomic.Pointer[[]byte]         // install secret, once the store gave it
	turns        atomic.Pointer[ledger.TurnIDs] // set before secret
	said         atomic.Int64                   // the newest time given to a message
	warned       sync.Map                       // what warnOnce has logged

	stats Stats
}

// Stats are counters since the start.
type Stats struct {
	Exchanges   atomic.Int64
	statuses    map[Status]*atomic.Int64 // fixed keys; see ByStatus
	Panics      atomic.Int64             // in memory code; the request passed through
	Retries     atomic.Int64             // requests refused and sent again, without blocks or repaired
	Repairs     atomic.Int64             // requests repaired, see StatusRepaired
	Unrepaired  atomic.Int64             // refusals of bound parts that no repair has helped; the client got them
	failures    problem.Counts           // see Failures
	searches    [searchOutcomes]atomic.Int64
	Recalled    atomic.Int64 // memories that searches have found
	Inserted    atomic.Int64 // bytes of blocks inserted for new turns
	TeeSkipped  atomic.Int64 // answers not copied: over a bound
	Undecoded   atomic.Int64 // answers whose content encoding could not be read
	NotFinal    atomic.Int64 // answers that are not turns: tool calls, errors, cut streams
	Assembled   atomic.Int64 // turns handed to persistence
	TurnsLost   atomic.Int64 // turns dropped before or by persistence's queue
	TooEarly    atomic.Int64 // requests to remember before the store could first identify their users
	InputTokens atomic.Int64 // that upstreams reported for answers that were read
	CacheRead   atomic.Int64 // of InputTokens: from the prompt cache
	CacheWrite  atomic.Int64 // of InputTokens: into the prompt cache
	LedgerLate  atomic.Int64 // answers that ended before what was inserted for them was stored
	Reading     func() int   // answers waiting to be read for their turn
	LedgerDrops func() int64 // ledger entries not stored, or unreadable
	LedgerTrims func() int64 // records of the ledger deleted because it was full
	// LedgerSize returns the bytes of the ledger in memory, and of what waits
	// to be stored.
	LedgerSize func() (memory, unsaved int64)
}

// ByStatus counts exchanges by what became of memory in them.
func (s *Stats) ByStatus() map[Status]int64 {
	out := map[Status]int64{}
	for k, v := range s.statuses {
		if n := v.Load(); n > 0 {
			out[k] = n
		}
	}
	return out
}

// Failures adds to by how many exchanges failed, whether Remora reads them or
// not: by the status of the upstream, 400 to 599, or else by what the log calls
// failed.
func (s *Stats) Failures(by map[string]int64) { s.failures.AddTo(by) }

// Searches counts searches for memories by how they ended: found, empty,
// timeout or failed.
func (s *Stats) Searches() map[string]int64 {
	out := map[string]int64{}
	for o := range searchOutcomes {
		out[o.String()] = s.searches[o].Load()
	}
	return out
}

// Statuses returns all that ByStatus may have.
func Statuses() []Status { return slices.Clone(statuses[:]) }

// New returns a Handler. It reads the upstreams' CA files and does no other
// I/O.
func New(cfg Config, deps Deps) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure proxy: %w", err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	h := &Handler{
		cfg: cfg, deps: deps, log: deps.Log, identity: identity.New(cfg.Identity, cfg.Clients), policy: policy.New(cfg.Policy),
		routes: routes(),
		bodies: budget{limit: cfg.Limits.BufferedBytes}, tees: budget{limit: cfg.Limits.TeesBytes},
		placements: newPlacements(deps.Now),
	}
	h.stats.statuses = map[Status]*atomic.Int64{}
	for _, s := range statuses {
		h.stats.statuses[s] = new(atomic.Int64)
	}
	var err error
	if h.plane, err = openPlane(cfg.Upstreams, cfg.Transport, cfg.Streams); err != nil {
		return nil, fmt.Errorf("configure upstreams: %w", err)
	}
	if deps.Tracer != nil {
		h.tracer = deps.Tracer.Tracer(instrumentation)
	}
	if h.meters, err = newMeters(deps.Meter, deps.Redact); err != nil {
		return nil, fmt.Errorf("configure metrics: %w", err)
	}
	h.ledger = ledger.New(cfg.Ledger, deps.Local, deps.Log, deps.Now)
	h.stats.LedgerDrops, h.stats.LedgerTrims, h.stats.LedgerSize = h.ledger.Dropped, h.ledger.Trimmed, h.ledger.Size
	h.assembler = newAssembler(h)
	h.stats.Reading = func() int { return len(h.assembler.queue) }
	return h, nil
}

// clockBack is how far the clock may be set back without later messages
// becoming older than earlier ones.
const clockBack = time.Minute

// stamp returns when a message was said: not before any earlier stamp, as long
// as the clock goes back by at most clockBack.
func (h *Handler) stamp(at time.Time) storage.Time {
	now := int64(storage.TimeOf(at))
	for {
		last := h.said.Load()
		if now < last && last-now <= clockBack.Milliseconds() {
			return storage.Time(last)
		}
		if h.said.CompareAndSwap(last, now) {
			return storage.Time(now)
		}
	}
}

// Stats returns the live counters.
func (h *Handler) Stats() *Stats { return &h.stats }

// Forget removes memories from what later requests replay. Privacy beats the
// cache.
func (h *Handler) Forget(scope storage.Scope, ids ...string) {
	h.installSecret(context.Background()) // opens the journal, which may hold them
	h.ledger.Forget(scope, ids...)
}

// Drop forgets all that later requests of a scope would replay, as after its
// erasure.
func (h *Handler) Drop(scope storage.Scope) {
	h.installSecret(context.Background()) // opens the journal, which may hold some of it
	h.ledger.Erase(scope)
}

// PauseWrites waits until nothing of a scope's ledger is being written and
// keeps it so until resume is called. Call it before the scope is erased, and
// resume after Drop.
func (h *Handler) PauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error) {
	return h.ledger.PauseWrites(ctx, scope)
}

// Flush waits until the turns whose answers clients have got before the call
// are handed to persistence. Run must be running.
func (h *Handler) Flush(ctx context.Context) error { return h.assembler.flush(ctx) }

// Run does the work that follows exchanges: assembling turns and storing the
// ledger. It returns once ctx has ended and what was waiting is done. End ctx
// after the listeners are closed and before persistence ends.
func (h *Handler) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { h.awaitSecret(ctx) })
	wg.Go(func() { h.assembler.run(ctx) })
	wg.Go(func() { h.ledger.Run(ctx) })
	wg.Wait()
	h.plane.router.CloseIdle()
}

// ownPath is where Remora's own paths are. No upstream has any there.
const ownPath = "/.remora"

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == listener.LivePath {
		h.plane.leaveBody(w, r)
		listener.Live(w)
		return
	}
	if r.URL.Path == ownPath || strings.HasPrefix(r.URL.Path, ownPath+"/") {
		h.plane.leaveBody(w, r)
		problemOwnPath.Write(w)
		h.stats.failures.Add(problemOwnPath.Kind())
		return
	}
	h.exchange(w, r, nil, "")
}

// For returns a handler for requests that were meant for host only: their path
// does not influence where they go. upstream names the configured upstream that
// gets them; "" = the one whose URL has this host or, if there is none, the
// host itself over HTTPS. For reads the upstream's CA file if one must be
// opened.
func (h *Handler) For(host, upstream string) (http.Handler, error) {
	up, err := h.plane.router.ForHost(host, upstream)
	if err != nil {
		return nil, fmt.Errorf("intercept %s: %w", host, err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.exchange(w, r, up, host)
	}), nil
}

// exchange sends a request to up or, if up is nil, to the upstream of its path.
// host is the intercepted one, "" at the reverse listener.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, up *httpclient.Upstream, host string) {
	h.stats.Exchanges.Add(1)
	x := exchanges.Get().(*httpExchange)
	x.w, x.call = w, call{h: h, r: r, start: h.deps.Now(), up: up, host: host}
	x.plan.status = StatusUnsupported
	x.serve()
	x.recycle()
}
