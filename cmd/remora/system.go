package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/cmd/remora/systemd"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/distill"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
	"github.com/remora-proxy/remora/proxy/forward"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// system is an assembled Remora that does not run yet.
type system struct {
	config    config.Config
	log       *slog.Logger
	telemetry export.Telemetry
	store     memoryStore
	engine    *recall.Engine
	embedder  *embed.Client // nil = none
	pipeline  *persist.Pipeline
	handler   *proxy.Handler
	server    *listener.Server // nil = none yet
	forward   *forward.Proxy   // nil = none
	service   *api.Service
	receipts  *receipt.Recorder // nil = none are kept
	control   *listener.Server  // nil = none
	probes    *listener.Server  // health listener, nil = none
	accepting atomic.Bool       // the listeners accept, and are not closing
	plane     plane
	curated   *backend.Curated   // nil = the memory is not that of two files
	gateway   *backend.Gateway   // nil = the memory is not a gateway's
	notes     *persist.ToolNotes // nil = none are taken
	lifetime  machine.Lifetime   // of the memories
	started   time.Time

	settings atomic.Pointer[[]api.Setting] // in force; nil = those of config
}

// newSystem assembles Remora and opens its listeners. run does the rest of the
// start.
func newSystem(c config.Config, log *slog.Logger, t export.Telemetry) (*system, error) {
	return newSystemOn(nil, c, log, t)
}

// newSystemOn is newSystem with listeners on sockets, as far as there are any.
func newSystemOn(sockets systemd.Sockets, c config.Config, log *slog.Logger, t export.Telemetry) (*system, error) {
	s, err := assemble(c, log, t)
	if err != nil {
		return nil, err
	}
	s.config.Server.Limit = listener.NewLimit(exchanges(c, log))
	s.server = listener.New(s.handler, s.config.Server, log)
	if l := sockets.Take(systemd.Reverse); l != nil {
		s.server.Use(l)
	} else if err := s.server.Listen(); err != nil {
		return nil, inUse(err)
	}
	if c.Forward.Listen != "" {
		if err := s.openForward(sockets.Take(systemd.Forward)); err != nil {
			return nil, err
		}
	}
	if s.control, err = s.newControl(sockets.Take(systemd.Control), log); err != nil {
		return nil, err
	}
	if s.probes, err = s.newHealth(sockets.Take(systemd.Health), log); err != nil {
		return nil, err
	}
	return s, nil
}

// openForward opens the forward listener, on a socket unless it is nil.
func (s *system) openForward(socket net.Listener) (err error) {
	if s.forward, err = newForward(s.config, s.handler, s.log); err != nil {
		return err
	}
	if socket != nil {
		return s.forward.Use(socket)
	}
	return inUse(s.forward.Listen())
}

// ownFiles is how many files Remora itself has open at most, besides those of
// exchanges: of the store, the log, the journal.
const ownFiles = 64

// fewExchanges is how many one machine's agents may need at a time.
const fewExchanges = 500

// exchanges returns how many requests are served at the same time. Each may
// take four files: its client's connection, the upstream's, another client's
// that waits or is idle, and an idle one to the upstream.
func exchanges(c config.Config, log *slog.Logger) int {
	fit := max((machine.MaxFiles()-ownFiles)/4, 1)
	if fit < min(c.Exchanges, fewExchanges) {
		log.Warn("few files may be open: limits.exchanges is lowered to a quarter of them", "exchanges", fit, "files", machine.MaxFiles())
	}
	return min(c.Exchanges, fit)
}

