// Command remora is the proxy that remembers: point an agent's base URL at it.
//
// This package wires the others together and knows everything: the
// configuration, the commands, the OpenTelemetry SDK. The other packages take
// typed configuration and know neither files nor the environment.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage; `remora wrap` has those of its
// agent. After SIGTERM, SIGINT or the SIGHUP of a closed terminal, `remora
// serve` finishes and stores what is in progress and exits 0. A second signal
// ends it at once. Any other SIGHUP has it read its configuration again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/signals"
)

const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

func main() { os.Exit(mainExit()) }

func mainExit() int {
	log.SetOutput(io.Discard)    // net/http quotes there what peers send; our own lines go to slog
	cobra.MousetrapHelpText = "" // on Windows, a shortcut may run any command
	ctx, stop := signals.Context(context.Background())
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	if err == nil {
		return exitOK
	}
	// A usageError has been printed by then, with the usage text.
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	writeLastLine(os.Stderr, fmt.Sprintln("remora:", err))
	return exitFail
}

// exitStatus is the exit code of another program, which has itself reported
// what went wrong.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// streams are the streams and the environment that a command may use.
type streams struct {
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	err    io.Writer
}

func commands() []command {
	return []command{
		serveCommand(), wrapCommand(), envCommand(), demoCommand(), checkCommand(), doctorCommand(),
		listCommand(), searchCommand(), showCommand(), addCommand(), editCommand(), forgetCommand(), undoCommand(), eraseCommand(),
		exchangesCommand(), exportCommand(), importCommand(), openCommand(), mcpCommand(), tokenCommand(),
		caCommand(), keysCommand(), tenantCommand(), clockCommand(), backupCommand(), restoreCommand(), storeCommand(), completionCommand(), versionCommand(), manCommand(),
	}
}

// run runs one command line, and reports it if it is wrong.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "help":
			args = append(slices.Clone(args[1:]), "--help")
		case "--version":
			args = []string{"version"}
		}
	}
	root := newRoot(streams{getenv, stdin, stdout, stderr})
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	c, err := root.ExecuteContextC(ctx)
	if wrong, ok := errors.AsType[wrongCall](err); ok {
		fmt.Fprintf(stderr, "%s: %s\n", c.CommandPath(), wrong)
		printUsage(stderr, c)
		return usageError{string(wrong)}
	}
	if _, ok := errors.AsType[usageError](err); err != nil && !ok && c == root { // no command was found
		err = unknownCommand(args)
		fmt.Fprintf(stderr, "remora: %v\nRun 'remora help' for the commands.\n", err)
	}
	return err
}

// newRoot returns the command line for cobra.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use: "remora", SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(*cobra.Command, []string) error {
			overview(s.err)
			return usageError{"no command given"}
		},
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printUsage(s.out, c) })
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return wrongCall(err.Error()) })
	for _, c := range commands() {
		root.AddCommand(c.cobra(s))
	}
	return root
}

// unknownCommand names the first argument that is no flag.
func unknownCommand(args []string) error {
	name := args[slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })]
	var known []string
	for _, c := range commands() {
		known = append(known, c.name)
	}
	what := fmt.Sprintf("unknown command %q", name)
	if near := config.Nearest(name, known); near != "" {
		what += fmt.Sprintf("; did you mean %q?", near)
	}
	return usageError{what}
}

func printUsage(w io.Writer, c *cobra.Command) {
	if !c.HasParent() {
		overview(w)
		return
	}
	fmt.Fprintf(w, "%s%s.\n\nUsage: %s\n\nFlags:\n%s", strings.ToUpper(c.Short[:1]), c.Short[1:], c.UseLine(), c.Flags().FlagUsages())
}

func overview(w io.Writer) {
	fmt.Fprint(w, aboutProgram+"\nUsage: remora <command> [flags]\n\nCommands:\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(w, "  help        show this, or 'remora help <command>'\n\n"+aboutSettings)
}

const (
	aboutProgram  = "Remora rides along with LLM traffic and remembers: point an agent's base URL at it.\n"
	aboutSettings = `Settings come from defaults, a JSON file (--config, or REMORA_CONFIG, or config.json in the configuration directory),
REMORA_* variables and flags, each winning over the one before. docs/configuration.md lists them all.
Exit codes: 0 done, 1 failed, 2 called wrongly.
`
)
