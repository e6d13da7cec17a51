package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/export"
	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/recall/embed"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// Limits of what check waits for.
const (
	probeTimeout = 10 * time.Second
	liveTimeout  = 2 * time.Second
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
		failed := checkListen(ctx, s.err, c) + checkUpstreams(ctx, s.err, c) + checkEmbeddings(ctx, s.err, c) + checkForward(s.err, c) +
			checkTelemetry(ctx, s.err, s.getenv) + checkStore(ctx, s.err, c, *verify)
		if failed > 0 {
			return fmt.Errorf("check: %d failed", failed)
		}
		fmt.Fprintln(s.err, "check: all is well")
		return nil
	}
}

// checkListen tries the addresses of the listeners. One that is in use may be
// this very Remora's, but not another program's.
func checkListen(ctx context.Context, w io.Writer, c config.Config) (failed int) {
	for _, address := range []string{c.Server.Listen, c.Forward.Listen} {
		if address == "" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			if err = askLive(ctx, address); err == nil {
				fmt.Fprintf(w, "address %s: in use by a Remora that runs\n", address)
				continue
			}
			err = fmt.Errorf("in use, and not by a Remora that serves: %w", err)
		}
		if err != nil {
			failed++
			fmt.Fprintf(w, "address %s: FAILED: %v\n", address, err)
			continue
		}
		_ = listener.Close()
		fmt.Fprintf(w, "address %s: free\n", address)
	}
	return failed
}

// checkTelemetry creates the exporters that would be used, and sends nothing.
func checkTelemetry(ctx context.Context, w io.Writer, getenv func(string) string) (failed int) {
	tell := func(variable, step string) { fmt.Fprintf(w, "warning: %s can't be used (%s)\n", variable, step) }
	traces, metrics, logs, err := export.Check(ctx, getenv, tell)
	if err != nil {
		fmt.Fprintf(w, "telemetry: FAILED: %v\n", err)
		return 1
	}
	for _, signal := range [...]struct{ name, to string }{{"traces", traces}, {"metrics", metrics}, {"logs", logs}} {
		if signal.to != export.Off {
			fmt.Fprintf(w, "%s: %s\n", signal.name, signal.to)
		}
	}
	return 0
}

// checkUpstreams asks all upstreams at the same time and reports them in order.
func checkUpstreams(ctx context.Context, w io.Writer, c config.Config) (failed int) {
	results := make([]struct {
		text string
		err  error
	}, len(c.Proxy.Upstreams))
	var all sync.WaitGroup
	for i, u := range c.Proxy.Upstreams {
		all.Go(func() { results[i].text, results[i].err = probe(ctx, u, c.Proxy.Transport) })
	}
	all.Wait()
	for i, u := range c.Proxy.Upstreams {
		if err := results[i].err; err != nil {
			failed++
			fmt.Fprintf(w, "upstream %s (%s): FAILED: %v\n", u.Name, u.URL, err)
			continue
		}
		fmt.Fprintf(w, "upstream %s (%s): reachable, %s\n", u.Name, u.URL, results[i].text)
	}
	return failed
}

// checkForward reports how the forward listener would treat the hosts on its
// list.
func checkForward(w io.Writer, c config.Config) (failed int) {
	if c.Forward.Listen == "" || len(c.Forward.Intercept) == 0 {
		return 0
	}
	a, err := loadAuthority(c)
	if err != nil {
		fmt.Fprintf(w, "certificate authority: FAILED: %v\n", err)
		return 1
	}
	if a == nil {
		fmt.Fprintln(w, "certificate authority: none, so the forward listener gives no memory; 'remora ca init' makes one")
		return 0
	}
	fmt.Fprintf(w, "certificate authority: %s, for %s, until %s\n", a.Subject(), strings.Join(a.Hosts(), ", "), a.Expires().UTC().Format(time.DateOnly))
	return 0
}

// probe requests the base path, without credentials. Any HTTP answer will do:
// most are 401 or 404.
func probe(ctx context.Context, u httpclient.UpstreamConfig, t httpclient.TransportConfig) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	roots, err := u.Roots()
	if err != nil {
		return "", err
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	if t.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
		transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK { // its own words may quote a password
				return fmt.Errorf("the proxy answers %d", answer.StatusCode)
			}
			return nil
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL, nil)
	if err != nil {
		return "", err
	}
	start := time.Now()
	response, err := transport.RoundTrip(request) // follows no redirects
	way := wayOf(transport, request)
	if err != nil {
		if way != "" {
			err = fmt.Errorf("%w (%s)", err, strings.TrimPrefix(way, ", "))
		}
		return "", err
	}
	response.Body.Close()
	return fmt.Sprintf("answers %d over %s in %s%s", response.StatusCode, response.Proto, time.Since(start).Round(time.Millisecond), way), nil
}

// wayOf returns the environment's proxy for a request, without its credentials;
// "" = none.
func wayOf(t *http.Transport, r *http.Request) string {
	if t.Proxy == nil {
		return ""
	}
	via, err := t.Proxy(r)
	if err != nil || via == nil {
		return ""
	}
	return fmt.Sprintf(", through the proxy %s, which HTTP_PROXY or HTTPS_PROXY names", via.Host)
}

// checkEmbeddings requests the vector of a word, as recall would, if a server
// is configured.
func checkEmbeddings(ctx context.Context, w io.Writer, c config.Config) (failed int) {
	if c.Embeddings.URL == "" {
		return 0
	}
	c.Embeddings.QueryTimeout = probeTimeout // a server may have to load its model first
	client, err := embed.New(c.Embeddings, nil)
	if err != nil {
		fmt.Fprintf(w, "embeddings: FAILED: %v\n", err)
		return 1
	}
	defer client.Close()
	start := time.Now()
	v, err := client.Query(ctx, "hello")
	if err != nil {
		fmt.Fprintf(w, "embeddings %s: FAILED: %v\n", client.Host(), err)
		return 1
	}
	fmt.Fprintf(w, "embeddings %s: model %s answers with %d dimensions in %s\n", client.Host(), c.Embeddings.Model, len(v), time.Since(start).Round(time.Millisecond))
	return 0
}

// checkStore reports whether memory would work.
func checkStore(ctx context.Context, w io.Writer, c config.Config, verify bool) (failed int) {
	told, err := storeState(ctx, c, verify)
	if err != nil {
		fmt.Fprintf(w, "store %s: FAILED: %v\n", c.Storage.Dir, err)
		return 1
	}
	fmt.Fprintf(w, "store %s: %s\n", c.Storage.Dir, told)
	return 0
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
func probeStore(ctx context.Context, c config.Config, look func(openStore) error) (process.Status, error) {
	c.Store.SetAside, c.Store.ReserveBytes = false, 0
	s := newStore(c, slog.New(slog.DiscardHandler))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	last, err := opened(ctx, s)
	if err == nil && last.Open {
		err = look(s)
	}
	stop()
	return last, errors.Join(err, <-ended)
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
	if err := askLive(ctx, address); err != nil {
		return fmt.Errorf("not alive: %w", err)
	}
	fmt.Fprintln(w, "alive")
	return nil
}

// askLive returns nil if a Remora answers on address.
func askLive(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	switch ip := net.ParseIP(host); { // a wildcard address includes this one
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + listener.LivePath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !listener.IsLive(response) {
		return fmt.Errorf("%s answers %d, and not as a Remora does", url, response.StatusCode)
	}
	return nil
}