// assemble wires the parts behind the listeners, in this order from the disk up.
//
//	client ---HTTP---> server --------+
//	client --CONNECT-> forward        |
//	                                  v
//	                               handler ------> upstream
//	                                |    ^  \-> receipts
//	            finished turns      |    |  memories
//	                                v    |
//	           redactor <------ pipeline engine
//	                                | \--->^
//	          memories, spool       |      |  indexes, loaded when a user comes
//	                                v      |  and vectors, asked of recall.embeddings.url if one is set
//	                                store -+  in a process of its own, by a socket
func assemble(c config.Config, log *slog.Logger, t export.Telemetry) (*system, error) {
	s := &system{config: c, log: log, telemetry: t, started: time.Now()}
	s.lifetime = machine.LifetimeOf(memoryDir(c), c.Proxy.Identity.Container)
	s.store = newStore(c, log)
	redactor, err := redact.New(c.Redact)
	if err != nil {
		return nil, err
	}
	if c.Embeddings.URL != "" {
		if s.embedder, err = embed.New(c.Embeddings, log); err != nil {
			return nil, err
		}
		c.Recall.Vectors.Embedder = s.embedder
		c.Recall.Vectors.Redact = func(text string) string { text, _ = redactor.Redact(text); return text }
	}
	s.engine = recall.New(c.Recall, s.store, log, t.Traces)
	known := &knownMemories{Engine: s.engine}
	s.pipeline = persist.New(c.Persist, s.store, s.store, known, redactor, log, t.Traces)
	if c.Distill.URL != "" {
		s.pipeline.SetDistiller(distill.New(c.Distill))
	}
	if c.API.Receipts {
		s.receipts = receipt.NewRecorder(s.store, c.API.ReceiptRetention, log)
		s.receipts.Redact = redact.NewCache(redactor).Redact
	}
	deps := proxy.Deps{
		Recall: s.engine, Persist: s.pipeline, Local: s.store, Journal: filepath.Join(c.Storage.Dir, "journal"), Log: log, Tracer: t.Traces, Meter: s.meter(), Note: s.note, Now: storage.Clock,
		Redact: redact.NewCache(redactor).Redact, Placeholder: redactor.IsPlaceholder,
	}
	if s.receipts != nil {
		deps.Receipts = s.receipts
	}
	if err := s.useBackend(&deps, redactor); err != nil {
		return nil, err
	}
	if c.MemoryTool {
		s.notes = persist.NewToolNotes(s.pipeline)
		deps.SaveNote = s.notes.Save
	}
	if s.handler, err = proxy.New(c.Proxy, deps); err != nil {
		return nil, err
	}
	known.handler, known.receipts = s.handler, s.receipts
	token, err := adminToken(c)
	if err != nil { // nobody is the admin then
		log.Error("the control plane has no admin token", "error", err)
	}
	s.service = s.newService(token, redactor)
	return s, s.observeMetrics()
}

// authorityNotice is how long before the end of the certificate authority it is
// reported.
const authorityNotice = 30 * 24 * time.Hour

// newForward returns the forward listener. If its authority is missing or
// unreadable, it only tunnels.
func newForward(c config.Config, h *proxy.Handler, log *slog.Logger) (*forward.Proxy, error) {
	a, err := loadAuthority(c)
	switch {
	case err != nil:
		log.Error("the forward listener tunnels only, without memory: its certificate authority can't be used", "error", err)
	case a == nil && len(c.Forward.Intercept) > 0:
		log.Warn("the forward listener tunnels only, without memory: it has no certificate authority. 'remora ca init' makes one")
	case a != nil && time.Until(a.Expires()) < authorityNotice:
		log.Warn("the certificate authority ends soon: 'remora ca init --force' makes another", "ends", a.Expires().UTC().Format(time.DateOnly))
	}
	return forward.New(c.Forward, h.For, a, c.Server, log)
}

// inUse adds advice to the most common failure of a start.
func inUse(err error) error {
	if listener.IsInUse(err) {
		return fmt.Errorf("%w; is another Remora running? --listen takes another address", err)
	}
	return err
}

// Limits of the stages behind the listeners, in addition to what the stage
// before has handed over. The listeners have their own.
const (
	handPatience   = 10 * time.Second // turns assembled, ledger stored
	drainPatience  = 10 * time.Second // in addition to persist.drainTimeout, which limits the rest
	closePatience  = 30 * time.Second
	exportPatience = 700 * time.Millisecond
)

// run serves until ctx ends, then stops in the order of the data, so that every
// answered turn is stored.
func (s *system) run(ctx context.Context) error {
	listeners := s.server.Serve
	if s.forward != nil {
		listeners = together(listeners, s.forward.Serve)
	}
	if s.control != nil {
		listeners = together(listeners, s.control.Serve)
	}
	return runStages(ctx, s.log, append([]stage{
		{"listeners", s.afterStore(s.whileAccepting(listeners)), s.config.Server.Drain + closePatience},
		{"commands", together(s.listen, quietly(s.service.Run), quietly(s.closePage)), closePatience},
	}, s.behind()...)...)
}

// quietly makes a part of a stage of what can't fail.
func quietly(run func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error { run(ctx); return nil }
}

