//go:build unix

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

// TestCheckTellsOfDamage: the first to open a store meets what a damage took,
// and repairs the files. If that is a check, nobody after it could tell.
func TestCheckTellsOfDamage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string // of the error; "" = none
	}{
		"whole": {func(string) error { return nil }, ""},
		"a user's key is gone": {func(dir string) error {
			keys, err := filepath.Glob(filepath.Join(dir, "keyring", "scopes", "*", "*"))
			if err != nil || len(keys) != 1 {
				t.Fatalf("keys: %v, %v", keys, err)
			}
			return os.Remove(keys[0])
		}, "missing: 1 scopes"},
		"a log is gone": {func(dir string) error {
			logs, err := filepath.Glob(filepath.Join(dir, "data", "*.mem"))
			if err != nil || len(logs) != 1 {
				t.Fatalf("logs: %v, %v", logs, err)
			}
			return os.Remove(logs[0])
		}, "damage was met"},
		"the version is gone": {func(dir string) error { return os.Remove(filepath.Join(dir, "VERSION")) }, "VERSION is missing"},
	} {
		cfg := demoConfig(rigDir(t), "http://127.0.0.1:1")
		cfg.Store = config.Default().Store
		cfg.Store.Isolation = config.IsolationInline
		s := badger.New(cfg.Storage, nil)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), []storage.Write{{Scope: damageScope("u"), Memories: []storage.Memory{{ID: "a", Text: "first"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.UpdateInventory(); err != nil {
			t.Fatal(err)
		}
		dir := rigDir(t) // what a kill leaves
		if err := os.CopyFS(dir, os.DirFS(cfg.Storage.Dir)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.Storage.Dir = dir
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		told, err := storeState(t.Context(), cfg, true)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %q, %v, want %q", name, told, err, c.want)
		}
	}
}

// TestCheckTellsOfAFullDisk: a store that is open and takes no writes is
// nothing that works.
func TestCheckTellsOfAFullDisk(t *testing.T) {
	without := func(what any) {
		t.Helper()
		if os.Getenv("CI") == "true" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	cfg := demoConfig(rigDir(t), "http://127.0.0.1:1")
	cfg.Store = config.Default().Store
	cfg.Store.Isolation = config.IsolationInline
	free, err := badger.New(cfg.Storage, nil).MeasureFree()
	if err != nil {
		t.Fatal(err)
	}
	const aFile = 512 << 20
	if free < 4*aFile {
		without("there is not enough space to have some and take it")
	}
	cfg.Storage.MinFreeBytes = free - aFile/2
	store := newStore(cfg, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	opening, late := context.WithTimeout(t.Context(), patience)
	defer late()
	if err := until(opening, func() bool { return store.Status().Open }); err != nil {
		without("somebody else has taken the space")
	}
	if err := machine.Allocate(filepath.Join(t.TempDir(), "fill"), aFile); err != nil {
		without(err)
	}
	for range 1000 { // until that is noticed, and the socket is there
		told, err := storeState(t.Context(), cfg, false)
		if err != nil && strings.Contains(err.Error(), "no space") && strings.Contains(told, "in use by a Remora that runs") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it is not told")
}
