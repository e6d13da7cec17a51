package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// How commands get a store.

// sealedConfig returns the configuration of a command that needs a store and a
// key.
func sealedConfig(flags *config.Overrides, s streams) (config.Config, error) {
	c, err := config.Load(*flags, s.getenv, config.Here(s.getenv))
	if err == nil && c.NoKey != "" {
		err = errors.New(c.NoKey)
	}
	return c, err
}

// withStore uses the store of the running Remora, or opens the store if no
// process has it open.
func withStore(ctx context.Context, c config.Config, do func(store openStore) error) error {
	if err := thereIsAStore(c); err != nil {
		return err
	}
	running, away := process.Dial(c.Storage.Dir, process.StoreSocket, readBuild().String())
	if away == nil {
		return errors.Join(do(running), running.Close())
	}
	privateFiles()
	store := badger.New(c.Storage, nil)
	if err := store.Open(ctx); err != nil {
		if locked(store.Health().Reason) { // by one that could not be reached
			err = errors.Join(err, away)
		}
		return err
	}
	return errors.Join(do(store), store.Close())
}

func thereIsAStore(c config.Config) error {
	if _, err := os.Stat(filepath.Join(c.Storage.Dir, "VERSION")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no store in %s", c.Storage.Dir)
	}
	return nil
}

// locked reports whether a store is not open because another process has it.
func locked(reason string) bool { return strings.HasPrefix(reason, "locked:") }

// storeOpening limits how long a command waits for a store to open.
const storeOpening = 30 * time.Second

// opened waits until a store is open, or has failed to open.
func opened(ctx context.Context, store memoryStore) (last process.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeOpening)
	defer cancel()
	err = until(ctx, func() bool {
		last = store.Status()
		return last.Open || last.FailedOpens > 0 || last.Restarts >= maxCrashes
	})
	return last, err
}
