package persist

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// Drop is a reason for which a turn did not become a memory.
type Drop int

const (
	DropInvalid     Drop = iota // it has no valid scope, no id or no messages
	DropFull                    // the queue was full
	DropRateLimited             // its scope exceeded its rate
	DropStopped                 // the pipeline was stopping, or stopped before the turn was durable
	DropEmpty                   // it has no text but recalled blocks
	DropRedactedAll             // it has no text but placeholders
	DropPoison                  // it can't be prepared or spooled, or there was no room left in quarantine
	DropErased                  // its scope or conversation was erased before it was stored
	DropDeclined                // the user asked not to keep it
	DropUsers                   // its user is new, and the store admits no more
	dropCount
)

func (d Drop) String() string {
	return [...]string{"invalid", "full", "rateLimited", "stopped", "empty", "redactedAll", "poison", "erased", "declined", "tooManyUsers"}[d]
}

// MarshalText returns the name, for JSON.
func (d Drop) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Stats are counters of turns since the start, and the state of the queue.
type Stats struct {
	Enqueued    uint64          `json:"enqueued"`    // accepted by Enqueue
	Recovered   uint64          `json:"recovered"`   // found in the spool at the start
	Persisted   uint64          `json:"persisted"`   // durable in the spool
	Indexed     uint64          `json:"indexed"`     // stored and searchable
	Replaced    uint64          `json:"replaced"`    // of these, those that replaced another version
	Duplicates  uint64          `json:"duplicates"`  // stored already with the same texts
	Quarantined uint64          `json:"quarantined"` // set aside after three tries
	Retries     uint64          `json:"retries"`     // writes that failed and were tried again
	Dropped     map[Drop]uint64 `json:"dropped"`

	Memories   uint64        `json:"-"` // passages written
	Damaged    uint64        `json:"-"` // spool records that could not be read
	QueueTurns int           `json:"-"` // after the end: those that wait in the spool for the next start
	QueueBytes int64         `json:"-"`
	Lag        time.Duration `json:"-"` // age of the oldest turn that is not searchable yet
}

// Stats returns a snapshot.
func (p *Pipeline) Stats() Stats {
	s := &p.stats
	out := Stats{
		Enqueued: s.enqueued.Load(), Recovered: s.recovered.Load(), Persisted: s.persisted.Load(),
		Indexed: s.indexed.Load(), Replaced: s.replaced.Load(), Duplicates: s.duplicates.Load(),
		Memories: s.memories.Load(), Quarantined: s.quarantined.Load(), Retries: s.retries.Load(), Damaged: s.damaged.Load(),
		Dropped: make(map[Drop]uint64, dropCount),
	}
	for d := range dropCount {
		if n := s.dropped[d].Load(); n > 0 {
			out.Dropped[d] = n
		}
	}
	var oldest time.Time
	if out.QueueTurns, out.QueueBytes, oldest = p.queue.state(); !oldest.IsZero() {
		out.Lag = time.Since(oldest)
	}
	return out
}

type counters struct {
	enqueued, recovered, persisted, indexed, replaced, duplicates atomic.Uint64
	memories, quarantined, retries, damaged                       atomic.Uint64
	episodesEvicted, passageBytes                                 atomic.Uint64
	conversationBytes, factBytes                                  atomic.Int64 // held by the auditor
	erasures, erasedMemories                                      atomic.Uint64

	audits, auditsGivenUp, auditsCut, shed                    atomic.Uint64
	factsSaved, factsReinforced, factsSuperseded              atomic.Uint64
	factsQuarantined, factsReplaced, factsEvicted, candidates atomic.Uint64
	forgetRequests, distilled, distillFailed                  atomic.Uint64
	auditMicros, auditMicrosMax                               atomic.Int64
	meanScores                                                atomic.Uint64 // sum of the audits' mean scores, in millionths

	latency   latencies     // from Enqueue until a turn is searchable
	saved     recent        // memories that were written
	lastAudit atomic.Int64  // in milliseconds since the epoch, 0 = none
	priority  atomic.Uint64 // sum over the facts saved, in millionths

	rejectedMu sync.Mutex
	rejected   map[string]uint64 // sentences, by reason
	dropped    [dropCount]atomic.Uint64
}

