package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/cmd/remora/agents"
	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/doctor"
	"github.com/remora-proxy/remora/cmd/remora/wrap"
	"github.com/remora-proxy/remora/storage/process"
)

// The commands that point agents at Remora.

// envCommand prints how an agent is pointed at Remora.
func envCommand() command {
	return command{
		name:    "env",
		summary: "print what points an agent at Remora",
		usage: `remora env                               the agents that it knows
       remora env AGENT [--shell sh|fish|powershell]  lines for the shell, or for the agent's file
       with [--listen ADDRESS] [--data DIRECTORY] [--config FILE]

In a shell: eval "$(remora env claude)". The address is that of the Remora that runs, or the configured one.`,
		maxArgs: 1, words: agents.Names(),
		define: func(f *pflag.FlagSet) runner {
			flags := addressFlags(f)
			shell := f.String("shell", "", "write lines for this `shell`: "+strings.Join(agents.Shells(), ", ")+" (default: that of SHELL)")
			return func(ctx context.Context, s streams, args []string) error {
				if *shell == "" {
					*shell = agents.ShellOf(s.getenv("SHELL"), runtime.GOOS)
				}
				if !slices.Contains(agents.Shells(), *shell) {
					return wrongCall("--shell takes one of " + strings.Join(agents.Shells(), ", "))
				}
				if len(args) == 0 {
					listAgents(s.out)
					return nil
				}
				agent, err := agentNamed(args[0])
				if err != nil {
					return err
				}
				base, _, err := remoraAt(ctx, s, flags)
				if err != nil {
					return err
				}
				printAgent(s, agent.At(base), *shell)
				return nil
			}
		},
	}
}

// addressFlags defines the flags that say where Remora listens.
func addressFlags(f *pflag.FlagSet) *config.Overrides {
	o := storeFlags(f)
	f.StringVar(&o.Listen, "listen", "", "Remora listens on `address`")
	return o
}

func agentNamed(name string) (agents.Agent, error) {
	agent, ok := agents.Named(name)
	if ok {
		return agent, nil
	}
	what := fmt.Sprintf("unknown agent %q", name)
	if near := config.Nearest(name, agents.Names()); near != "" {
		what += fmt.Sprintf("; did you mean %q?", near)
	}
	return agent, wrongCall(what + "; 'remora env' lists them")
}

func listAgents(w io.Writer) {
	for _, a := range agents.All() {
		how := a.File
		for _, v := range a.Variables {
			how = v.Name
		}
		fmt.Fprintf(w, "%-14s %-35s %s\n", a.Name, a.Title, how)
	}
}

// printAgent writes what is to be copied to the standard output, and where it
// goes to the standard error.
func printAgent(s streams, a agents.Agent, shell string) {
	if a.File != "" {
		where := "in " + a.File
		if a.Note != "" {
			where += ", " + a.Note
		}
		fmt.Fprintln(s.err, where+":")
		fmt.Fprintln(s.out, a.Snippet)
	} else if a.Note != "" {
		fmt.Fprintln(s.err, a.Note)
	}
	for _, v := range a.Variables {
		fmt.Fprintln(s.out, v.Line(shell))
	}
}

// remoraAt returns the URL for agents of the Remora that runs with the store, or
// the configured one. running is what is known of the former: its address.
func remoraAt(ctx context.Context, s streams, flags *config.Overrides) (base string, c config.Config, err error) {
	c, err = config.Load(*flags, s.getenv, config.Here(s.getenv))
	if err != nil {
		return "", c, err
	}
	if flags.Listen == "" {
		if listen := runningListen(ctx, c); listen != "" {
			c.Server.Listen = listen
		}
	}
	base, err = agents.Base(c.Server.Listen)
	return base, c, err
}

// maxAsked limits how long a Remora that runs is asked where it listens, once
// it is connected to.
const maxAsked = 2 * time.Second

