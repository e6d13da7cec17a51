package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/doctor"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

func checkCommand() command {
	return command{
		name:    "check",
		summary: "check the configuration, the upstreams, the embeddings server and the store",
		usage:   "remora check [--live] [--verify] [flags as for serve]",
		define:  check,
	}
}

// check writes the effective configuration, with secrets hidden, to the
// standard output, and its findings to the standard error: last, where a
// terminal shows them. It changes nothing: a store that does not exist is not
// created.
func check(f *pflag.FlagSet) runner {
	flags := configFlags(f)
	live := f.Bool("live", false, "only ask the Remora that listens here whether it is alive")
	verify := f.Bool("verify", false, "also read all memories and tell of those that are damaged or missing; the store must not be in use")
	return func(ctx context.Context, s streams, _ []string) error {
		c, err := config.Load(*flags, s.getenv, config.Here(s.getenv))
		if *live {
			return checkLive(ctx, s.out, c.Server.Listen)
		}
		if err != nil {
			return err
		}
		if err := c.Write(s.out); err != nil {
			return err
		}
		if c.File != "" {
			fmt.Fprintf(s.err, "configuration %s: ok\n", c.File)
		} else {
			fmt.Fprintln(s.err, "configuration: ok, no file")
		}
		fmt.Fprintf(s.err, "identity: %s\n", identitySummary(c))
		for _, w := range c.Warnings(os.Environ(), config.Here(s.getenv)) {
			fmt.Fprintf(s.err, "warning: %s\n", w)
		}
		reached, _ := doctor.Upstreams(ctx, c.Proxy.Upstreams, c.Proxy.Transport)
		found := slices.Concat(
			portFindings(ctx, c), reached, embeddingFindings(ctx, c), authorityFindings(c), exporterFindings(ctx, s.getenv), []doctor.Finding{storeFinding(ctx, c, *verify)},
		)
		writeFindings(s.err, found)
		if failed := doctor.Count(found, doctor.Failed); failed > 0 {
			return fmt.Errorf("check: %d failed", failed)
		}
		fmt.Fprintln(s.err, "check: all is well")
		return nil
	}
}

// writeFindings writes what check found, a line each. What to do about it is the
// doctor's.
func writeFindings(w io.Writer, found []doctor.Finding) {
	for _, f := range found {
		switch {
		case f.Status == doctor.Failed:
			fmt.Fprintf(w, "%s: FAILED: %s\n", f.Subject, f.Text)
		case f.Status == doctor.Warning && f.Subject == settingSubject:
			fmt.Fprintf(w, "warning: %s\n", f.Text)
		default:
			fmt.Fprintf(w, "%s: %s\n", f.Subject, f.Text)
		}
	}
}

// settingSubject is the subject of warnings about what was set.
const settingSubject = "settings"

// portFindings tries the addresses of the listeners.
func portFindings(ctx context.Context, c config.Config) (found []doctor.Finding) {
	for _, l := range [...]struct{ name, address string }{{"listen", c.Server.Listen}, {"forward.listen", c.Forward.Listen}} {
		if l.address != "" {
			found = append(found, doctor.Address(ctx, l.name, l.address, doctor.AskLive))
		}
	}
	return found
}

// exporterFindings creates the exporters that would be used, and sends nothing.
func exporterFindings(ctx context.Context, getenv func(string) string) (found []doctor.Finding) {
	tell := func(variable, step string) {
		found = append(found, doctor.Finding{
			Subject: settingSubject, Status: doctor.Warning, Text: fmt.Sprintf("%s can't be used (%s)", variable, step), Fix: "Correct the variable, or unset it.",
		})
	}
	traces, metrics, logs, err := export.Check(ctx, getenv, tell)
	if err != nil {
		return append(found, doctor.Finding{
			Subject: "telemetry", Status: doctor.Failed, Text: err.Error(), Fix: "Correct the OTEL_ variable that it names: Remora does not start with it.",
		})
	}
	for _, signal := range [...]struct{ name, to string }{{"traces", traces}, {"metrics", metrics}, {"logs", logs}} {
		if signal.to != export.Off {
			found = append(found, doctor.Finding{Subject: signal.name, Status: doctor.OK, Text: signal.to})
		}
	}
	return found
}

// authorityFindings reports how the forward listener would treat the hosts on its
// list.
func authorityFindings(c config.Config) []doctor.Finding {
	if c.Forward.Listen == "" || len(c.Forward.Intercept) == 0 {
		return nil
	}
	f := doctor.Finding{Subject: "certificate authority", Status: doctor.OK}
	a, err := loadAuthority(c)
	switch {
	case err != nil:
		f.Status, f.Text, f.Fix = doctor.Failed, err.Error(), "'remora ca init --force' makes another; clients have to be told again ('remora ca trust-help')."
	case a == nil:
		f.Status, f.Text = doctor.Warning, "none, so the forward listener gives no memory; 'remora ca init' makes one"
		f.Fix = "Run: remora ca init"
	default:
		f.Text = fmt.Sprintf("%s, for %s, until %s", a.Subject(), strings.Join(a.Hosts(), ", "), a.Expires().UTC().Format(time.DateOnly))
		if time.Until(a.Expires()) < authorityNotice {
			f.Status, f.Fix = doctor.Warning, "It ends soon: 'remora ca init --force' makes another; clients have to be told again ('remora ca trust-help')."
		}
	}
	return []doctor.Finding{f}
}