func (c *counters) drop(d Drop) { c.dropped[d].Add(1) }

// audited counts the result of an audit.
func (c *counters) audited(f *finding) {
	r := &f.record
	c.audits.Add(1)
	c.lastAudit.Store(int64(storage.Now()))
	c.saved.add(r.Saved, time.Now())
	c.priority.Add(uint64(f.priority * 1e6))
	if r.Soft {
		c.auditsCut.Add(1)
	}
	c.factsSaved.Add(uint64(r.Saved))
	c.factsSuperseded.Add(uint64(r.Superseded))
	c.factsReinforced.Add(uint64(r.Reinforced))
	c.factsQuarantined.Add(uint64(r.Quarantined))
	c.factsReplaced.Add(uint64(f.replaced))
	c.candidates.Add(uint64(r.Candidates))
	c.forgetRequests.Add(uint64(len(f.requests)))
	c.meanScores.Add(uint64(r.Mean * 1e6))
	c.auditMicros.Add(r.TookMicros)
	for longest := c.auditMicrosMax.Load(); r.TookMicros > longest && !c.auditMicrosMax.CompareAndSwap(longest, r.TookMicros); {
		longest = c.auditMicrosMax.Load()
	}
	c.rejectedMu.Lock()
	defer c.rejectedMu.Unlock()
	if c.rejected == nil {
		c.rejected = map[string]uint64{}
	}
	for why, n := range r.Rejected {
		c.rejected[why] += uint64(n)
	}
}

// Metrics is a snapshot for people and dashboards: counters since the start,
// and the current state. It holds no content and no names.
type Metrics struct {
	Jobs       Stats             `json:"jobs"`
	Memories   MemoryMetrics     `json:"memories"`
	Audits     AuditMetrics      `json:"audits"`
	Rejections map[string]uint64 `json:"rejections"` // sentences that were not saved, by reason
	Health     HealthMetrics     `json:"health"`
}

// MemoryMetrics counts what was stored and what was deleted.
type MemoryMetrics struct {
	Passages         uint64  `json:"passages"`
	PassageBytes     uint64  `json:"passage_bytes"` // of their texts
	Facts            uint64  `json:"facts"`
	Reinforced       uint64  `json:"reinforced"`
	Superseded       uint64  `json:"superseded"`
	Quarantined      uint64  `json:"quarantined"`
	Replaced         uint64  `json:"replaced"` // facts deleted because their turn was replaced
	FactsEvicted     uint64  `json:"facts_evicted"`
	EpisodesEvicted  uint64  `json:"episodes_evicted"`
	Erasures         uint64  `json:"erasures"`
	Erased           uint64  `json:"erased"`
	DedupeRate       float64 `json:"dedupe_rate"`       // share of statements worth saving that were known
	SupersessionRate float64 `json:"supersession_rate"` // share of saved facts that superseded another
}

// AuditMetrics describes audits.
type AuditMetrics struct {
	Made           uint64  `json:"made"`
	GivenUp        uint64  `json:"given_up"`   // past the hard limit, or failed
	CutShort       uint64  `json:"cut_short"`  // past the soft limit
	Shed           uint64  `json:"shed"`       // turns that were not audited under overload
	Candidates     uint64  `json:"candidates"` // sentences scored
	MeanScore      float64 `json:"mean_score"` // mean of the audits' means
	MeanMicros     float64 `json:"mean_us"`
	MaxMicros      int64   `json:"max_us"`
	ForgetRequests uint64  `json:"forget_requests"`
	Distilled      uint64  `json:"distilled"`
	DistillFailed  uint64  `json:"distill_failed"`
}

// HealthMetrics is the current state.
type HealthMetrics struct {
	QueueTurns        int     `json:"queue_turns"`
	QueueBytes        int64   `json:"queue_bytes"`
	LagSeconds        float64 `json:"lag_seconds"` // age of the oldest turn that is not searchable yet
	AuditsWaiting     int     `json:"audits_waiting"`
	AuditsMarked      int     `json:"audits_marked"`      // conversations with messages that no audit has read
	TurnsUnaudited    int     `json:"turns_unaudited"`    // that no audit has read, those in the queue included
	ConversationBytes int64   `json:"conversation_bytes"` // windows and summaries in memory, at the end of the last round of audits
	FactBytes         int64   `json:"fact_bytes"`         // facts in memory, likewise
	DamagedSpool      uint64  `json:"damaged_spool"`

	LatencyMillis    float64      `json:"latency_ms"`     // mean time from Enqueue until a turn is searchable
	LatencyP95Millis float64      `json:"latency_p95_ms"` // its 95th percentile, to the next power of the fourth root of two
	SavedLastHour    int          `json:"saved_last_hour"`
	LastAudit        storage.Time `json:"last_audit"`    // 0 = none since the start
	MeanPriority     float64      `json:"mean_priority"` // of the facts saved since the start
}

