package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// journal notes what happens in which order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) stage(name string, finishing time.Duration) stage {
	return stage{name, func(ctx context.Context) error {
		<-ctx.Done()
		j.note(name + " stopping")
		time.Sleep(finishing)
		j.note(name + " done")
		return nil
	}, time.Minute}
}

func TestStagesStopInOrderOfTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := runStages(ctx, slog.New(slog.DiscardHandler), j.stage("server", 10*time.Second), j.stage("persist", time.Second), j.stage("store", 0))
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		want := []string{"server stopping", "server done", "persist stopping", "persist done", "store stopping", "store done"}
		if !slices.Equal(j.lines, want) {
			t.Errorf("got %q, want %q", j.lines, want)
		}
	})
}

func TestStageThatFailsStopsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		broken := errors.New("address in use")
		server := stage{"server", func(context.Context) error { return broken }, time.Minute}
		err := runStages(t.Context(), slog.New(slog.DiscardHandler), server, j.stage("store", time.Second))
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		if want := []string{"store stopping", "store done"}; !slices.Equal(j.lines, want) {
			t.Errorf("got %q, want %q", j.lines, want)
		}
	})
}

func TestStageThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		free := make(chan struct{})
		hanging := stage{"persist", func(context.Context) error { <-free; return nil }, 5 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := runStages(ctx, slog.New(slog.DiscardHandler), hanging, j.stage("store", 0))
		if err == nil || !strings.Contains(err.Error(), "persist: still not done 5s after") {
			t.Errorf("got %v, want an error that names persist", err)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("took %v, want 5s", got)
		}
		if want := []string{"store stopping", "store done"}; !slices.Equal(j.lines, want) {
			t.Errorf("got %q, want %q", j.lines, want)
		}
		close(free)
	})
}

func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		broken := errors.New("port lost")
		run := together(j.stage("server", time.Second).run, func(context.Context) error { time.Sleep(time.Minute); return broken })
		if err := run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		if want := []string{"server stopping", "server done"}; !slices.Equal(j.lines, want) {
			t.Errorf("got %q, want %q", j.lines, want)
		}
	})
}
