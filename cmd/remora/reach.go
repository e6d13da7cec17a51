package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/client"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/storage/process"
)

// How commands reach a control plane: of a server, of the Remora that runs on
// this machine, or of one that is assembled for the command alone.

// need is what a verb needs where no Remora runs.
type need int

const (
	needIndex  need = iota // what is remembered, and its index
	needAll                // everything behind the listeners
	needStore              // everything, and a new store if there is none
	needRemora             // one that runs
)

// reach is how a control plane is reached, by flags and environment.
type reach struct {
	flags             *config.Overrides
	of                *selection
	server, tokenFile string
	json              bool
}

// reachFlags defines the flags that all verbs of the control plane have.
func reachFlags(f *pflag.FlagSet) *reach {
	r := &reach{flags: storeFlags(f), of: selectionFlags(f)}
	serverFlags(f, r)
	return r
}

// serverFlags defines the flags that name a server.
func serverFlags(f *pflag.FlagSet, r *reach) {
	f.StringVar(&r.server, "server", "", "ask the control plane at this `URL` (default: REMORA_SERVER, or the store of this machine)")
	f.StringVar(&r.tokenFile, "token-file", "", "with --server: the token is in `file` (default: REMORA_API_TOKEN, or REMORA_API_TOKEN_FILE)")
}

// remote returns the server to ask; "" = the store of this machine.
func (r *reach) remote(s streams) (string, error) {
	own := r.flags.Data != "" || r.flags.File != ""
	switch {
	case r.server != "" && own:
		return "", wrongCall("one of --server, and --data or --config")
	case r.server != "":
		return r.server, nil
	case own:
		return "", nil
	}
	return s.getenv("REMORA_SERVER"), nil
}

// run runs a verb.
func (r *reach) run(ctx context.Context, s streams, n need, v client.Verb) error {
	err := r.do(ctx, s, n, v)
	if wrong, ok := errors.AsType[client.UsageError](err); ok {
		return wrongCall(wrong)
	}
	return err
}

func (r *reach) do(ctx context.Context, s streams, n need, v client.Verb) error {
	server, err := r.remote(s)
	if err != nil {
		return err
	}
	if server != "" {
		base, token, err := r.credentials(s, server)
		if err != nil {
			return err
		}
		return v.Run(ctx, r.session(s, client.Remote(), base, token))
	}
	c, err := sealedConfig(r.flags, s)
	if err != nil {
		return err
	}
	return r.local(ctx, s, c, n, func(t http.RoundTripper) error { return v.Run(ctx, r.session(s, t, client.Local, "")) })
}

// session returns what a verb runs with.
func (r *reach) session(s streams, t http.RoundTripper, base, token string) *client.Session {
	return &client.Session{
		Client: client.New(t, base, token, r.of.target()), Console: client.NewConsole(s.in, s.out, s.err, s.getenv), JSON: r.json,
	}
}

// credentials returns the base of a server's URLs, and the token for it. A
// token is never an argument: others would see it in the list of processes.
func (r *reach) credentials(s streams, server string) (base, token string, err error) {
	if base, err = client.Server(server); err != nil {
		return "", "", wrongCall("--server " + err.Error())
	}
	file := r.tokenFile
	if file == "" {
		if token = strings.TrimSpace(s.getenv("REMORA_API_TOKEN")); token != "" {
			return base, token, nil
		}
		file = s.getenv("REMORA_API_TOKEN_FILE")
	}
	if file == "" {
		return "", "", errors.New("--server takes a token: in --token-file, REMORA_API_TOKEN or REMORA_API_TOKEN_FILE; remora token prints that of a store")
	}
	token, err = readToken(file)
	return base, token, err
}

