package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/proxy/backend"
)

// Losses are told while they happen, each once, and no more than a line a
// minute.
func TestLossesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		var full, limited atomic.Uint64
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			reportLosses(ctx, log, func() map[string]uint64 {
				return map[string]uint64{"full": full.Load(), "rateLimited": limited.Load()}
			})
		}()
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(time.Hour)
		full.Store(3)
		pass(lossTick)
		full.Store(5)
		limited.Store(7)
		pass(lossTick)
		pass(lossInterval)
		pass(time.Hour)
		stop()
		<-done
		want := `level=WARN msg="turns are not remembered" turns.full=3
level=WARN msg="turns are not remembered" turns.full=2 turns.rateLimited=7
`
		if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(want) {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

// Turns that persistence had taken and could not keep hide none that were never
// read.
func TestStoppedTurnsHideNoLosses(t *testing.T) {
	var h proxy.Stats
	h.TurnsLost.Store(3 + 2)
	got := losses(&h, persist.Stats{Dropped: map[persist.Drop]uint64{persist.DropFull: 2, persist.DropStopped: 7}})
	want := map[string]uint64{
		"tooEarly": 0, "notCopied": 0, "undecoded": 0, "setAside": 0, "full": 2, "rateLimited": 0, "poison": 0, "tooManyUsers": 0, "notRead": 3,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("losses (-want +got):\n%s", d)
	}
}

// Turns that a gateway has not got are counted once.
func TestLossesOfAGateway(t *testing.T) {
	for _, test := range []struct {
		notRead, want uint64
	}{{0, 0}, {2, 0}, {5, 2}} {
		got := map[string]uint64{"notRead": test.notRead}
		withGateway(got, backend.GatewayStats{Dropped: 3, Failed: map[string]map[backend.Category]int64{
			"recall": {backend.Timeout: 50}, "add": {backend.Timeout: 4, backend.BadStatus: 1}, "flush": {backend.BadStatus: 60},
		}})
		if got["gateway"] != 8 || got["notRead"] != test.want {
			t.Errorf("%d not handed over: got %v, want 8 of the gateway and %d not read", test.notRead, got, test.want)
		}
	}
}
