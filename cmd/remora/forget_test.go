package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/persist"
)

// Where turns can't be stored, an erasure waits for them; the caller who asked for it
// is told why, and not kept for ever.
func TestForgettingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := demoConfig(t.TempDir(), "http://127.0.0.1:1")
		c.Store.Isolation = config.IsolationInline
		s := &system{store: newStore(c, slog.New(slog.DiscardHandler))} // closed
		began := time.Now()
		waits := func(ctx context.Context) (persist.Erasure, error) {
			<-ctx.Done()
			return persist.Erasure{Memories: 1}, ctx.Err()
		}
		e, err := s.patiently(t.Context(), waits)
		if err == nil || !strings.Contains(err.Error(), "forget it again") || e.Memories != 1 || time.Since(began) != forgetPatience {
			t.Errorf("got %+v, %v, after %v", e, err, time.Since(began))
		}
		off, stop := context.WithCancel(t.Context())
		stop()
		if _, err := s.patiently(off, waits); !errors.Is(err, context.Canceled) {
			t.Errorf("called off: %v", err)
		}
	})
}
