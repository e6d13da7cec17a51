package persist

import (
	"maps"
	"time"
)

// Metrics is a snapshot for people and dashboards: counters since the start,
// and the current state. It holds no content and no names.
type Metrics struct {
	Jobs       JobMetrics        `json:"jobs"`
	Memories   MemoryMetrics     `json:"memories"`
	Audits     AuditMetrics      `json:"audits"`
	Rejections map[string]uint64 `json:"rejections"` // sentences that were not saved, by reason
	Health     HealthMetrics     `json:"health"`
}

// JobMetrics counts turns.
type JobMetrics struct {
	Enqueued    uint64            `json:"enqueued"`
	Recovered   uint64            `json:"recovered"`
	Persisted   uint64            `json:"persisted"`
	Indexed     uint64            `json:"indexed"`
	Replaced    uint64            `json:"replaced"`
	Duplicates  uint64            `json:"duplicates"`
	Quarantined uint64            `json:"quarantined"`
	Retries     uint64            `json:"retries"`
	Dropped     map[string]uint64 `json:"dropped"` // by reason
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
	ConversationBytes int64   `json:"conversation_bytes"` // windows and summaries in memory, at the end of the last round of audits
	FactBytes         int64   `json:"fact_bytes"`         // facts in memory, likewise
	DamagedSpool      uint64  `json:"damaged_spool"`
}

// Metrics returns a snapshot.
func (p *Pipeline) Metrics() Metrics {
	s, c := p.Stats(), &p.stats
	m := Metrics{
		Jobs: JobMetrics{
			Enqueued: s.Enqueued, Recovered: s.Recovered, Persisted: s.Persisted, Indexed: s.Indexed, Replaced: s.Replaced,
			Duplicates: s.Duplicates, Quarantined: s.Quarantined, Retries: s.Retries, Dropped: map[string]uint64{},
		},
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
	for d, n := range s.Dropped {
		m.Jobs.Dropped[d.String()] = n
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
	return m
}