// embeddingFindings requests the vector of a word, as recall would, if a server is
// configured.
func embeddingFindings(ctx context.Context, c config.Config) []doctor.Finding {
	if c.Embeddings.URL == "" {
		return nil
	}
	c.Embeddings.QueryTimeout = doctor.ProbeTimeout // a server may have to load its model first
	client, err := embed.New(c.Embeddings, nil)
	if err != nil {
		return []doctor.Finding{{Subject: "embeddings", Status: doctor.Failed, Text: err.Error(), Fix: "Correct recall.embeddings."}}
	}
	defer client.Close()
	f := doctor.Finding{Subject: "embeddings " + client.Host(), Status: doctor.OK}
	start := time.Now()
	if v, err := client.Query(ctx, "hello"); err != nil {
		f.Status, f.Text, f.Fix = doctor.Failed, err.Error(), "Check recall.embeddings.url, model and key; without the server, recall works by words alone."
	} else {
		f.Text = fmt.Sprintf("model %s answers with %d dimensions in %s", c.Embeddings.Model, len(v), time.Since(start).Round(time.Millisecond))
	}
	return []doctor.Finding{f}
}

// storeFinding reports whether memory would work.
func storeFinding(ctx context.Context, c config.Config, verify bool) doctor.Finding {
	f := doctor.Finding{Subject: "store " + c.Storage.Dir, Status: doctor.OK}
	var err error
	if f.Text, err = storeState(ctx, c, verify); err != nil {
		f.Status, f.Text = doctor.Failed, err.Error()
	}
	return f
}

// storeState opens the store where serve would keep it, in a process of its
// own, because opening a damaged store may end a process. If a running Remora
// has it open, that one is asked.
func storeState(ctx context.Context, c config.Config, verify bool) (string, error) {
	if c.NoKey != "" {
		return "", errors.New(c.NoKey)
	}
	if !storeBegun(c.Storage.Dir) {
		return "not there yet, can be made", errors.Join(writable(c.Storage.Dir), keyForNew(c.Storage))
	}
	found := ""
	look := func(store openStore) (err error) {
		if verify {
			found, err = verifyStore(ctx, store)
			found = ", " + found
		}
		return err
	}
	if running, err := process.Dial(c.Storage.Dir, process.StoreSocket, readBuild().String()); err == nil {
		s := running.Status()
		err = errors.Join(look(running), running.Close(), ailing(s), met(s), missing(s))
		return fmt.Sprintf("in use by a Remora that runs, open, %d MiB free%s", s.FreeBytes>>20, found), err
	}
	s, err := probeStore(ctx, c, look)
	if err != nil {
		return "", err
	}
	if locked(s.Reason) && !verify {
		return "in use, " + s.Reason, missing(s)
	}
	if !s.Open {
		return "", errors.Join(errors.New(s.Reason), missing(s))
	}
	return fmt.Sprintf("opens, %d MiB free%s", s.FreeBytes>>20, found), errors.Join(ailing(s), met(s), missing(s))
}

// keyForNew checks whether a new store would have a key.
func keyForNew(c badger.Config) error {
	dir, err := badger.CheckNewKey(c)
	if err != nil || dir == "" {
		return err
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("no key can be made for key file %s: %w", c.KeyFile, err)
	}
	return nil
}

// storeBegun reports whether dir has a store or a part of one. Without its
// version it does not open, and no other is created there. Errors of looking
// are left to opening it.
func storeBegun(dir string) bool {
	for _, name := range [...]string{"VERSION", "data"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// ailing returns why an open store accepts nothing, such as a disk without
// space.
func ailing(s process.Status) error {
	if s.Reason == "" {
		return nil
	}
	return errors.New(s.Reason)
}

// met returns what opening the store found damaged. The store opens all the
// same and repairs its files, so the next opening finds nothing.
func met(s process.Status) error {
	if s.Damaged == 0 {
		return nil
	}
	return fmt.Errorf("damage was met %d times: some of what was stored is lost; what a damaged log held is kept in a copy, log.damaged-*, where there was one", s.Damaged)
}

// missing returns what a person has to take care of.
func missing(s process.Status) error {
	if len(s.SetAside) == 0 {
		return nil
	}
	var marks, aside []string
	for _, path := range s.SetAside {
		if badger.IsMissingMark(path) {
			marks = append(marks, path)
		} else {
			aside = append(aside, path)
		}
	}
	var err error
	if len(aside) > 0 {
		err = fmt.Errorf("its memories are missing: a damaged store was set aside as %s; restore it from a backup, or take it away", strings.Join(aside, ", "))
	}
	if len(marks) > 0 {
		err = errors.Join(err, fmt.Errorf("its memories are missing: its data were gone when it was opened, while its keys are there; restore a backup, or take away %s",
			strings.Join(marks, ", ")))
	}
	return err
}

// probeStore opens the store, calls look, and closes the store again. Nothing
// is set aside.
func probeStore(ctx context.Context, c config.Config, look func(openStore) error) (last process.Status, err error) {
	c.Store.SetAside, c.Store.ReserveBytes = false, 0
	s := newStore(c, slog.New(slog.DiscardHandler))
	err = keepOwners(c, func() error {
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(running) }()
		last, err = opened(ctx, s)
		if err == nil && last.Open {
			err = look(s)
		}
		stop()
		return errors.Join(err, <-ended)
	})
	return last, err
}

// writable checks whether dir could be created, by writing in its nearest
// existing parent.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return err
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".remora-check-*")
	if err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkLive asks the process that listens on address. It is the health check of
// the image.
func checkLive(ctx context.Context, w io.Writer, address string) error {
	if err := doctor.AskLive(ctx, address); err != nil {
		return fmt.Errorf("not alive: %w", err)
	}
	fmt.Fprintln(w, "alive")
	return nil
}