// behind returns the stages behind the listeners.
func (s *system) behind() []stage {
	return []stage{
		{"exchanges", quietly(s.handler.Run), handPatience},
		{"receipts", s.keepReceipts, handPatience},
		{"gateway", s.sendTurns, s.config.Backend.Gateway.Timeout + handPatience},
		{"persistence", s.afterStore(s.pipeline.Run), s.config.Persist.DrainTimeout + drainPatience},
		{"recall", s.recall, closePatience},
		{"store", together(s.store.Run, s.reap), closePatience},
		s.healthStage(), // it answers until everything else has stopped
		s.telemetryStage(),
	}
}

// storeGrace is how long the start waits for the store to open, so that the
// first requests have memory too. It does not wait for a store that reports why
// it is not open. Meanwhile clients connect, and are served right after.
const storeGrace = time.Second

func (s *system) afterStore(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		grace, cancel := context.WithTimeout(ctx, storeGrace)
		_ = until(grace, func() bool {
			now := s.store.Status()
			return now.Open || now.FailedOpens > 0 || now.Restarts > 0
		})
		cancel()
		return run(ctx)
	}
}

// recall runs the engine, and closes the embeddings client after it.
func (s *system) recall(ctx context.Context) error {
	err := s.engine.Run(ctx)
	if s.embedder != nil {
		s.embedder.Close()
	}
	return err
}

// reap removes what has expired from the store, while it runs.
func (s *system) reap(ctx context.Context) error {
	reap(ctx, s.store, newClock(s.config.Storage.Dir), reapInterval, s.log)
	<-ctx.Done()
	return nil
}

