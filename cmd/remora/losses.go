package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
)

// How often is looked for what was said and is not remembered, and how often it
// is told at most.
const (
	lossTick = 5 * time.Second
	lossTold = time.Minute
)

// losses counts turns, since the start, that should be remembered and are not,
// by reason. What was to be left out (declined, erased, nothing but
// placeholders, ...) is none.
func (s *system) losses() map[string]uint64 { return losses(s.handler.Stats(), s.pipeline.Stats()) }

func losses(h *proxy.Stats, p persist.Stats) map[string]uint64 {
	out := map[string]uint64{
		"tooEarly":  uint64(h.TooEarly.Load()),
		"notCopied": uint64(h.TeeSkipped.Load()),
		"undecoded": uint64(h.Undecoded.Load()),
		"setAside":  p.Quarantined,
	}
	for _, reason := range [...]persist.Drop{persist.DropFull, persist.DropRateLimited, persist.DropPoison} {
		out[reason.String()] = p.Dropped[reason]
	}
	// What persistence refuses is counted by both. DropStopped is none of it:
	// nothing is handed to persistence once it stops, which counts what it had
	// taken.
	refused := p.Dropped[persist.DropInvalid] + p.Dropped[persist.DropFull] + p.Dropped[persist.DropRateLimited]
	if lost := uint64(h.TurnsLost.Load()); lost > refused {
		out["notRead"] = lost - refused
	}
	return out
}

// tellLosses warns while turns are lost: soon at first, then once in lossTold
// with what was lost since. The sum of the run stands in the last line of the
// log.
func tellLosses(ctx context.Context, log *slog.Logger, count func() map[string]uint64) {
	tick := time.NewTicker(lossTick)
	defer tick.Stop()
	told, last := map[string]uint64{}, time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !last.IsZero() && time.Since(last) < lossTold {
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
