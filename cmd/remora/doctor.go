package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/agents"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/doctor"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/storage/badger"
)

// doctorCommand examines what check does, and what surrounds Remora: the clock,
// space, modes of files, and whether agents find it.
func doctorCommand() command {
	return command{
		name:    "doctor",
		summary: "find out what is wrong, on this machine and with its agents, and how to fix it",
		usage: `remora doctor [--json] [flags as for serve]

It asks what 'remora check' does, and also about the clock, the disk, the modes of files, and whether agents here find
Remora. It prints no configuration. It exits with 1 if something failed.`,
		define: func(f *pflag.FlagSet) runner {
			flags := configFlags(f)
			asJSON := f.Bool("json", false, "write one JSON object")
			return func(ctx context.Context, s streams, _ []string) error {
				found := examineAll(ctx, s, *flags)
				if *asJSON {
					if err := doctor.WriteJSON(s.out, found); err != nil {
						return err
					}
				} else {
					doctor.Write(s.out, found)
				}
				if n := doctor.Count(found, doctor.Failed); n > 0 {
					return fmt.Errorf("doctor: %d failed", n)
				}
				return nil
			}
		},
	}
}

// examineAll returns everything that was found. With a configuration that can't be
// used, nothing else is examined.
func examineAll(ctx context.Context, s streams, flags config.Overrides) []doctor.Finding {
	where := config.Here(s.getenv)
	c, err := config.Load(flags, s.getenv, where)
	if err != nil {
		return misconfigured(err)
	}
	file := c.File
	if file == "" {
		file = "no file"
	}
	found := []doctor.Finding{{Subject: "configuration", Status: doctor.OK, Text: file}}
	for _, w := range c.Warnings(os.Environ(), where) {
		found = append(found, doctor.Finding{Subject: settingSubject, Status: doctor.Warning, Text: w})
	}
	found = append(found, portFindings(ctx, c)...)
	if c.API.Listen != config.APIOff {
		found = append(found, controlAddress(ctx, c))
	}
	if c.Health != "" {
		found = append(found, doctor.Address(ctx, "health.listen", c.Health, doctor.AskControl))
	}
	reached, clocks := doctor.Upstreams(ctx, c.Proxy.Upstreams, c.Proxy.Transport)
	return slices.Concat(
		found, reached, []doctor.Finding{doctor.Clock(clocks)}, embeddingFindings(ctx, c), authorityFindings(c), exporterFindings(ctx, s.getenv),
		storeFindings(ctx, c), surroundings(ctx, s, c, flags),
	)
}

// misconfigured returns the problems of a configuration.
func misconfigured(err error) []doctor.Finding {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return []doctor.Finding{{Subject: "configuration", Status: doctor.Failed, Text: err.Error()}}
	}
	var found []doctor.Finding
	for _, p := range problems {
		found = append(found, doctor.Finding{
			Subject: "configuration", Status: doctor.Failed, Text: p.Error(), Fix: "Correct it; docs/configuration.md lists all settings.",
		})
	}
	return found
}

// controlAddress examines the address of the control plane. Another program at
// its default address keeps nothing from starting.
func controlAddress(ctx context.Context, c config.Config) doctor.Finding {
	f := doctor.Address(ctx, "api.listen", c.API.Listen, doctor.AskControl)
	if f.Status == doctor.Failed && !c.API.Required() {
		f.Status = doctor.Warning
	}
	f.Subject += " (control plane)"
	return f
}

// storeFindings examines the store, its format, the space for it and who may
// read its files.
func storeFindings(ctx context.Context, c config.Config) []doctor.Finding {
	f := storeFinding(ctx, c, false)
	if version, err := config.ReadRegular(filepath.Join(c.Storage.Dir, "VERSION")); err == nil {
		f.Text += ", format: " + strings.TrimSpace(string(version))
	}
	switch {
	case f.Status == doctor.Failed:
		f.Fix = "Traffic passes without memory until then; docs/storage.md says what each of these means."
	case strings.Contains(f.Text, "locked:"): // its holder could not be asked
		f.Status = doctor.Warning
		f.Fix = "End the process that has it, or run this as its user; two Remoras can't share a store (--data takes another)."
	}
	free, err := badger.New(c.Storage, nil).MeasureFree()
	found := []doctor.Finding{f, doctor.Disk(c.Storage.Dir, free, err, c.Storage.MinFreeBytes)}
	if l := machine.LifetimeOf(memoryDir(c), c.Proxy.Identity.Container); l != machine.Lasting {
		found = append(found, doctor.Ephemeral(memoryDir(c), l.Reason(), l.Fix()))
	}
	if runtime.GOOS == "windows" {
		return found
	}
	for _, private := range [...]struct{ subject, file string }{
		{"data directory", c.Storage.Dir}, {"admin token", filepath.Join(c.Storage.Dir, tokenFile)},
	} {
		info, err := os.Stat(private.file)
		if err != nil || c.Proxy.Identity.Container {
			continue // there is none yet, or its volume decides
		}
		f := doctor.Finding{Subject: private.subject, Status: doctor.OK, Text: fmt.Sprintf("%s has mode %04o", private.file, info.Mode().Perm())}
		if info.Mode().Perm()&0o077 != 0 {
			f.Status, f.Text = doctor.Warning, f.Text+": others than its owner may read or use it"
			f.Fix = "Run: chmod go= " + private.file
		}
		found = append(found, f)
	}
	return found
}

// surroundings examines whether the agents of this machine find Remora.
func surroundings(ctx context.Context, s streams, c config.Config, flags config.Overrides) []doctor.Finding {
	if flags.Listen == "" {
		if listen := runningListen(ctx, c); listen != "" {
			c.Server.Listen = listen
		}
	}
	base, err := agents.Base(c.Server.Listen)
	if err != nil {
		return []doctor.Finding{{Subject: "agents", Status: doctor.Warning, Text: err.Error()}}
	}
	home, _ := os.UserHomeDir() // "" = none
	return doctor.Environment{
		Getenv: s.getenv, Look: exec.LookPath, Read: config.ReadRegular, Home: home,
		Base: base, Forward: c.Forward.Listen, CACert: c.CACert, ProxyFromEnvironment: c.Proxy.Transport.ProxyFromEnvironment,
	}.Findings()
}
