package api

import (
	"context"
	"sync"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/persist/extract"
)

// Health is what the program knows of itself and its store.
type Health struct {
	Version     string `json:"version"`
	StoreOpen   bool   `json:"store_open"`
	StoreReason string `json:"store_reason,omitempty"` // why it is not open
	StoreBytes  int64  `json:"store_bytes"`
	// StoreEphemeral says why the memories do not outlive the pod, the container
	// or the machine's memory; "" = they do, or that is not known.
	StoreEphemeral string           `json:"store_ephemeral,omitempty"`
	UptimeSecs     int64            `json:"uptime_s"`
	Requests       map[string]int64 `json:"requests"` // exchanges by X-Remora-Status
	Tokens         map[string]int64 `json:"tokens"`   // that upstreams have reported: input, cacheRead, cacheWrite
	Index          map[string]int64 `json:"index"`
}

// Metrics are numbers for people and dashboards, since the start unless noted.
// They hold no content and no names.
type Metrics struct {
	Jobs struct {
		Enqueued     uint64  `json:"enqueued"`
		Processed    uint64  `json:"processed"`
		Failed       uint64  `json:"failed"`
		AvgLatencyMS float64 `json:"avg_latency_ms"` // from the end of an answer until it is searchable
		P95LatencyMS float64 `json:"p95_latency_ms"`
	} `json:"jobs"`
	Memories struct {
		Total         int     `json:"total"` // stored now; -1 = not counted, because there are too many users
		SavedLastHour int     `json:"saved_last_hour"`
		Deleted       uint64  `json:"deleted"`
		AvgPriority   float64 `json:"avg_priority"` // of the facts saved
	} `json:"memories"`
	Audits struct {
		Total         uint64  `json:"total"`
		AvgScore      float64 `json:"avg_score"`
		SavesPerAudit float64 `json:"saves_per_audit"`
	} `json:"audits"`
	Rejections struct {
		BelowThreshold uint64            `json:"below_threshold"`
		RedactedAll    uint64            `json:"redacted_all"`
		TooLong        uint64            `json:"too_long"`
		RateLimited    uint64            `json:"rate_limited"`
		ByReason       map[string]uint64 `json:"by_reason"`
	} `json:"rejections"`
	Health struct {
		DBSizeMB       float64 `json:"db_size_mb"`
		QueueDepth     int     `json:"queue_depth"`
		LastAuditMSAgo int64   `json:"last_audit_ms_ago"` // -1 = none since the start
	} `json:"health"`
	Pipeline persist.Metrics `json:"pipeline"`
	System   Health          `json:"system"`
	Receipts struct {
		Dropped int64 `json:"dropped"`
	} `json:"receipts"`
}

// Metrics returns the numbers of the whole installation, for the admin.
func (s *questions) Metrics(ctx context.Context, p Principal) (Metrics, error) {
	if !p.Everything() {
		return Metrics{}, ErrForbidden
	}
	m := s.Pipeline.Metrics()
	out := Metrics{Pipeline: m}
	out.Jobs.Enqueued, out.Jobs.Processed = m.Jobs.Enqueued+m.Jobs.Recovered, m.Jobs.Indexed+m.Jobs.Duplicates
	for _, n := range m.Jobs.Dropped {
		out.Jobs.Failed += n
	}
	out.Jobs.Failed += m.Jobs.Quarantined
	out.Jobs.AvgLatencyMS, out.Jobs.P95LatencyMS = m.Health.LatencyMillis, m.Health.LatencyP95Millis
	out.Memories.SavedLastHour, out.Memories.Deleted, out.Memories.AvgPriority = m.Health.SavedLastHour, m.Memories.Erased, m.Health.MeanPriority
	out.Audits.Total, out.Audits.AvgScore = m.Audits.Made, m.Audits.MeanScore
	if m.Audits.Made > 0 {
		out.Audits.SavesPerAudit = float64(m.Memories.Facts) / float64(m.Audits.Made)
	}
	out.Rejections.ByReason = m.Rejections
	out.Rejections.BelowThreshold, out.Rejections.TooLong = m.Rejections[extract.RejectLow], m.Rejections[extract.RejectLong]
	out.Rejections.RedactedAll, out.Rejections.RateLimited = m.Jobs.Dropped[persist.DropRedactedAll], m.Jobs.Dropped[persist.DropRateLimited]
	out.Health.QueueDepth, out.Health.LastAuditMSAgo = m.Health.QueueTurns, -1
	if at := m.Health.LastAudit; at != 0 {
		out.Health.LastAuditMSAgo = max(s.Now().UnixMilli()-int64(at), 0)
	}
	if s.Health != nil {
		out.System = s.Health()
		out.Health.DBSizeMB = float64(out.System.StoreBytes) / (1 << 20)
	}
	if s.Receipts != nil {
		out.Receipts.Dropped = s.Receipts.Dropped()
	}
	var err error
	out.Memories.Total, err = s.totals.count(ctx, s.access)
	return out, err
}

// totals counts the memories of all users, at most once in totalPause.
type totals struct {
	mu   sync.Mutex
	n    int
	read time.Time
}

const (
	totalPause = 15 * time.Second
	maxCounted = 20_000 // users
)

func (t *totals) count(ctx context.Context, s *access) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := s.Now(); !t.read.IsZero() && now.Sub(t.read) < totalPause && now.After(t.read) {
		return t.n, nil
	}
	n, users := 0, 0
	for page, err := range scopePages(ctx, s.Store, "") {
		if err != nil {
			return 0, err
		}
		if users += len(page.Scopes); users > maxCounted {
			n = -1
			break
		}
		for _, scope := range page.Scopes {
			d, err := s.Store.Digest(ctx, scope)
			if err != nil {
				return 0, err
			}
			n += d.Memories
		}
	}
	t.n, t.read = n, s.Now()
	return n, nil
}
