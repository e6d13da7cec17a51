package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage/badger"
)

// TestQuota guards a store whose file system has space while its owner's quota
// has none: it is neither opened, which would end its process in the midst of a
// write, nor taken for damaged, however often that has happened.
func TestQuota(t *testing.T) {
	dir := t.TempDir()
	cfg := badger.DefaultConfig()
	cfg.Dir, cfg.KeyFile = filepath.Join(dir, "store"), filepath.Join(dir, "key")
	first := badger.New(cfg, nil)
	if err := errors.Join(first.Open(t.Context()), first.Close()); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(keeperConfig{Store: cfg, SetAside: true, Crashes: maxCrashes}, slog.New(slog.DiscardHandler))
	var used atomic.Bool
	used.Store(true)
	k.room = func() error {
		return machine.TakeRoom(cfg.Dir, machine.KeeperRoom, func() (uint64, error) { return 1 << 40, nil }, func(path string, _ uint64) error {
			if used.Load() {
				return &os.PathError{Op: "fallocate", Path: path, Err: syscall.EDQUOT}
			}
			return nil
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	await := func(what string, done func() bool) {
		t.Helper()
		for start := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Since(start) > 30*time.Second {
				t.Fatalf("%s: status %+v", what, k.Status())
			}
		}
	}
	await("told", func() bool { return k.Status().Reason == machine.ErrNoRoom.Error() })
	time.Sleep(2 * keeperTick)
	if s := k.Status(); s.Open || len(badger.ListSetAside(cfg.Dir)) > 0 {
		t.Errorf("over quota: status %+v, set aside: %v", s, badger.ListSetAside(cfg.Dir))
	}
	used.Store(false)
	await("opened", func() bool { return k.Status().Open })
	if s := k.Status(); len(s.SetAside) > 0 {
		t.Errorf("set aside: %v", s.SetAside)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTakeRoom(t *testing.T) {
	plenty := func() (uint64, error) { return 1 << 40, nil }
	for _, test := range []struct {
		name    string
		measure func() (uint64, error)
		err     error
		want    error
	}{
		{"room", plenty, nil, nil},
		{"quota", plenty, syscall.EDQUOT, machine.ErrNoRoom},
		{"full behind the measurement", plenty, fmt.Errorf("write: %w", syscall.ENOSPC), machine.ErrNoRoom},
		{"full, as measured", func() (uint64, error) { return 1 << 20, nil }, syscall.ENOSPC, nil},
		{"may not write", plenty, syscall.EACCES, nil},
		{"not measured", func() (uint64, error) { return 0, syscall.EIO }, syscall.EDQUOT, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			got := machine.TakeRoom(dir, machine.KeeperRoom, test.measure, func(path string, size uint64) error {
				return errors.Join(os.WriteFile(path, make([]byte, 1), 0o600), test.err)
			})
			if !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestFindProgram guards a start where /proc is not mounted.
func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "remora")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	none := func() (string, error) { return "", errors.New("no /proc") }
	known := func() (string, error) { return "known", nil }
	missing := filepath.Join(dir, "proc", "self", "exe")
	for _, test := range []struct {
		name, running, called string
		own                   func() (string, error)
		want                  string
	}{
		{"proc", program, "x", none, program},
		{"own name known", missing, "x", known, "known"},
		{"called by its path", missing, "./remora", none, program},
		{"found in PATH", missing, "remora", none, program},
		{"nowhere", missing, "other", none, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := findProgram(test.running, test.called, test.own)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
