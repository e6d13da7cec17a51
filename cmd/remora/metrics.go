package main

import (
	"context"
	"math"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/telemetry"
)

// observeMetrics has the counters and gauges read when somebody collects them.
// No request takes part in it.
func (s *system) observeMetrics() error {
	if s.telemetry.Meters == nil {
		return nil
	}
	o := &observed{s: s, size: measuredSize{dir: s.config.Storage.Dir}, runtime: newRuntimeSamples()}
	return telemetry.Observe(s.telemetry.Meters, func(_ context.Context, to telemetry.Observer) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.exchanges(to)
		o.memories(to)
		o.state(to)
		o.process(to)
	})
}

// observed reads what the parts of a system count.
type observed struct {
	s *system

	mu      sync.Mutex // one collection at a time
	lost    map[string]uint64
	size    measuredSize
	runtime []metrics.Sample
}

// exchanges observes what proxies count.
func (o *observed) exchanges(to telemetry.Observer) {
	h := o.s.handler.Stats()
	by := h.ByStatus()
	for _, status := range proxy.Statuses() {
		to.Count(telemetry.Exchanges, by[status], telemetry.AttrStatus.String(string(status)))
	}
	active, waiting, limit := o.s.config.Server.Limit.Exchanges()
	to.Count(telemetry.Active, int64(active))
	to.Count(telemetry.Waiting, int64(waiting))
	to.Count(telemetry.ActiveLimit, int64(limit))
	failures := map[string]int64{}
	if h.Failures(failures); o.s.forward != nil {
		o.s.forward.Failures(failures)
	}
	counts(to, telemetry.Failures, telemetry.AttrError, failures)
	counts(to, telemetry.Searches, telemetry.AttrOutcome, h.Searches())
	v := o.s.engine.Stats().Vectors
	counts(to, telemetry.Vectors, telemetry.AttrOutcome, map[string]int64{"used": v.Used, "late": v.Late, "failed": v.Failed})
	counts(to, telemetry.Repairs, telemetry.AttrOutcome, map[string]int64{"repaired": h.Repairs.Load(), "failed": h.Unrepaired.Load()})
	to.Count(telemetry.Recalled, h.Recalled.Load())
	to.Count(telemetry.Inserted, h.Inserted.Load())
	to.Count(telemetry.Retries, h.Retries.Load())
	to.Count(telemetry.Panics, h.Panics.Load())
	to.Count(telemetry.InputTokens, h.InputTokens.Load())
	to.Count(telemetry.CachedTokens, h.CacheRead.Load())
	to.Count(telemetry.WrittenTokens, h.CacheWrite.Load())
	to.Count(telemetry.AnswersWaiting, int64(h.Reading()))
	memory, unsaved := h.LedgerSize()
	to.Count(telemetry.LedgerSize, memory)
	to.Count(telemetry.LedgerUnsaved, unsaved)
	to.Count(telemetry.LedgerDropped, h.LedgerDrops())
	to.Count(telemetry.LedgerTrimmed, h.LedgerTrims())
	to.Count(telemetry.LedgerLate, h.LedgerLate.Load())
}