// runningListen returns the address of the Remora that runs with the store of c,
// or "" if none answers.
func runningListen(ctx context.Context, c config.Config) string {
	running, err := process.Dial(c.Storage.Dir, process.FrontSocket, readBuild().String())
	if err != nil {
		return ""
	}
	defer func() { _ = running.Close() }()
	ctx, cancel := context.WithTimeout(ctx, maxAsked)
	defer cancel()
	transport := client.Pipe{Call: func(ctx context.Context, args []byte, out io.Writer) error {
		_, err := running.Admin(ctx, httpName, args, out)
		return err
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, client.Local+"/v1/settings", nil)
	if err != nil {
		return ""
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct{ Settings []api.Setting }
	if json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&answer) != nil {
		return ""
	}
	i := slices.IndexFunc(answer.Settings, func(s api.Setting) bool { return s.Key == "listen" })
	if i < 0 {
		return ""
	}
	return answer.Settings[i].Value
}

// wrapCommand runs an agent through Remora.
func wrapCommand() command {
	return command{
		name:    "wrap",
		summary: "run an agent through Remora, which is started if none runs",
		usage: `remora wrap [--agent AGENT] [flags as for serve] -- PROGRAM [ARGUMENTS]

The program gets the variables that 'remora env' prints. Without --agent, its name says which agent it is.`,
		minArgs: 1, maxArgs: maxWords, files: true,
		define: func(f *pflag.FlagSet) runner {
			f.SetInterspersed(false) // flags behind the program are its own
			flags := configFlags(f)
			name := f.String("agent", "", "the program is this `agent`, as remora env lists them")
			return func(ctx context.Context, s streams, args []string) error {
				return wrapAgent(ctx, s, flags, *name, args)
			}
		},
	}
}

func wrapAgent(ctx context.Context, s streams, flags *config.Overrides, name string, args []string) error {
	agent, err := wrapped(name, args[0])
	if err != nil {
		return err
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	base, c, err := remoraAt(ctx, s, flags)
	if err != nil {
		return err
	}
	agent = agent.At(base)
	where, err := url.Parse(base)
	if err != nil {
		return err
	}
	env, replaced, err := wrap.Environment(os.Environ(), agent, where.Hostname())
	if err != nil {
		return err
	}
	release, err := ensureRemora(ctx, s, c, flags, base)
	if err != nil {
		return err
	}
	defer release()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, append(slices.Clone(agent.Arguments), args[1:]...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.in, s.out, s.err
	for _, name := range replaced {
		fmt.Fprintf(s.err, "remora: %s had another value; for this run it leads to Remora, and from there to its upstreams\n", name)
	}
	cmd.Env = env
	code, err := wrap.Run(ctx, cmd)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitStatus(code)
	}
	return nil
}

// wrapped returns the agent that a program is, by the name that was given for it
// or by its own.
func wrapped(name, program string) (agents.Agent, error) {
	if name == "" {
		agent, ok := agents.Of(program)
		if !ok {
			return agent, wrongCall(fmt.Sprintf("%q is no agent that is known: --agent names one, and 'remora env' lists them", filepath.Base(program)))
		}
		name = agent.Name
	}
	agent, err := agentNamed(name)
	if err == nil && !agent.Wrappable() {
		err = fmt.Errorf("%s reads its file alone: 'remora env %s' prints what goes there", agent.Title, agent.Name)
	}
	return agent, err
}

// ensureRemora returns once a Remora answers at base, which it starts if there
// is none. release gives it up.
func ensureRemora(ctx context.Context, s streams, c config.Config, flags *config.Overrides, base string) (release func(), err error) {
	dir, err := wrapDirectory(c)
	if err != nil {
		return nil, err
	}
	of := strings.NewReplacer(":", "-", "[", "", "]", "").Replace(strings.TrimPrefix(base, "http://"))
	lock, log := filepath.Join(dir, "wrap-"+of+".lock"), filepath.Join(dir, "wrap-"+of+".log")
	if release, err = wrap.Hold(ctx, lock); err != nil {
		return nil, err
	}
	if err := startRemora(ctx, s, c, flags, lock, log); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// startRemora starts a Remora in the background, unless one answers at the
// address. It runs as long as somebody holds lock, and logs to log.
func startRemora(ctx context.Context, s streams, c config.Config, flags *config.Overrides, lock, log string) error {
	alive := func(ctx context.Context) error { return doctor.AskLive(ctx, c.Server.Listen) }
	if alive(ctx) == nil {
		tellOfRunning(ctx, s.err, c, flags)
		return nil
	}
	self, err := programPath(os.Args[0])
	if err != nil {
		return err
	}
	server := &exec.Cmd{Path: self, Args: []string{"remora", "serve", "--while-locked", lock}, Env: os.Environ()}
	for _, given := range [...][2]string{
		{"--config", flags.File}, {"--data", flags.Data}, {"--listen", flags.Listen}, {"--upstream", flags.Upstream}, {"--forward", flags.Forward},
	} {
		if given[1] != "" {
			server.Args = append(server.Args, given[0], given[1])
		}
	}
	if err := wrap.Start(ctx, server, log, alive); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "remora: started for this run, its log is %s\n", log)
	return nil
}

// tellOfRunning writes what the Remora that answers at the address of c does not
// have from this command: flags, and perhaps the data directory.
func tellOfRunning(ctx context.Context, out io.Writer, c config.Config, flags *config.Overrides) {
	var given []string
	for _, flag := range [...][2]string{{"--upstream", flags.Upstream}, {"--config", flags.File}, {"--forward", flags.Forward}} {
		if flag[1] != "" {
			given = append(given, flag[0])
		}
	}
	if len(given) > 0 {
		fmt.Fprintf(out, "remora: one runs at %s already: %s of this command does not change it\n", c.Server.Listen, strings.Join(given, ", "))
	}
	if process.Supported && !serves(ctx, c) {
		fmt.Fprintf(out, "remora: the one at %s does not answer for the data directory %s: it may use another, or be that of another user, who then sees what this agent sends\n", c.Server.Listen, c.Storage.Dir)
	}
}

// maxFront limits how long a Remora that has just been started is waited for
// until it answers for its store.
const maxFront = time.Second

// serves reports whether the Remora that uses the store of c listens at the
// address of c, as far as that can be told.
func serves(ctx context.Context, c config.Config) bool {
	ctx, cancel := context.WithTimeout(ctx, maxFront)
	defer cancel()
	for {
		if listen := runningListen(ctx, c); listen != "" {
			return sameAddress(listen, c.Server.Listen)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sameAddress reports whether agents reach both addresses at the same URL.
func sameAddress(a, b string) bool {
	one, err := agents.Base(a)
	other, err2 := agents.Base(b)
	local := strings.NewReplacer("//localhost:", "//127.0.0.1:")
	return err == nil && err2 == nil && local.Replace(one) == local.Replace(other)
}

// wrapDirectory returns where the locks and logs of Remoras in the background
// are. It makes the directory.
func wrapDirectory(c config.Config) (string, error) {
	if cache, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(cache, "remora")
		return dir, wrap.MakeDirectory(dir)
	}
	if c.Storage.Dir == "" {
		return "", errors.New("no home directory to keep the log of Remora in")
	}
	return c.Storage.Dir, os.MkdirAll(c.Storage.Dir, 0o700)
}

// maxOffered is how many agents the first start offers lines for.
const maxOffered = 3

// offerAgents prints lines that point installed agents at this Remora, for the
// person who has started it for the first time. They are not for a log.
func offerAgents(out io.Writer, s *system, getenv func(string) string) {
	base, err := agents.Base(s.server.Addr().String())
	if err != nil || !isTerminal(out) || s.config.Proxy.Identity.Container {
		return
	}
	shell := agents.ShellOf(getenv("SHELL"), runtime.GOOS)
	flags := ""
	for _, word := range flagsOf(s.config, s.server.Addr().String(), getenv) {
		flags += " " + agents.Word(word, shell)
	}
	writeOffer(out, base, flags, shell, exec.LookPath)
}

// flagsOf returns the flags with which commands find a Remora that has the
// configuration c and listens on addr, as other terminals don't have its flags
// and variables: what differs from the configuration that they find without.
func flagsOf(c config.Config, addr string, getenv func(string) string) (flags []string) {
	elsewhere := func(name string) string {
		if strings.HasPrefix(name, "REMORA_") {
			return ""
		}
		return getenv(name)
	}
	where := config.Here(elsewhere)
	found, _ := config.Load(config.Overrides{}, elsewhere, where) // as far as it can be read
	absolute := func(path string) string {
		if full, err := filepath.Abs(path); err == nil {
			return full
		}
		return path
	}
	if c.File != "" && absolute(c.File) != absolute(found.File) {
		flags = append(flags, "--config", absolute(c.File))
		found, _ = config.Load(config.Overrides{File: c.File}, elsewhere, where)
	}
	if _, port, _ := net.SplitHostPort(c.Server.Listen); port != "0" {
		addr = c.Server.Listen
	}
	if !sameAddress(addr, found.Server.Listen) {
		flags = append(flags, "--listen", addr)
	}
	if c.Storage.Dir != "" && absolute(c.Storage.Dir) != absolute(found.Storage.Dir) {
		flags = append(flags, "--data", absolute(c.Storage.Dir))
	}
	return flags
}

// writeOffer writes flags behind each command of its own.
func writeOffer(out io.Writer, base, flags, shell string, look func(string) (string, error)) {
	fmt.Fprintln(out, "To send an agent's requests through it, in another terminal:")
	found := agents.Installed(look)
	for _, a := range found[:min(len(found), maxOffered)] {
		if a.Wrappable() {
			fmt.Fprintf(out, "  remora wrap%s -- %s\n", flags, a.Programs[0])
		} else {
			fmt.Fprintf(out, "  remora env %s%s\n", a.Name, flags)
		}
	}
	if len(found) == 0 {
		a, _ := agents.Named("openai-sdk")
		for _, v := range a.At(base).Variables {
			fmt.Fprintf(out, "  %s\n", v.Line(shell))
		}
	}
	fmt.Fprintln(out, "remora env lists what else it knows.")
}
