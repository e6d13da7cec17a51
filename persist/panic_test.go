package persist

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/persist/extract"
	"github.com/remora-proxy/remora/redact"
	"github.com/remora-proxy/remora/storage"
)

// TestRoundThatPanics checks that a round that panics outside of an audit gives
// up what it took in after the third time. The process, those who wait, and
// later turns are not affected.
func TestRoundThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := newFaulty()
		pipe := New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), slog.New(slog.NewTextHandler(&log, nil)), nil)
		pipe.auditor.scopes = nil // no scope's facts can be held
		p := start(t, pipe)
		defer p.stop()
		mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Settle(ctx); err != nil {
			t.Fatalf("who waits: %v", err)
		}
		if got := p.stats.auditsGivenUp.Load(); got != maxTries {
			t.Errorf("%d given up, want %d", got, maxTries)
		}
		if strings.Count(log.String(), "panic") == 0 || strings.Contains(log.String(), "nil map") {
			t.Errorf("not logged, or with the value of the panic:\n%s", log.String())
		}
		open, err := p.gate.close(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pipe.auditor.scopes = map[storage.Scope]*scopeFacts{}
		open()
		mustEnqueue(t, p.Pipeline, userTurn("t2", "My sister Ines is allergic to peanuts."))
		if err := p.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		if got := factsIn(t, store, testScope); len(got) != 1 || !strings.Contains(got[0], "peanuts") {
			t.Errorf("then: %q", got)
		}
	})
}

// TestRoundThatPanicsOnce checks that the next round repeats what a round that
// panicked took in.
func TestRoundThatPanicsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFaulty()
		pipe := New(DefaultConfig(), store, store, &indexed{}, newRedactor(t), nil, nil)
		pipe.auditor.scopes = nil
		p := start(t, pipe)
		defer p.stop()
		mustEnqueue(t, p.Pipeline, userTurn("t1", "I live in Porto."))
		mustFlush(t, p.Pipeline)
		for p.stats.auditsGivenUp.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		open, err := p.gate.close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pipe.auditor.scopes = map[storage.Scope]*scopeFacts{}
		open()
		if err := p.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := factsIn(t, store, testScope); len(got) != 1 {
			t.Errorf("got %q, %d given up", got, p.stats.auditsGivenUp.Load())
		}
	})
}

// TestPanicBeforeDistilling checks that the rules apply if preparing the call
// panics.
func TestPanicBeforeDistilling(t *testing.T) {
	store := newFaulty()
	p := New(DefaultConfig(), store, store, nil, nil, nil, nil)
	p.redactor.rules = new(redact.Redactor) // has no rules to read with
	p.SetDistiller(proposer(func([]extract.Message) ([]extract.Proposal, error) { return nil, nil }))
	of := &conversation{window: []windowMessage{{Message: extract.Message{User: true, New: true, Text: "I live in Porto."}}}, unread: 1}
	if p.auditor.ask(t.Context(), of) || p.stats.distillFailed.Load() != 1 || p.auditor.asking != 0 || of.call != 0 {
		t.Errorf("asked, %d failed, %d under way", p.stats.distillFailed.Load(), p.auditor.asking)
	}
}
