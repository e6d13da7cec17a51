//go:build unix

package main

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// pid is that of the store's process, 0 while there is none.
func (r *rig) pid() int { return r.sys.store.Status().PID }

// signal waits for a store's process, signals it and returns its id. On a busy
// machine it may just have been replaced, and 0 is the group of this one.
func (r *rig) signal(s syscall.Signal) (pid int) {
	r.t.Helper()
	r.await("a process", func() bool {
		pid = r.pid()
		return pid > 0 && syscall.Kill(pid, s) == nil
	})
	return pid
}

// replaced waits for another process with an open store.
func (r *rig) replaced(pid int) {
	r.t.Helper()
	r.await("another process", func() bool { s := r.sys.store.Status(); return s.Open && s.PID != pid })
}

func TestStoreProcessKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigDir(t), nil)
	stop := r.traffic()
	for range storeRounds(4, 20) {
		time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond))
		r.failing.Store(true)
		r.replaced(r.signal(syscall.SIGKILL))
		r.failing.Store(false)
	}
	stop()
	r.nothingLost()
}

// Stopped for less than storage.hangTimeout it goes on, for longer it is
// replaced. Both times traffic passes as ever.
func TestStoreProcessStopped(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]time.Duration{"goes on": time.Minute, "is replaced": time.Second} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigDir(t), func(c *config.Config) { c.Store.Process.Hang = hang })
			stop := r.traffic()
			time.Sleep(200 * time.Millisecond)
			r.failing.Store(true)
			refused := func() bool { return r.sys.pipeline.Stats().Retries > 0 }
			pid := r.signal(syscall.SIGSTOP)
			r.await("noticed", func() bool { return !r.sys.store.Status().Open || r.pid() != pid })
			if hang == time.Minute {
				time.Sleep(time.Duration(storeRounds(2, 10)) * time.Second)
				r.await("a turn refused", refused)
				if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				r.awaitMemory()
				if r.pid() != pid {
					t.Error("it was replaced")
				}
			} else {
				for {
					r.await("another process", func() bool {
						s := r.sys.store.Status()
						if s.PID == pid { // one who stops and continues a whole session wakes it, too
							_ = syscall.Kill(pid, syscall.SIGSTOP)
						}
						return s.Open && s.PID != pid
					})
					if refused() {
						break
					}
					pid = r.signal(syscall.SIGSTOP) // in so little time a busy machine may have had no turn to store
				}
			}
			r.failing.Store(false)
			time.Sleep(200 * time.Millisecond)
			stop()
			r.nothingLost()
		})
	}
}

// A store that opens no more has its process crash, three times; then it is set
// aside and told of everywhere.
func TestCrashingStoreIsSetAside(t *testing.T) {
	t.Parallel()
	dir := rigDir(t)
	r := newRig(t, dir, nil)
	stop := r.traffic()
	time.Sleep(300 * time.Millisecond)
	stop()
	r.nothingLost()
	r.stop()
	damageManifest(t, r)

	r = newRig(t, dir, nil)
	stop = r.traffic()
	r.await("set aside", func() bool { s := r.sys.store.Status(); return s.Open && len(s.SetAside) == 1 })
	stop()
	if !strings.Contains(r.log.String(), "was set aside, a new one is made") {
		t.Error("the log does not tell")
	}
	if got := r.status(t); !strings.HasSuffix(got, "; store=set-aside") {
		t.Errorf("X-Remora-Status: %q", got)
	}
	c := r.sys.config
	if _, err := storeState(t.Context(), c, true); err == nil || !strings.Contains(err.Error(), "set aside as") {
		t.Errorf("check while it runs: %v", err)
	}
	r.stop()
	if _, err := storeState(t.Context(), c, true); err == nil || !strings.Contains(err.Error(), "set aside as") {
		t.Errorf("check afterwards: %v", err)
	}
}

// A Remora that takes connections and answers nothing does not stop commands
// that ask where it listens.
func TestRunningRemoraHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1)
	store := storagetest.Memory()
	hung := process.Server{
		Store: store, Local: store, Build: readBuild().String(), Log: slog.New(slog.DiscardHandler),
		Status: func() process.Status { return process.Status{Open: true} },
		Admin: func(ctx context.Context, _ string, _ []byte, _ io.Writer) ([]byte, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- hung.Listen(ctx, dir, process.FrontSocket) }()
	defer func() { stop(); <-ended }()
	eventually(t, "it takes connections", func() bool {
		running, err := process.Dial(dir, process.FrontSocket, readBuild().String())
		return err == nil && running.Close() == nil
	})
	answer := make(chan string, 1)
	go func() { answer <- runningListen(t.Context(), config.Config{Storage: badger.Config{Dir: dir}}) }()
	select {
	case listen := <-answer:
		if listen != "" {
			t.Errorf("it listens on %q", listen)
		}
	case <-time.After(patience):
		t.Fatal("it is waited for")
	}
	if len(asked) == 0 {
		t.Error("it was not asked, so this test shows nothing")
	}
}