// local gives do a transport to the Remora that runs here, or to one that is
// assembled for as long as do takes.
func (r *reach) local(ctx context.Context, s streams, c config.Config, n need, do func(http.RoundTripper) error) (err error) {
	switch err := thereIsAStore(c); {
	case err == nil:
	case n == needRemora:
		return fmt.Errorf("no Remora runs with %s: remora serve starts one", c.Storage.Dir)
	case n != needStore:
		return err
	default:
		fmt.Fprintf(s.err, "there was no store in %s: it is made\n", c.Storage.Dir)
	}
	running, away := process.Dial(c.Storage.Dir, process.FrontSocket, readBuild().String())
	if away == nil {
		defer func() { err = errors.Join(err, running.Close()) }()
		return do(client.Pipe{Call: func(ctx context.Context, args []byte, out io.Writer) error {
			_, err := running.Admin(ctx, httpName, args, out)
			return err
		}})
	}
	if n == needRemora {
		return fmt.Errorf("no Remora runs with %s: remora serve starts one (%w)", c.Storage.Dir, away)
	}
	return alone(ctx, c, s, away, n, func(sys *system) error {
		return do(client.Pipe{Call: func(ctx context.Context, args []byte, out io.Writer) error {
			_, err := sys.command(ctx, httpName, args, out)
			return err
		}})
	})
}

// alone runs what is behind the listeners for as long as do takes. away is why
// no running Remora was asked.
func alone(ctx context.Context, c config.Config, s streams, away error, n need, do func(*system) error) error {
	c.Store.SetAside, c.Store.ReserveBytes, c.Log.Level = false, 0, "warn"
	if n == needIndex {
		c.Store.Isolation = config.IsolationInline
	}
	sys, err := assemble(c, newLogger(c.Log, s.err, isTerminal(s.err)), export.Telemetry{})
	if err != nil {
		return err
	}
	stages := sys.behind()
	if n == needIndex {
		stages = []stage{{"recall", sys.recall, closePatience}, {"store", sys.store.Run, closePatience}}
	}
	return keepOwners(c, func() (err error) {
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan error, 1)
		go func() { ended <- runStages(running, sys.log, stages...) }()
		defer func() {
			stop()
			err = errors.Join(err, <-ended)
		}()
		status, err := opened(ctx, sys.store)
		if err != nil {
			return err
		}
		if !status.Open {
			err := errors.New(status.Reason)
			if locked(status.Reason) { // by one that could not be reached
				err = errors.Join(err, away)
			}
			return err
		}
		return do(sys)
	})
}

// tokenCommand prints the admin token.
func tokenCommand() command {
	return command{
		name:    "token",
		summary: "print the admin token of the control plane",
		usage: `remora token [--data DIRECTORY] [--config FILE]

It opens everything that is remembered. remora serve makes one at its first start, unless api.token sets it.`,
		define: func(f *pflag.FlagSet) runner {
			flags := storeFlags(f)
			return func(_ context.Context, s streams, _ []string) error {
				c, err := config.Load(*flags, s.getenv, config.Here(s.getenv))
				if err != nil {
					return err
				}
				token := c.API.Token.Reveal()
				if token == "" {
					token, err = readToken(filepath.Join(c.Storage.Dir, tokenFile))
				}
				if errors.Is(err, os.ErrNotExist) {
					return fmt.Errorf("there is no admin token in %s yet: remora serve makes one", c.Storage.Dir)
				}
				if err == nil {
					fmt.Fprintln(s.out, token)
				}
				return err
			}
		},
	}
}

// confirm asks for what can't be undone. Where nobody can be asked, --yes has
// to say it.
func confirm(s streams, yes bool, what string) error {
	if yes {
		return nil
	}
	if !client.IsTerminal(s.in) {
		return wrongCall(what + " can't be undone: say --yes as well")
	}
	fmt.Fprintf(s.err, "%s can't be undone. Type yes to go on: ", strings.ToUpper(what[:1])+what[1:])
	var answer string
	if _, err := fmt.Fscanln(s.in, &answer); err != nil || !strings.EqualFold(answer, "yes") {
		return errors.New("nothing was done")
	}
	return nil
}
