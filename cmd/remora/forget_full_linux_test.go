package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
)

// fillBut leaves so many bytes of a disk.
func fillBut(t *testing.T, dir string, left uint64) (free func()) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hog")
	if err := machine.Allocate(path, fs.Bavail*uint64(fs.Bsize)-left); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForgetWhileTheDiskIsFull: where nothing can be stored everything can be
// forgotten, though turns and audits wait for space.
func TestForgetWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tmpfs", "ext4"} {
		t.Run(kind, func(t *testing.T) {
			dir := mounted(t, kind, 256)
			r := newRig(t, filepath.Join(dir, "remora"), func(c *config.Config) {
				c.Storage.MinFreeBytes = 64 << 20
				c.Persist.Audit.Interval, c.Persist.Audit.Debounce = time.Second, 100*time.Millisecond
			})
			stop := r.traffic()
			var last int64 // that a forgotten user may have said before
			forgotten := 0
			for round := range storeRounds(2, 20) {
				time.Sleep(200 * time.Millisecond)
				free := fillBut(t, dir, 48<<20)
				r.await("nothing is stored", func() bool { return strings.Contains(r.sys.store.Status().Reason, "no space") })
				time.Sleep(2 * time.Second) // audits are due
				forgotten, last = round%rigUsers, r.serial.Load()-rigUsers
				began, stalls := time.Now(), r.stalls.Load()
				done, err := r.sys.forget(t.Context(), forgetting{All: true, Of: selection{User: rigName(forgotten)}})
				took := time.Since(began)
				time.Sleep(2 * stallTick)
				if err != nil || done.Scopes != 1 || done.Memories == 0 || done.Turns == 0 || took > forgetPatience/4 && r.stalls.Load() == stalls {
					t.Errorf("forgot %+v, %v, after %v; the store says %+v", done, err, took, r.sys.store.Status())
				}
				newcomer := selection{User: rigName(rigUsers)} // of whom the store knows nothing yet
				r.say(http.DefaultClient, rigUsers)
				r.await("a newcomer's turn", func() bool {
					return slices.ContainsFunc(r.sys.pipeline.Waiting(), newcomer.covers)
				})
				done, err = r.sys.forget(t.Context(), forgetting{All: true, Of: newcomer})
				if err != nil || done.Scopes != 1 || done.Turns != 1 {
					t.Errorf("forgot of a newcomer %+v, %v; the store says %+v", done, err, r.sys.store.Status())
				}
				free()
				r.await("space", func() bool { return r.sys.store.Status().Reason == "" })
			}
			stop()
			if err := r.sys.pipeline.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for text := range r.stored() {
				var n int64
				_, told, _ := strings.Cut(text, "says "+rigName(forgotten)+": ")
				if _, err := fmt.Sscanf(told, "the invoice number %d", &n); err == nil && n < last {
					t.Errorf("forgotten, and stored: %s", text)
				}
			}
			r.stop() // before the disk goes
		})
	}
}