// Unaudited counts users' turns that no audit has read yet, those in the queue
// included: what they say is found as it was said, and is no fact so far. It
// reads all that waits, so ask it once for many users.
func (p *Pipeline) Unaudited(scopes ...storage.Scope) map[storage.Scope]int {
	own := make(map[storage.Scope]int, len(scopes))
	for _, scope := range scopes {
		own[scope] = 0
	}
	if len(own) == 0 || !p.cfg.Audit.Enabled {
		return own
	}
	p.queue.find(func(t *Turn) bool {
		if _, ok := own[t.Scope]; ok {
			own[t.Scope]++
		}
		return false
	})
	p.auditor.owed(own)
	return own
}

// Metrics returns a snapshot.
func (p *Pipeline) Metrics() Metrics {
	s, c := p.Stats(), &p.stats
	m := Metrics{
		Jobs: s,
		Memories: MemoryMetrics{
			Passages: s.Memories, PassageBytes: c.passageBytes.Load(), Facts: c.factsSaved.Load(), Reinforced: c.factsReinforced.Load(), Superseded: c.factsSuperseded.Load(),
			Quarantined: c.factsQuarantined.Load(), Replaced: c.factsReplaced.Load(), FactsEvicted: c.factsEvicted.Load(),
			EpisodesEvicted: c.episodesEvicted.Load(), Erasures: c.erasures.Load(), Erased: c.erasedMemories.Load(),
		},
		Audits: AuditMetrics{
			Made: c.audits.Load(), GivenUp: c.auditsGivenUp.Load(), CutShort: c.auditsCut.Load(), Shed: c.shed.Load(),
			Candidates: c.candidates.Load(), MaxMicros: c.auditMicrosMax.Load(), ForgetRequests: c.forgetRequests.Load(),
			Distilled: c.distilled.Load(), DistillFailed: c.distillFailed.Load(),
		},
		Rejections: map[string]uint64{},
		Health:     HealthMetrics{QueueTurns: s.QueueTurns, QueueBytes: s.QueueBytes, LagSeconds: s.Lag.Round(time.Millisecond).Seconds(), ConversationBytes: c.conversationBytes.Load(), FactBytes: c.factBytes.Load(), DamagedSpool: s.Damaged},
	}
	m.Health.LatencyMillis, m.Health.LatencyP95Millis = c.latency.mean(), c.latency.quantile(0.95)
	m.Health.SavedLastHour, m.Health.LastAudit = c.saved.lastHour(time.Now()), storage.Time(c.lastAudit.Load())
	if n := m.Memories.Facts; n > 0 {
		m.Health.MeanPriority = float64(c.priority.Load()) / 1e6 / float64(n)
	}
	if n := m.Memories.Facts + m.Memories.Reinforced; n > 0 {
		m.Memories.DedupeRate = float64(m.Memories.Reinforced) / float64(n)
	}
	if n := m.Memories.Facts; n > 0 {
		m.Memories.SupersessionRate = float64(m.Memories.Superseded) / float64(n)
	}
	if n := m.Audits.Made; n > 0 {
		m.Audits.MeanScore = float64(c.meanScores.Load()) / 1e6 / float64(n)
		m.Audits.MeanMicros = float64(c.auditMicros.Load()) / float64(n)
	}
	c.rejectedMu.Lock()
	maps.Copy(m.Rejections, c.rejected)
	c.rejectedMu.Unlock()
	m.Health.AuditsWaiting, m.Health.AuditsMarked = p.auditor.waiting()
	owed := p.auditor.owed(nil)
	m.Health.TurnsUnaudited = m.Health.QueueTurns + owed
	return m
}
