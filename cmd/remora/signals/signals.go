// Package signals decides what the signals to this process mean. Interrupts and
// SIGTERM end the context of a command; a second one ends the process at once.
//
// SIGHUP has two meanings. When a terminal is closed, the system and the shell
// send it to what runs there, and it ends the context as well. A process that
// has no terminal, or whose terminal is still there, is asked to reload its
// configuration, if its command has said how ([OnHangup]). Under nohup it means
// nothing.
package signals

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// recheck is how long after a SIGHUP the terminal is looked for again. A shell
// that exits may send one a moment before its terminal is closed.
const recheck = time.Second

// hangups is what a SIGHUP does.
type hangups struct {
	attached func() bool // reports whether this process has a terminal
	terminal bool        // it had one when it started

	released atomic.Bool // SIGHUP is handled elsewhere

	mu     sync.Mutex
	reload func() // nil = the signal ends the context
}

// key is the key of hangups in a context.
type key struct{}

// Context returns a context that ends with the first signal that ends this
// process. stop restores the default actions.
//
// From that signal on, a second one ends the process at once. SIGHUP is an
// exception: when a terminal is closed, two may come.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	heard, stopHearing := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	h := &hangups{attached: attached, terminal: attached()}
	ctx, end := context.WithCancel(context.WithValue(heard, key{}, h))
	hangs := !signal.Ignored(syscall.SIGHUP)
	if hangs {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGHUP)
		go h.watch(ctx, c, end)
	}
	restored := context.AfterFunc(ctx, func() {
		if hangs && !h.released.Load() {
			signal.Ignore(syscall.SIGHUP)
		}
		stopHearing()
	})
	return ctx, func() { restored(); end(); stopHearing() }
}

// OnHangup has a SIGHUP that no closed terminal has sent call reload, which
// must not block, in place of ending ctx. ctx comes from [Context]; for any
// other it does nothing.
func OnHangup(ctx context.Context, reload func()) {
	h, ok := ctx.Value(key{}).(*hangups)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reload = reload
}

// Release leaves signals to the caller of a command, which hears them on its own:
// a SIGHUP is not ignored after ctx has ended.
func Release(ctx context.Context) {
	if h, ok := ctx.Value(key{}).(*hangups); ok {
		h.released.Store(true)
	}
}

// watch waits for SIGHUPs until ctx ends. end ends it.
func (h *hangups) watch(ctx context.Context, signalled <-chan os.Signal, end func()) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-signalled:
			if !h.hangup() {
				end()
				return
			}
			again = time.After(recheck)
		case <-again:
			if again = nil; h.closed() {
				end()
				return
			}
		}
	}
}

// hangup handles one SIGHUP. It reports false if the process has to end.
func (h *hangups) hangup() bool {
	h.mu.Lock()
	reload := h.reload
	h.mu.Unlock()
	if reload == nil || h.closed() {
		return false
	}
	reload()
	return true
}

// closed reports whether the terminal of this process is gone.
func (h *hangups) closed() bool { return h.terminal && !h.attached() }
