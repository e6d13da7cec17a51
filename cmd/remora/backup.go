package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
)

func backupCommand() command {
	return command{
		name:    "backup",
		summary: "write a backup of the memories, sealed, without the keys",
		usage:   "remora backup FILE|- [--data DIRECTORY] [--config FILE]",
		define:  backup,
		minArgs: 1, maxArgs: 1, files: true,
	}
}

func restoreCommand() command {
	return command{
		name:    "restore",
		summary: "make a store of a backup, in a directory without data",
		usage:   "remora restore FILE|- [--data DIRECTORY] [--config FILE]",
		define:  restore,
		minArgs: 1, maxArgs: 1, files: true,
	}
}

func backup(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	return func(ctx context.Context, s streams, args []string) error {
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		return withStore(ctx, c, func(store openStore) error { return backupTo(ctx, s, store, args[0]) })
	}
}

// backupTo works on any store that can back up.
func backupTo(ctx context.Context, s streams, store storage.Backuper, file string) error {
	size := int64(0)
	err := writeOut(s, file, func(w io.Writer) error { return store.Backup(ctx, &counter{w, &size}) })
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "wrote a backup of %d KiB; it can't be read without the keyring (remora keys export) and the key\n", (size+1023)>>10)
	return nil
}

type counter struct {
	io.Writer
	n *int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	*c.n += int64(n)
	return n, err
}

func restore(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	return func(ctx context.Context, s streams, args []string) error {
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		in, err := openIn(s, args[0])
		if err != nil {
			return err
		}
		defer in.Close()
		var done badger.Restored
		err = keepOwners(c, func() error {
			machine.PrivateFiles()
			done, err = badger.Restore(ctx, c.Storage, in)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.err, "restored %d scopes to %s, as they were at %s\n", done.Scopes, c.Storage.Dir, done.From.Std().Format(time.RFC3339))
		if done.Erased > 0 {
			fmt.Fprintf(s.err, "left out %d scopes: they have been erased since, or their keys are not in the keyring\n", done.Erased)
		}
		return nil
	}
}

// writeOut gives do the standard output, or a new file with mode 0600 that
// appears under its name only when it is complete. An existing file is not
// replaced.
func writeOut(s streams, file string, do func(w io.Writer) error) error {
	if file == "-" {
		return do(s.out)
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already", file)
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".partial-*") // with mode 0600
	if err != nil {
		return err
	}
	err = do(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func openIn(s streams, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(s.in), nil
	}
	return os.Open(file)
}
