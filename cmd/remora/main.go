// Command remora is the proxy that remembers: point an agent's base URL at it.
//
// This package wires the others together and knows everything: the
// configuration, the commands, the OpenTelemetry SDK. The other packages take
// typed configuration and know neither files nor the environment.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage. After SIGTERM, SIGINT or the
// SIGHUP of a closed terminal, `remora serve` finishes and stores what is in
// progress and exits 0. A second signal ends it at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

func main() { os.Exit(mainExit()) }

func mainExit() int {
	log.SetOutput(io.Discard) // net/http quotes there what peers send; our own lines go to slog
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	hangs := !signal.Ignored(syscall.SIGHUP) // under nohup the terminal may close
	if hangs {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	// From the first signal on, the default action is restored, so that a
	// second one ends the process at once. SIGHUP is an exception: when a
	// terminal is closed, the system sends one and the shell another.
	defer context.AfterFunc(ctx, func() {
		if hangs {
			signal.Ignore(syscall.SIGHUP)
		}
		stop()
	})()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	// A usageError has been printed by then, with the usage text.
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	writeLastLine(os.Stderr, fmt.Sprintln("remora:", err))
	return exitFail
}

// streams are the streams and the environment that a command may use.
type streams struct {
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	err    io.Writer
}

type command struct {
	name    string
	summary string
	usage   string
	run     func(ctx context.Context, s streams, args []string) error
}

func commands() []command {
	return []command{serveCommand(), demoCommand(), checkCommand(), caCommand(), keysCommand(), tenantCommand(), listCommand(), forgetCommand(), clockCommand(), backupCommand(), restoreCommand(), storeCommand(), versionCommand()}
}

func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	s := streams{getenv, stdin, stdout, stderr}
	if len(args) == 0 {
		overview(stderr)
		return usageError{"no command given"}
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		return help(ctx, s, rest)
	case "-version", "--version":
		name, rest = "version", nil
	}
	c, err := find(name)
	if err != nil {
		fmt.Fprintf(stderr, "remora: %v\nRun 'remora help' for the commands.\n", err)
		return err
	}
	return c.run(ctx, s, rest)
}

func find(name string) (command, error) {
	all := commands()
	if i := slices.IndexFunc(all, func(c command) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	var known []string
	for _, c := range all {
		known = append(known, c.name)
	}
	what := fmt.Sprintf("unknown command %q", name)
	if near := config.Nearest(name, known); near != "" {
		what += fmt.Sprintf("; did you mean %q?", near)
	}
	return command{}, usageError{what}
}

func help(ctx context.Context, s streams, args []string) error {
	if len(args) == 0 {
		overview(s.out)
		return nil
	}
	c, err := find(args[0])
	if err != nil {
		fmt.Fprintf(s.err, "remora: %v\nRun 'remora help' for the commands.\n", err)
		return err
	}
	s.err = s.out // it was asked for, so it is the output
	return c.run(ctx, s, []string{"-h"})
}

func overview(w io.Writer) {
	fmt.Fprint(w, "Remora rides along with LLM traffic and remembers: point an agent's base URL at it.\n\nUsage: remora <command> [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, `  help      show this, or 'remora help <command>'

Settings come from defaults, a JSON file (--config, or REMORA_CONFIG, or config.json in the configuration directory),
REMORA_* variables and flags, each winning over the one before. docs/configuration.md lists them all.
Exit codes: 0 done, 1 failed, 2 called wrongly.
`)
}
