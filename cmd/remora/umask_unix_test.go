//go:build unix

package main

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
)

// TestFilesArePrivate: whatever the umask, nobody else may read a store's
// files, wherever it is opened. Not in parallel: a umask is the whole
// process's.
func TestFilesArePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	inline := func(c *config.Config) { c.Store.Isolation = config.IsolationInline }
	for _, where := range []struct {
		name string
		open func(t *testing.T, c config.Config)
	}{
		{"own process", func(t *testing.T, c config.Config) { c.Store.Isolation = config.IsolationProcess; ranStore(t, c) }},
		{"this process", func(t *testing.T, c config.Config) { inline(&c); ranStore(t, c) }},
		{"a command", func(t *testing.T, c config.Config) {
			inline(&c)
			ranStore(t, c)
			syscall.Umask(0)
			if err := withStore(t.Context(), c, func(s openStore) error { return s.Put(t.Context(), privateWrite()) }); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(where.name, func(t *testing.T) {
			syscall.Umask(0)
			c := demoConfig(rigDir(t), "http://127.0.0.1:1")
			c.Store = config.Default().Store
			c.Store.ReserveBytes = 0
			where.open(t, c)
			seen := 0
			if err := filepath.WalkDir(c.Storage.Dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err == nil && info.Mode().Perm()&machine.OthersOut != 0 {
					t.Errorf("%s: %v", path, info.Mode())
				}
				seen++
				return err
			}); err != nil || seen < 8 {
				t.Errorf("saw %d files, %v", seen, err)
			}
		})
	}
}

func privateWrite() []storage.Write {
	return []storage.Write{{Scope: damageScope("u"), Memories: []storage.Memory{{ID: "a", Text: "first"}}}}
}

// ranStore has the store of a configuration run, and something in it.
func ranStore(t *testing.T, c config.Config) {
	t.Helper()
	s := newStore(c, slog.New(slog.DiscardHandler))
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	err := until(t.Context(), func() bool { return s.Status().Open })
	if err == nil {
		err = s.Put(t.Context(), privateWrite())
	}
	stop()
	if ranErr := <-ended; err != nil || ranErr != nil {
		t.Fatal(err, ranErr)
	}
}