// keepReceipts writes receipts, and saves the notes of models, if either is
// kept.
func (s *system) keepReceipts(ctx context.Context) error {
	var all sync.WaitGroup
	if s.receipts != nil {
		all.Go(func() { s.receipts.Run(ctx) })
	}
	if s.notes != nil {
		all.Go(func() { s.notes.Run(ctx) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// sendTurns sends turns to the gateway, if there is one.
func (s *system) sendTurns(ctx context.Context) error {
	if s.gateway != nil {
		return s.gateway.Run(ctx)
	}
	<-ctx.Done()
	return nil
}

// telemetryStage ends after exportPatience, because a collector that hangs is
// not a failure of the run.
func (s *system) telemetryStage() stage {
	return stage{"telemetry", s.flushTelemetry, 3 * exportPatience}
}

// flushTelemetry waits for its turn and sends the telemetry of the stages
// before it.
func (s *system) flushTelemetry(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportPatience)
	defer cancel()
	if err := s.telemetry.Shutdown(last); err != nil {
		s.log.Warn("telemetry was lost", "error", export.Failure(err))
	}
	return nil
}

// identitySummary returns in words whose memory requests are about, given the
// settings and the environment.
func identitySummary(c config.Config) string {
	i := c.Proxy.Identity
	own := i.Loopback && !i.Container
	tenant := "one memory for all keys"
	switch {
	case i.Tenant == identity.TenantKey, i.Tenant == identity.TenantAuto && !own:
		tenant = "a memory for each key"
	case i.Tenant != identity.TenantAuto:
		tenant = "one memory, tenant " + i.Tenant
	}
	if i.Anonymous == identity.AnonymousKeyHolder || i.Anonymous == identity.AnonymousAuto && own {
		return tenant + ", requests without a user are the key holder's"
	}
	return tenant + ", requests without a user get none (identity.anonymous)"
}

// announce logs how Remora can be reached and what it does. It names no
// credential: an upstream's URL has none, and only its host is shown.
func (s *system) announce() {
	var upstreams []string
	for _, u := range s.config.Proxy.Upstreams {
		host := u.URL
		if parsed, err := url.Parse(u.URL); err == nil {
			host = parsed.Host
		}
		upstreams = append(upstreams, fmt.Sprintf("%s=%s", strings.Join(u.Paths, ","), host))
	}
	attributes := []any{
		"url", "http://" + s.server.Addr().String(),
		"upstreams", strings.Join(upstreams, " "),
		"data", s.config.Storage.Dir,
		"identity", identitySummary(s.config),
		"traces", s.telemetry.TracesTo,
		"version", readBuild().version,
	}
	if s.embedder != nil {
		attributes = append(attributes, "embeddings", s.embedder.Host())
	}
	if s.forward != nil {
		attributes = append(attributes, "forward", s.forward.Addr().String())
	}
	if s.control != nil {
		attributes = append(attributes, "control", "http://"+s.control.Addr().String())
	}
	if s.telemetry.Sends {
		attributes = append(attributes, "metrics", s.telemetry.MetricsTo)
	}
	if s.probes != nil {
		attributes = append(attributes, "health", "http://"+s.probes.Addr().String())
	}
	if s.config.File != "" {
		attributes = append(attributes, "config", s.config.File)
	}
	s.log.Info("remora is listening", attributes...)
	if s.config.NoKey != "" {
		s.log.Error("memory is off: there is no key to seal it with", "reason", s.config.NoKey)
	}
	if s.lifetime != machine.Lasting {
		s.log.Warn("memories will be lost: their directory does not last", "directory", memoryDir(s.config), "reason", s.lifetime.Reason(), "fix", s.lifetime.Fix())
	}
}

// memoryDir returns the directory that the memories are in, "" if another
// server has them.
func memoryDir(c config.Config) string {
	switch {
	case c.Backend.Mode == backend.ModeGateway:
		return ""
	case c.Backend.Mode == backend.ModeCurated && c.Backend.Curated.Dir != "":
		return c.Backend.Curated.Dir
	}
	return c.Storage.Dir
}

// note returns what every answer reports in addition to its own status: that
// memories are missing.
func (s *system) note() string {
	switch aside := s.store.Status().SetAside; {
	case len(aside) == 0:
		return ""
	case slices.ContainsFunc(aside, func(path string) bool { return !badger.IsMissingMark(path) }):
		return "store=set-aside"
	}
	return "store=missing"
}

// watchMemory logs once when memory becomes available. The store logs why it is
// not.
func (s *system) watchMemory(ctx context.Context) {
	if until(ctx, func() bool { return s.store.Status().Open }) != nil {
		return
	}
	s.log.Info("memory is on", "after", time.Since(s.started).Round(time.Millisecond).String())
}

// persisted returns the counters of finished turns.
func persisted(p persist.Stats) []any {
	attributes := []any{
		"enqueued", p.Enqueued, "recovered", p.Recovered, "persisted", p.Persisted, "indexed", p.Indexed,
		"replaced", p.Replaced, "duplicates", p.Duplicates, "memories", p.Memories, "quarantined", p.Quarantined,
		"retries", p.Retries, "damaged", p.Damaged, "left", p.QueueTurns,
	}
	var dropped []any
	for _, reason := range slices.Sorted(maps.Keys(p.Dropped)) {
		dropped = append(dropped, reason.String(), p.Dropped[reason])
	}
	return append(attributes, slog.Group("dropped", dropped...))
}

// farewell logs the last line.
func (s *system) farewell(err error) {
	h, p := s.handler.Stats(), s.pipeline.Stats()
	attributes := []any{
		slog.Group("proxy",
			"exchanges", h.Exchanges.Load(), "assembled", h.Assembled.Load(), "not_final", h.NotFinal.Load(), "lost", h.TurnsLost.Load(),
			"too_early", h.TooEarly.Load(), "not_copied", h.TeeSkipped.Load(), "undecoded", h.Undecoded.Load(), "retried", h.Retries.Load(), "repaired", h.Repairs.Load(),
			"ledger_dropped", h.LedgerDrops(), "ledger_late", h.LedgerLate.Load(), "ledger_trimmed", h.LedgerTrims(),
			"input_tokens", h.InputTokens.Load(), "cache_read_tokens", h.CacheRead.Load(), "cache_write_tokens", h.CacheWrite.Load(), "panics", h.Panics.Load()),
		slog.Group("persist", persisted(p)...),
		"uptime", time.Since(s.started).Round(time.Second).String(),
	}
	if s.gateway != nil {
		g := s.gateway.Stats()
		attributes = append(attributes, slog.Group("gateway",
			"recalls", g.Recalls, "accepted", g.Accepted, "added", g.Added, "flushed", g.Flushed, "lost", g.Lost(), "skipped", g.Skipped))
	}
	if s.embedder != nil {
		v, c := s.engine.Stats().Vectors, s.embedder.Stats()
		attributes = append(attributes, slog.Group("embeddings",
			"used", v.Used, "late", v.Late, "failed", v.Failed, "memories", v.Embedded, "refused", v.Refused, "omitted", v.Omitted,
			"stale", v.Stale, "failures", v.Failures, "cached", c.Hits, "retried", c.Retried))
	}
	if err != nil {
		s.log.Error("stopped", append(attributes, "error", err)...)
		return
	}
	s.log.Info("stopped", attributes...)
}

// until polls for a condition of this process. If ctx ends first, it returns
// ctx's error.
func until(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