// memories observes what becomes of turns.
func (o *observed) memories(to telemetry.Observer) {
	m := o.s.pipeline.Metrics()
	j, facts, audits := &m.Jobs, &m.Memories, &m.Audits
	sent := o.s.gatewayStats()
	to.Count(telemetry.TurnsAccepted, int64(j.Enqueued+j.Recovered)+sent.Accepted)
	to.Count(telemetry.TurnsIndexed, int64(j.Indexed)+sent.Flushed)
	to.Count(telemetry.TurnsReplaced, int64(j.Replaced))
	to.Count(telemetry.TurnsDuplicate, int64(j.Duplicates))
	to.Count(telemetry.TurnsRetried, int64(j.Retries))
	o.losses(to, j)
	to.Count(telemetry.QueueTurns, int64(j.QueueTurns+sent.Waiting))
	to.Count(telemetry.QueueSize, j.QueueBytes)
	to.Seconds(telemetry.QueueLag, j.Lag.Seconds())
	to.Seconds(telemetry.SearchableAfter, m.Health.LatencyP95Millis/1000)
	to.Count(telemetry.Passages, int64(facts.Passages))
	counts(to, telemetry.Facts, telemetry.AttrOutcome, map[string]uint64{
		"saved": facts.Facts, "reinforced": facts.Reinforced, "superseded": facts.Superseded,
		"quarantined": facts.Quarantined, "replaced": facts.Replaced, "evicted": facts.FactsEvicted,
	})
	to.Count(telemetry.Erased, int64(facts.Erased))
	counts(to, telemetry.Audits, telemetry.AttrOutcome, map[string]uint64{"made": audits.Made, "cut": audits.CutShort, "given_up": audits.GivenUp, "shed": audits.Shed})
	counts(to, telemetry.Distillations, telemetry.AttrOutcome, map[string]uint64{"made": audits.Distilled, "failed": audits.DistillFailed})
	for _, reason := range extract.Reasons() {
		to.Count(telemetry.Rejections, int64(m.Rejections[reason]), telemetry.AttrReason.String(reason))
	}
}

// losses observes turns that are not remembered. A count never falls: one of
// them is a difference of counters that are read one after the other.
func (o *observed) losses(to telemetry.Observer, j *persist.Stats) {
	h := o.s.handler.Stats()
	if o.lost == nil {
		o.lost = map[string]uint64{"notRead": 0}
	}
	for reason, n := range o.s.lossesOf(*j) {
		o.lost[reason] = max(o.lost[reason], n)
	}
	counts(to, telemetry.TurnsLost, telemetry.AttrReason, o.lost)
	skipped := map[string]uint64{"notFinal": uint64(h.NotFinal.Load())}
	for _, d := range [...]persist.Drop{
		persist.DropInvalid, persist.DropStopped, persist.DropEmpty, persist.DropRedactedAll, persist.DropErased, persist.DropDeclined,
	} {
		skipped[d.String()] = j.Dropped[d]
	}
	if o.s.gateway != nil {
		skipped["gateway"] = uint64(o.s.gatewayStats().Skipped)
	}
	if o.s.curated != nil {
		skipped["curated"] = uint64(o.s.curated.Dropped())
	}
	counts(to, telemetry.TurnsSkipped, telemetry.AttrReason, skipped)
}

// state observes the store, the indexes and the receipts.
func (o *observed) state(to telemetry.Observer) {
	status, index := o.s.store.Status(), o.s.engine.Stats()
	to.Count(telemetry.StoreOpen, one(status.Open))
	to.Count(telemetry.StoreFree, whole(status.FreeBytes))
	to.Count(telemetry.StoreSize, o.size.now())
	to.Count(telemetry.StoreRestarts, whole(status.Restarts))
	to.Count(telemetry.StoreDamaged, whole(status.Damaged))
	to.Count(telemetry.StoreSetAside, int64(len(status.SetAside)))
	to.Count(telemetry.StoreEphemeral, one(o.s.lifetime != machine.Lasting))
	to.Count(telemetry.GatewayFailing, one(o.s.gatewayStats().Paused))
	to.Count(telemetry.IndexSize, index.Bytes)
	to.Count(telemetry.IndexLimit, index.MaxBytes)
	to.Count(telemetry.IndexUsers, int64(index.Scopes))
	to.Count(telemetry.IndexLoads, index.Loads)
	to.Count(telemetry.IndexFailures, index.Failures)
	to.Count(telemetry.IndexEvicted, index.Evicted)
	var dropped int64
	if o.s.receipts != nil {
		dropped = o.s.receipts.Dropped()
	}
	to.Count(telemetry.ReceiptsLost, dropped)
}

