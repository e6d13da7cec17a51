package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
)

// How often losses are looked for, and how often they are reported at most.
const (
	lossTick     = 5 * time.Second
	lossInterval = time.Minute
)

// losses counts turns that should be remembered and are not, since the start,
// by reason. Turns that are left out on purpose (declined, erased, nothing but
// placeholders, ...) don't count.
func (s *system) losses() map[string]uint64 { return s.lossesOf(s.pipeline.Stats()) }

// lossesOf is losses with the counters of persistence. Where a gateway keeps the
// memory, it counts those that are not sent there, too.
func (s *system) lossesOf(p persist.Stats) map[string]uint64 {
	out := losses(s.handler.Stats(), p)
	if s.gateway != nil {
		withGateway(out, s.gatewayStats())
	}
	return out
}

// withGateway adds turns that a gateway has not got. The proxy counts those that
// the gateway's client has dropped among those that it could not hand over.
func withGateway(out map[string]uint64, g backend.GatewayStats) {
	out["gateway"] = uint64(g.Lost())
	if n := out["notRead"]; n > 0 {
		out["notRead"] = n - min(n, uint64(g.Dropped))
	}
}

// gatewayStats returns the counters of the gateway's client, zeros if there is
// none.
func (s *system) gatewayStats() backend.GatewayStats {
	if s.gateway == nil {
		return backend.GatewayStats{}
	}
	return s.gateway.Stats()
}

func losses(h *proxy.Stats, p persist.Stats) map[string]uint64 {
	out := map[string]uint64{
		"tooEarly":  uint64(h.TooEarly.Load()),
		"notCopied": uint64(h.TeeSkipped.Load()),
		"undecoded": uint64(h.Undecoded.Load()),
		"setAside":  p.Quarantined,
	}
	for _, reason := range [...]persist.Drop{persist.DropFull, persist.DropRateLimited, persist.DropPoison, persist.DropUsers} {
		out[reason.String()] = p.Dropped[reason]
	}
	// Both count what persistence refuses. DropStopped does not count: nothing
	// is handed to persistence once it stops, and it counts what it had taken.
	refused := p.Dropped[persist.DropInvalid] + p.Dropped[persist.DropFull] + p.Dropped[persist.DropRateLimited]
	if lost := uint64(h.TurnsLost.Load()); lost > refused {
		out["notRead"] = lost - refused
	}
	return out
}

// reportLosses warns while turns are lost: soon at first, then once every
// lossInterval with what was lost since. The last line of the log has the sum
// of the run.
func reportLosses(ctx context.Context, log *slog.Logger, count func() map[string]uint64) {
	tick := time.NewTicker(lossTick)
	defer tick.Stop()
	told, last := map[string]uint64{}, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !last.IsZero() && time.Since(last) < lossInterval {
			continue
		}
		now := count()
		var lost []any
		for _, reason := range slices.Sorted(maps.Keys(now)) {
			if n := now[reason]; n > told[reason] {
				lost = append(lost, reason, n-told[reason])
			}
		}
		if len(lost) > 0 {
			log.Warn("turns are not remembered", slog.Group("turns", lost...))
			told, last = now, time.Now()
		}
	}
}
