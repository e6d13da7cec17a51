package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/notices"
)

// version and commit are set by the linker in released builds, which are made with
// -buildvcs=false: the same sources give the same bytes with and without Git.
//
//	-ldflags "-X main.version=v1.2.3 -X main.commit=0123456789ab"
var version, commit string

// build is what the binary knows about its own build.
type build struct {
	version string
	commit  string // "" if it is not known
	dirty   bool   // built from a checkout with changes
	golang  string
}

func readBuild() build {
	b := build{version: version, commit: commit, golang: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.modified":
			b.dirty = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	v := b.version
	if v == "" || v == "(devel)" {
		v = "development build"
	}
	commit := b.commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if commit == "" {
		commit = "unknown"
	} else if b.dirty {
		commit += " with changes"
	}
	return fmt.Sprintf("remora %s (commit %s, %s %s/%s)", v, commit, b.golang, runtime.GOOS, runtime.GOARCH)
}

func versionCommand() command {
	return command{
		name:    "version",
		summary: "print version, commit and Go version",
		usage:   "remora version [--licenses]",
		define: func(f *pflag.FlagSet) runner {
			licences := f.Bool("licenses", false, "print the licences of everything that is compiled in: a table, then the texts")
			return func(_ context.Context, s streams, _ []string) error {
				if *licences {
					_, err := io.WriteString(s.out, notices.Text())
					return err
				}
				_, err := fmt.Fprintln(s.out, readBuild())
				return err
			}
		},
	}
}
