package signals

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a SIGHUP means depends on the terminal and on the command.
func TestHangup(t *testing.T) {
	for _, test := range []struct {
		name           string
		reloads        bool // the command has said how
		terminal       bool // there was one at the start
		there          bool // and it is there when the signal comes
		closesLater    bool // or is closed right after
		ends, reloaded bool
	}{
		{name: "no terminal, a command that can't reload", ends: true},
		{name: "no terminal", reloads: true, reloaded: true},
		{name: "a terminal that stays", reloads: true, terminal: true, there: true, reloaded: true},
		{name: "a terminal that was closed", reloads: true, terminal: true, ends: true},
		{name: "a terminal that is closed right after", reloads: true, terminal: true, there: true, closesLater: true, ends: true, reloaded: true},
		{name: "a terminal that stays, a command that can't reload", terminal: true, there: true, ends: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var there, reloaded atomic.Bool
				there.Store(test.there)
				h := &hangups{attached: there.Load, terminal: test.terminal}
				ctx, end := context.WithCancel(context.WithValue(t.Context(), key{}, h))
				defer end()
				if test.reloads {
					OnHangup(ctx, func() { reloaded.Store(true) })
				}
				signalled := make(chan os.Signal, 1)
				go h.watch(ctx, signalled, end)
				signalled <- os.Interrupt // which one is not looked at
				synctest.Wait()
				if test.closesLater {
					there.Store(false)
				}
				time.Sleep(2 * recheck)
				synctest.Wait()
				if ends := ctx.Err() != nil; ends != test.ends || reloaded.Load() != test.reloaded {
					t.Errorf("ended %v, reloaded %v; want %v, %v", ends, reloaded.Load(), test.ends, test.reloaded)
				}
			})
		})
	}
}

func TestOnHangupOfAnotherContext(t *testing.T) {
	OnHangup(t.Context(), func() { t.Error("called") })
}
