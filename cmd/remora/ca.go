package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/proxy/forward"
)

func caCommand() command {
	return command{
		name:    "ca",
		summary: "make or show the certificate authority of the forward listener",
		usage:   "remora ca init [--force] | show | path | trust-help  [--config FILE]",
		define:  certificateAuthority,
		maxArgs: 1, words: []string{"init", "show", "path", "trust-help"},
	}
}

// certificateAuthority creates and shows the authority whose certificates
// intercepted clients get. Nothing is installed system-wide: the user
// configures each client that should trust it.
func certificateAuthority(f *pflag.FlagSet) runner {
	var o config.Overrides
	f.StringVar(&o.File, "config", "", "read settings from `file`")
	force := f.Bool("force", false, "with init: put a new authority in the place of the one that is there")
	return func(_ context.Context, s streams, args []string) error {
		verbs := map[string]func(streams, config.Config, bool) error{
			"init": initAuthority, "show": showAuthority, "path": printAuthorityPath, "trust-help": trustHelp,
		}
		if len(args) == 0 {
			return wrongCall("ca takes init, show, path or trust-help")
		}
		run, known := verbs[args[0]]
		if !known {
			return wrongCall(fmt.Sprintf("no such verb %q; ca takes init, show, path or trust-help", args[0]))
		}
		c, err := config.Load(o, s.getenv, config.Here(s.getenv))
		if err != nil {
			return err
		}
		if c.CACert == "" || c.CAKey == "" {
			return errors.New("no home directory to keep the certificate authority in: set forward.caCert and forward.caKey")
		}
		return run(s, c, *force)
	}
}

func initAuthority(s streams, c config.Config, force bool) error {
	var hosts []string
	for _, entry := range c.Forward.Intercept {
		i, err := forward.ParseIntercept(entry)
		if err != nil {
			return fmt.Errorf("forward.intercept: %w", err)
		}
		hosts = append(hosts, i.Host)
	}
	if !force {
		for _, file := range []string{c.CACert, c.CAKey} {
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s is there already; --force replaces it, and every client has to be told again", file)
			}
		}
	}
	cert, key, err := forward.CreateAuthority(hosts, time.Now())
	if err != nil {
		return err
	}
	// The key first: a certificate without its key would be trusted for
	// nothing.
	if err := replaceFile(c.CAKey, key, 0o600); err != nil {
		return err
	}
	if err := replaceFile(c.CACert, cert, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Made a certificate authority for %s.\n\n", strings.Join(hosts, ", "))
	return trustHelp(s, c, force)
}

// replaceFile writes content so that the file exists whole or not at all.
func replaceFile(name string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".remora-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // renamed by then, unless something failed
	_, err = io.Copy(f, bytes.NewReader(content))
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// loadAuthority reads the forward listener's authority. Both results are nil if
// none has been created.
func loadAuthority(c config.Config) (*forward.Authority, error) {
	cert, err := config.ReadRegular(c.CACert)
	if errors.Is(err, fs.ErrNotExist) || c.CACert == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := config.ReadRegular(c.CAKey)
	if err != nil {
		return nil, err
	}
	return forward.OpenAuthority(cert, key)
}

func requireAuthority(c config.Config) (*forward.Authority, error) {
	a, err := loadAuthority(c)
	if a == nil && err == nil {
		err = fmt.Errorf("there is no certificate authority at %s yet; 'remora ca init' makes one", c.CACert)
	}
	return a, err
}

func showAuthority(s streams, c config.Config, _ bool) error {
	a, err := requireAuthority(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "name:        %s\nfor:         %s\nuntil:       %s\nSHA-256:     %s\ncertificate: %s\nkey:         %s\n",
		a.Subject(), strings.Join(a.Hosts(), ", "), a.Expires().UTC().Format(time.DateOnly), a.Fingerprint(), c.CACert, c.CAKey)
	return nil
}

func printAuthorityPath(s streams, c config.Config, _ bool) error {
	if _, err := requireAuthority(c); err != nil {
		return err
	}
	fmt.Fprintln(s.out, c.CACert)
	return nil
}

// trustHelp prints how each kind of client learns about the authority. It is
// for the shell in which the agent runs: nothing is installed system-wide.
func trustHelp(s streams, c config.Config, _ bool) error {
	if _, err := requireAuthority(c); err != nil {
		return err
	}
	listen := c.Forward.Listen
	if listen == "" {
		listen = forward.DefaultConfig().Listen
	}
	fmt.Fprintf(s.out, `Run:

  remora serve --forward %[1]s

and start the agent with

  export HTTPS_PROXY=http://%[1]s

and the one of these that it reads:

  export NODE_EXTRA_CA_CERTS=%[2]s      # Claude Code and other Node.js programs
  export CODEX_CA_CERTIFICATE=%[2]s     # Codex
  export SSL_CERT_FILE=%[2]s            # Go, Rust and OpenSSL programs; replaces the system's list
  export REQUESTS_CA_BUNDLE=%[2]s       # Python with requests; replaces its list

A variable that replaces a list leaves the program unable to reach other sites; where it must, join the two:

  cat /etc/ssl/certs/ca-certificates.crt %[2]s > both.pem

The authority can vouch for %[3]s and for nothing else.
`, listen, c.CACert, strings.Join(interceptedHosts(c), ", "))
	return nil
}

func interceptedHosts(c config.Config) []string {
	if a, err := loadAuthority(c); err == nil && a != nil {
		return a.Hosts()
	}
	return nil
}
