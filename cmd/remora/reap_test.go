package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// reaped records when it was called.
type reaped struct {
	start time.Time
	after []time.Duration
	err   error
}

func (r *reaped) Reap(_ context.Context, now storage.Time) (int, error) {
	r.after = append(r.after, now.Std().Add(reapGrace).Sub(r.start))
	return 1, r.err
}

func (r *reaped) Newest(context.Context) (storage.Time, error) { return 0, nil }

// TestReapSchedule checks that the store is reaped a minute after the start and
// then at the interval, whether reaping fails or not.
func TestReapSchedule(t *testing.T) {
	for _, test := range []struct {
		every time.Duration
		err   error
		want  []time.Duration
	}{
		{time.Hour, nil, []time.Duration{time.Minute, 61 * time.Minute, 121 * time.Minute}},
		{time.Hour, storage.ErrUnavailable, []time.Duration{time.Minute, 61 * time.Minute, 121 * time.Minute}},
		{50 * time.Minute, storage.ErrInvalid, []time.Duration{time.Minute, 51 * time.Minute, 101 * time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			r := &reaped{start: time.Now(), err: test.err}
			done := make(chan struct{})
			go func() {
				defer close(done)
				reap(ctx, r, newClock(t.TempDir()), test.every, slog.New(slog.DiscardHandler))
			}()
			time.Sleep(150 * time.Minute)
			stop()
			<-done
			if d := cmp.Diff(test.want, r.after); d != "" {
				t.Errorf("every %s (-want +got):\n%s", test.every, d)
			}
		})
	}
}

const day = 24 * time.Hour

// clockRun is a store at a machine whose clock is set.
type clockRun struct {
	t     *testing.T
	store *storagetest.Mem
	clock *clock
	true  time.Time     // what a right clock shows
	wrong time.Duration // by how much the machine's is ahead
}

// run reaps as often as in so much time, of which the process sees all or
// nothing.
func (r *clockRun) run(d time.Duration, seen bool) {
	r.t.Helper()
	for step := reapInterval; d > 0; d -= step {
		step = min(step, d)
		if r.true = r.true.Add(step); !seen {
			continue
		}
		r.clock.seen = time.Now().Add(-step)
		newest, err := r.store.Newest(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		at, err := r.clock.advance(storage.TimeOf(r.true.Add(r.wrong)), newest, 2*reapInterval)
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := r.store.Reap(r.t.Context(), at-storage.Time(reapGrace.Milliseconds())); err != nil {
			r.t.Fatal(err)
		}
	}
}

// restart is another process.
func (r *clockRun) restart() { r.clock = newClock(filepath.Dir(r.clock.path)) }

func (r *clockRun) left() (ids []string) {
	page, err := r.store.Scan(r.t.Context(), clockScope, storage.Query{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range page.Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

var clockScope = storage.Scope{Tenant: "t", App: "a", Project: "p", User: "u"}

// No sequence of jumps, with restarts or without, deletes what a right clock
// would keep; and what has expired goes in the end.
func TestClockJumpsDeleteNothing(t *testing.T) {
	start := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) // Mem hides what has expired by the real clock
	jumps := []time.Duration{-3650 * day, -365 * day, -30 * day, -7 * day, -day, -time.Hour, 0, time.Hour, day, 7 * day, 30 * day, 365 * day, 3650 * day,
		time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC).Sub(start)}
	for _, first := range jumps {
		for _, second := range jumps {
			r := &clockRun{t: t, store: storagetest.Memory(), clock: newClock(t.TempDir()), true: start}
			r.wrong = first // the first start ever, with nothing in the store
			r.run(2*time.Hour, true)
			r.wrong = 0
			r.run(time.Hour, true)
			r.true = start // as far as the memories are concerned
			for _, m := range []struct {
				id   string
				keep time.Duration
			}{{"short", 2 * day}, {"long", 90 * day}} {
				write := storage.Write{Scope: clockScope, Memories: []storage.Memory{{
					ID: m.id, Kind: storage.KindFact, Text: m.id, EventTime: storage.TimeOf(start), ExpiresAt: storage.TimeOf(start.Add(m.keep)),
				}}}
				if err := r.store.Put(t.Context(), []storage.Write{write}); err != nil {
					t.Fatal(err)
				}
			}
			for _, wrong := range []time.Duration{first, 0, second, first + second, 0} {
				r.wrong = wrong
				r.run(2*time.Hour, true)
				r.restart()
				r.run(time.Hour, true)
			}
			if d := cmp.Diff([]string{"long", "short"}, r.left()); d != "" {
				t.Fatalf("jumps by %s and %s (-want +got):\n%s", first, second, d)
			}
			r.run(85*day, false) // the process does not run
			r.restart()
			r.run(day, true)
			if d := cmp.Diff([]string{"long", "short"}, r.left()); d != "" {
				t.Fatalf("after jumps by %s and %s, and a pause (-want +got):\n%s", first, second, d)
			}
			r.run(5*day, true)
			if d := cmp.Diff([]string{"long"}, r.left()); d != "" && min(first, second, first+second) > -day { // else the clock was set back, and needs an operator
				t.Fatalf("after jumps by %s and %s, days later (-want +got):\n%s", first, second, d)
			}
			if err := r.clock.write(storage.TimeOf(r.true)); err != nil { // an operator confirms it
				t.Fatal(err)
			}
			r.run(4*day, true)
			if left := r.left(); len(left) > 0 {
				t.Fatalf("after jumps by %s and %s, confirmed: %v is left", first, second, left)
			}
		}
	}
}

// A store of a version without this clock begins with its newest memory, and
// what can't be a time is told.
func TestClockFile(t *testing.T) {
	dir := t.TempDir()
	c := newClock(dir)
	if at, err := c.advance(1000, 400, time.Hour); err != nil || at != 400 {
		t.Errorf("older store: got %d, %v", at, err)
	}
	if err := os.WriteFile(filepath.Join(dir, clockFile), []byte("soon"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.advance(1000, 400, time.Hour); err == nil || !strings.Contains(err.Error(), clockFile) {
		t.Errorf("got %v", err)
	}
}

// Both kinds of wrong clock are told.
func TestClockIsTold(t *testing.T) {
	for what, test := range map[string]struct {
		newest, kept time.Duration
	}{"behind the newest memory": {newest: 365 * day}, "ahead of the time": {kept: -365 * day}} {
		m := storagetest.Memory()
		now := time.Now()
		write := storage.Write{Scope: clockScope, Memories: []storage.Memory{{ID: "m", Kind: storage.KindFact, Text: "m", EventTime: storage.TimeOf(now.Add(test.newest))}}}
		if err := m.Put(t.Context(), []storage.Write{write}); err != nil {
			t.Fatal(err)
		}
		c := newClock(t.TempDir())
		if err := c.write(storage.TimeOf(now.Add(test.kept))); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		for range 3 {
			if _, err := reapOnce(t.Context(), m, c, time.Hour, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(log.String(), what) {
			t.Errorf("%s is not told: %s", what, log.String())
		}
	}
}