// process observes the process itself.
func (o *observed) process(to telemetry.Observer) {
	b := readBuild()
	to.Count(telemetry.BuildInfo, 1, telemetry.AttrVersion.String(b.version), telemetry.AttrGoVersion.String(b.golang))
	to.Seconds(telemetry.Uptime, time.Since(o.s.started).Seconds())
	metrics.Read(o.runtime)
	stack := o.runtime[runtimeStack].Value.Uint64()
	to.Count(telemetry.GoMemory, whole(stack), telemetry.AttrMemoryType.String("stack"))
	used := o.runtime[runtimeMemory].Value.Uint64() - o.runtime[runtimeReleased].Value.Uint64() - stack
	to.Count(telemetry.GoMemory, whole(used), telemetry.AttrMemoryType.String("other"))
	for i, name := range [...]string{
		runtimeLimit: telemetry.GoMemoryLimit, runtimeGoal: telemetry.GoMemoryGoal, runtimeAllocated: telemetry.GoAllocated,
		runtimeAllocations: telemetry.GoAllocations, runtimeCycles: telemetry.GoCycles, runtimeGoroutines: telemetry.GoGoroutines, runtimeProcessors: telemetry.GoProcessors,
	} {
		if name != "" {
			to.Count(name, whole(o.runtime[i].Value.Uint64()))
		}
	}
	for i, state := range map[int]string{runtimeUser: "user", runtimeGC: "gc", runtimeScavenge: "scavenge"} {
		to.Seconds(telemetry.GoProcessorUse, o.runtime[i].Value.Float64(), telemetry.AttrCPUState.String(state))
	}
}

// What is read of the runtime, by its place in the samples.
const (
	runtimeMemory = iota
	runtimeReleased
	runtimeStack
	runtimeLimit
	runtimeGoal
	runtimeAllocated
	runtimeAllocations
	runtimeCycles
	runtimeGoroutines
	runtimeProcessors
	runtimeUser
	runtimeGC
	runtimeScavenge
)

func newRuntimeSamples() []metrics.Sample {
	names := [...]string{
		runtimeMemory: "/memory/classes/total:bytes", runtimeReleased: "/memory/classes/heap/released:bytes",
		runtimeStack: "/memory/classes/heap/stacks:bytes", runtimeLimit: "/gc/gomemlimit:bytes", runtimeGoal: "/gc/heap/goal:bytes",
		runtimeAllocated: "/gc/heap/allocs:bytes", runtimeAllocations: "/gc/heap/allocs:objects", runtimeCycles: "/gc/cycles/total:gc-cycles",
		runtimeGoroutines: "/sched/goroutines:goroutines", runtimeProcessors: "/sched/gomaxprocs:threads",
		runtimeUser: "/cpu/classes/user:cpu-seconds", runtimeGC: "/cpu/classes/gc/total:cpu-seconds", runtimeScavenge: "/cpu/classes/scavenge/total:cpu-seconds",
	}
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	return samples
}

// counts observes one value for each of the values of an attribute.
func counts[N int64 | uint64](to telemetry.Observer, name string, key attribute.Key, by map[string]N) {
	for value, n := range by {
		to.Count(name, whole(uint64(n)), key.String(value))
	}
}

// one returns 1 if it is so, else 0.
func one(so bool) int64 {
	if so {
		return 1
	}
	return 0
}

// whole returns n as far as OpenTelemetry can count.
func whole(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// measuredSize is the size of a directory. It is measured in the background and
// not for each of those who ask: on a disk that hangs nobody waits for it.
type measuredSize struct {
	dir  string
	at   time.Time   // of the last measurement's begin; one caller of now at a time
	busy atomic.Bool // it is being measured
	size atomic.Int64
}

// maxSizeAge is how old a measured size may be.
const maxSizeAge = 15 * time.Second

// now returns the size that was measured last, 0 before the first time, and has
// one that is too old measured again.
func (m *measuredSize) now() int64 {
	if now := time.Now(); (m.at.IsZero() || now.Sub(m.at) > maxSizeAge) && m.busy.CompareAndSwap(false, true) {
		m.at = now
		go func() {
			defer m.busy.Store(false)
			m.size.Store(directorySize(m.dir))
		}()
	}
	return m.size.Load()
}
