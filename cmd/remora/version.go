package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker in released builds: -ldflags "-X
// main.version=v1.2.3".
var version string

// build is what the binary knows about its own build.
type build struct {
	version string
	commit  string // "" where it was not built from a checkout
	dirty   bool   // built from a checkout with changes
	golang  string
}

func readBuild() build {
	b := build{version: version, golang: runtime.Version()}
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
		usage:   "remora version",
		run: func(_ context.Context, s streams, _ []string) error {
			_, err := fmt.Fprintln(s.out, readBuild())
			return err
		},
	}
}
