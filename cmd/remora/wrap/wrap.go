// Package wrap runs an agent so that its requests go through Remora, and keeps
// a Remora in the background for as long as agents use it.
//
// The users of such a Remora hold a shared lock on a file. It ends once nobody
// holds one. A lock ends with its process, however that ends.
//
// An agent has the standard streams, the directory and the environment of this
// process, with the variables of its recipe. Nothing is read of what it says, no
// key is looked at, and nothing is written to its files.
package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora/agents"
	"github.com/remora-proxy/remora/cmd/remora/signals"
)

// Environment returns environ for one run of an agent whose address is filled
// in. replaced are the names of variables that had another value. A variable
// that holds a whole configuration is not replaced: it is an error that it is set.
//
// Where a proxy is set, the agent's requests to this machine don't go through
// it: host is added to NO_PROXY and no_proxy, which get what either of them had.
func Environment(environ []string, a agents.Agent, host string) (env, replaced []string, err error) {
	env = slices.Clone(environ)
	for _, v := range a.Inline {
		if old := lookup(env, v.Name); old != "" && old != v.Value {
			return nil, nil, fmt.Errorf("%s is set, and what it holds would be lost: unset it for this run, "+
				"or add to it what 'remora env %s' prints and run the agent without wrap", v.Name, a.Name)
		}
		env = set(env, v.Name, v.Value)
	}
	for _, v := range a.Variables {
		if old := lookup(env, v.Name); old != "" && old != v.Value {
			replaced = append(replaced, v.Name)
		}
		env = set(env, v.Name, v.Value)
	}
	if !slices.ContainsFunc(agents.ProxyVariables, func(name string) bool { return lookup(env, name) != "" }) {
		return env, replaced, nil
	}
	except := exceptions(lookup(env, "NO_PROXY")+","+lookup(env, "no_proxy"), host)
	return set(set(env, "NO_PROXY", except), "no_proxy", except), replaced, nil
}

// exceptions returns the hosts of list and host, each once, or "*" if that is
// one of them: some programs take it only if it stands alone.
func exceptions(list, host string) string {
	var hosts []string
	for _, h := range append(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }), host) {
		if h == "*" {
			return h
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return strings.Join(hosts, ",")
}

func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- { // the last one counts
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

func set(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

// Run runs an agent to its end and returns its exit code. Signals to this
// process are passed on, but for those that the agent's terminal sends to both.
// An agent that a signal has ended has the code that shells give it.
func Run(ctx context.Context, agent *exec.Cmd) (code int, err error) {
	signals.Release(ctx)
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, append(passed, fromTerminal...)...)
	defer signal.Stop(heard)
	if err := agent.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", agent.Path, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	for {
		select {
		case s := <-heard:
			if !slices.Contains(fromTerminal, s) || !signals.Foreground() {
				_ = agent.Process.Signal(s) // it may have ended
			}
		case err := <-ended:
			if failed, ok := errors.AsType[*exec.ExitError](err); ok {
				return exitCode(failed.ProcessState), nil
			}
			return 0, err
		}
	}
}

// Limits of waiting for a Remora in the background.
const (
	tick = 50 * time.Millisecond
	// maxStart limits how long one may take until it answers.
	maxStart = 30 * time.Second
	// maxEnd limits how long one that ends is waited for: it finishes what is
	// in progress.
	maxEnd = 90 * time.Second
)

// AwaitUnused returns once nobody holds the lock on the file at path. Until
// release is called, nobody else can. It returns ctx's error if that ends first.
func AwaitUnused(ctx context.Context, path string) (release func(), err error) {
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		if release, err := lockAlone(path); err != nil || release != nil {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-poll.C:
		}
	}
}

// Hold takes a shared lock on the file at path, which it makes if it is missing.
// It waits for a Remora that is about to end. release gives the lock back.
func Hold(ctx context.Context, path string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxEnd)
	defer cancel()
	for {
		release, err := lockShared(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if release != nil {
			return release, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: the Remora that uses it does not end: %w", path, ctx.Err())
		case <-time.After(tick):
		}
	}
}

// Start starts a Remora in the background, with what it writes going to the file
// log, and returns once alive returns nil. The process outlives this one, and
// has only those of its variables that a Remora reads.
func Start(ctx context.Context, server *exec.Cmd, log string, alive func(context.Context) error) error {
	f, err := openOwn(log, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("open the log of Remora: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("empty the log of Remora: %w", err)
	}
	server.Stdout, server.Stderr = f, f
	server.Env = slices.DeleteFunc(server.Env, func(kv string) bool { return !handedOn(kv) })
	detach(server)
	if err := server.Start(); err != nil {
		return fmt.Errorf("start Remora: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // its log says why
	}()
	ctx, cancel := context.WithTimeout(ctx, maxStart)
	defer cancel()
	for {
		if alive(ctx) == nil {
			return nil
		}
		select {
		case <-ended: // perhaps because another one got the port
			if alive(ctx) == nil {
				return nil
			}
			return fmt.Errorf("start Remora: it has ended; %s says why", log)
		case <-ctx.Done():
			return fmt.Errorf("start Remora: it does not answer (%w); its log is %s", ctx.Err(), log)
		case <-time.After(tick):
		}
	}
}

// Names of variables, in upper case, that a Remora in the background gets.
var (
	handedOnStarts = []string{"REMORA_", "OTEL_", "XDG_", "LC_"}
	handedOnNames  = []string{
		"HOME", "USER", "PATH", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "CONTAINER", "KUBERNETES_SERVICE_HOST",
		"SYSTEMROOT", "WINDIR", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
		// Those of Go's runtime, by name: GOOGLE_API_KEY begins with GO, too.
		"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR", "GORACE",
	}
)

// handedOn reports whether a Remora in the background gets a variable. It gets
// those that it or the system's libraries read, and nothing else: any other may
// be a credential, and the process lives on. REMORA_SERVER is for clients, and
// those of systemd are for the service that this process may be part of.
func handedOn(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	name = strings.ToUpper(name)
	return name != "REMORA_SERVER" && (slices.Contains(handedOnNames, name) ||
		slices.ContainsFunc(handedOnStarts, func(start string) bool { return strings.HasPrefix(name, start) }))
}
