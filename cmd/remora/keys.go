package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

func keysCommand() command {
	return command{
		name:    "keys",
		summary: "look after the keys that seal the memories",
		usage: `remora keys status
       remora keys rotate [--new-key-file FILE]
       remora keys export FILE|-
       remora keys import FILE|-
       each with [--data DIRECTORY] [--config FILE]`,
		define: keys, minArgs: 1, maxArgs: 2, words: []string{"status", "rotate", "export", "import"}, files: true,
	}
}

func keys(f *pflag.FlagSet) runner {
	flags := storeFlags(f)
	newKeyFile := f.String("new-key-file", "", "rotate: take the new key from `file`, which is made if it is not there; the store is then to be configured with it")
	return func(ctx context.Context, s streams, args []string) error {
		file := ""
		switch verb := args[0]; {
		case (verb == "status" || verb == "rotate") && len(args) == 1:
		case (verb == "export" || verb == "import") && len(args) == 2:
			file = args[1]
		default:
			return wrongCall("keys takes status, rotate, export FILE or import FILE")
		}
		c, err := sealedConfig(flags, s)
		if err != nil {
			return err
		}
		switch args[0] {
		case "status":
			return keyStatus(s.out, c)
		case "rotate":
			if *newKeyFile != "" { // a running Remora has another working directory
				if *newKeyFile, err = filepath.Abs(*newKeyFile); err != nil {
					return err
				}
			}
			return withStore(ctx, c, func(store openStore) error { return rotateKey(ctx, s.err, store, c, *newKeyFile) })
		case "export":
			return exportKeys(s, c, file)
		}
		return importKeys(s, c, file)
	}
}

// keyStatus prints ids and counts, never a key. It works while Remora runs.
func keyStatus(w io.Writer, c config.Config) error {
	st, err := badger.ReadKeyStatus(c.Storage)
	if err != nil {
		return err
	}
	from := "the configured key (storage.key)"
	if st.KeyFile != "" {
		from = st.KeyFile
	}
	fmt.Fprintf(w, "key %s, from %s\n", st.Key, from)
	fmt.Fprintf(w, "data keys: %d, destroyed by erasures: %d\n", st.Scopes, st.Destroyed)
	for _, id := range slices.Sorted(maps.Keys(st.WrappedBy)) {
		fmt.Fprintf(w, "opened by %s: %d files\n", id, st.WrappedBy[id])
	}
	if st.Unreadable > 0 {
		fmt.Fprintf(w, "unreadable: %d files\n", st.Unreadable)
	}
	switch st.RotatingTo {
	case "":
	case st.Key:
		fmt.Fprintln(w, "a rotation to this key is finished when the store is next opened")
	default:
		fmt.Fprintf(w, "a rotation to %s is under way: run `remora keys rotate` again, or configure the new key\n", st.RotatingTo)
	}
	return nil
}

// rotateKey works on any store that can rotate keys.
func rotateKey(ctx context.Context, w io.Writer, store storage.KeyRotator, c config.Config, newKeyFile string) error {
	done, err := store.RotateKey(ctx, newKeyFile)
	if errors.Is(err, storage.ErrInvalid) && newKeyFile == "" && len(c.Storage.Key) > 0 {
		return errors.New("the key is set as storage.key, which Remora can't change: name a file for the new one with --new-key-file")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "rotated from key %s to %s: %d data keys are wrapped by it\n", done.From, done.To, done.Keys)
	if done.Unreadable > 0 {
		fmt.Fprintf(w, "%d data keys could not be read and are as they were\n", done.Unreadable)
	}
	if done.Pending {
		fmt.Fprintf(w, "both keys open the store now: configure the key in %s and start Remora again, then the old one no longer does\n", newKeyFile)
		return nil
	}
	fmt.Fprintf(w, "the new key is in %s; exported keyrings and copies of the key file are of the old one: make new ones\n", done.NewFile)
	fmt.Fprintf(w, "the old key is kept in %s, since another store or an exported keyring may need it: remove it when none does\n", done.OldFile)
	return nil
}

func exportKeys(s streams, c config.Config, file string) error {
	n := 0
	err := writeOut(s, file, func(w io.Writer) error {
		var err error
		n, err = badger.ExportKeyring(c.Storage, w)
		return err
	})
	if err == nil {
		fmt.Fprintf(s.err, "exported %d data keys, wrapped by the key-encryption key, which is not among them\n", n)
	}
	return err
}

func importKeys(s streams, c config.Config, file string) error {
	if running, err := process.Dial(c.Storage.Dir, process.StoreSocket, readBuild().String()); err == nil {
		return errors.Join(fmt.Errorf("a Remora uses %s: stop it first; nothing was imported", c.Storage.Dir), running.Close())
	}
	in, err := openIn(s, file)
	if err != nil {
		return err
	}
	defer in.Close()
	var done badger.Imported
	err = keepOwners(c, func() error {
		done, err = badger.ImportKeyring(c.Storage, in)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "imported %d data keys; there were already: %d; left out, since they were erased: %d\n", done.Added, done.Kept, done.Erased)
	if done.Condemned > 0 {
		fmt.Fprintf(s.err, "%d scopes were erased after these keys were made: what is here of them is erased when the store is next opened\n", done.Condemned)
	}
	return nil
}
