package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/storage"
)

// reaped records when it was called.
type reaped struct {
	start time.Time
	after []time.Duration
	err   error
}

func (r *reaped) Reap(_ context.Context, now storage.Time) (int, error) {
	r.after = append(r.after, now.Std().Sub(r.start))
	return 1, r.err
}

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
			go func() { defer close(done); reap(ctx, r, test.every, slog.New(slog.DiscardHandler)) }()
			time.Sleep(150 * time.Minute)
			stop()
			<-done
			if d := cmp.Diff(test.want, r.after); d != "" {
				t.Errorf("every %s (-want +got):\n%s", test.every, d)
			}
		})
	}
}
