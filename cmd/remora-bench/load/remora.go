package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// Names inside the data of one Remora, so that a copy of the directory is a
// copy of the memory with its key.
const (
	remoraData = "data"
	remoraKey  = "key"
)

// remoraConfig is the configuration of a Remora under measurement: its defaults
// but for the log, the limit of turns per user, which a benchmark of one user
// would only measure, and a fixed tenant, since the default depends on the
// machine.
func remoraConfig(addr string, s remoraSetup) ([]byte, error) {
	type object = map[string]any
	settings := object{
		"listen":    addr,
		"upstreams": []object{{"name": "mock", "url": s.upstream, "caFile": s.caFile, "paths": []string{"/"}}},
		"identity":  object{"tenant": "bench"},
		"storage":   object{"dir": filepath.Join(s.dir, remoraData), "keyFile": filepath.Join(s.dir, remoraKey)},
		"persist":   object{"turnsPerSecond": 0},
		"log":       object{"level": s.logLevel, "format": "json"},
	}
	if s.auditAtOnce {
		settings["persist"] = object{"turnsPerSecond": 0, "audit": object{"interval": "100ms", "debounce": "100ms"}}
	}
	if s.control != "" {
		settings["api"] = object{"listen": s.control}
	}
	if s.health != "" {
		settings["health"] = object{"listen": s.health}
	}
	if s.forward != "" {
		settings["forward"] = object{
			"intercept": []string{forwardHost + "=mock"}, "caCert": s.authority(), "caKey": filepath.Join(s.dir, "ca.key"),
		}
	}
	return json.MarshalIndent(settings, "", "  ")
}

// remoraSetup is a Remora to be started.
type remoraSetup struct {
	name     string
	dir      string // takes everything that it keeps
	logLevel string
	upstream string // URL
	caFile   string // of the upstream's authority; "" = it speaks plain HTTP
	forward  string // address of the forward listener; "" = none
	control  string // address of the control plane; "" = the default one
	health   string // address of the health listener; "" = none
	binary   string // "" = the one under measurement
	env      []string

	// auditAtOnce has turns audited as they come, so that what starts from a
	// copy of these data has none to catch up on.
	auditAtOnce bool
}

// authority is where the certificate of the forward listener's authority is.
func (s remoraSetup) authority() string { return filepath.Join(s.dir, "ca.pem") }

// Log levels of Remora. At info it writes a line for each exchange, and its
// counters when it ends.
const (
	logInfo = "info"
	logWarn = "warn"
)

// startRemora runs `remora serve` with only the reverse listener, in front of
// the mock upstream.
func (b *bed) startRemora(ctx context.Context, name, dir, logLevel string) (*process, string, error) {
	return b.serveRemora(ctx, remoraSetup{name: name, dir: dir, logLevel: logLevel, upstream: "http://" + b.upstream})
}

// serveRemora runs `remora serve` and returns the address of its reverse
// listener, a loopback port of its own. The forward listener, if there is one,
// is open by then too.
func (b *bed) serveRemora(ctx context.Context, s remoraSetup) (*process, string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make directory: %w", err)
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	settings, err := remoraConfig(addr, s)
	if err != nil {
		return nil, "", fmt.Errorf("encode configuration: %w", err)
	}
	config := filepath.Join(s.dir, "config.json")
	if err := os.WriteFile(config, settings, 0o600); err != nil {
		return nil, "", fmt.Errorf("write configuration: %w", err)
	}
	binary := cmp.Or(s.binary, b.remora)
	if _, err := os.Stat(binary); err != nil {
		return nil, "", fmt.Errorf("find remora (build it next to remora-bench, or name it with -remora): %w", err)
	}
	args := []string{"serve", "--config", config}
	if s.forward != "" {
		if err := b.makeAuthority(ctx, config, s.dir); err != nil {
			return nil, "", err
		}
		args = append(args, "--forward", s.forward)
	}
	p, err := b.start(ctx, s.name, binary, args, append(remoraEnv(s.dir), s.env...))
	if err != nil {
		return nil, "", err
	}
	return p, addr, waitServing(ctx, p, addr)
}

// remoraEnv keeps settings of the caller's environment out of the measurement
// and stray files inside dir.
func remoraEnv(dir string) []string {
	env := []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir, "XDG_STATE_HOME=" + dir}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "REMORA_") || strings.HasPrefix(name, "OTEL_") {
			env = append(env, name+"=")
		}
	}
	return env
}

// freeAddress returns a loopback address that was free a moment ago. Its port
// is below those that a system assigns automatically, which another program
// could get before it is used.
func freeAddress() (string, error) {
	const first, end = 10 << 10, 32 << 10
	var l net.Listener
	err := errors.New("none tried")
	for try := 0; err != nil && try < 100; try++ {
		l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(end-first)))
	}
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// waitServing waits until a request through addr is answered and memory is on:
// a store that has just been started opens while the traffic already passes.
func waitServing(ctx context.Context, p *process, addr string) error {
	deadline := time.Now().Add(processStart)
	var status string
	var err error
	for time.Now().Before(deadline) {
		if status, err = probe(ctx, addr); err == nil && status != "unavailable" && status != "timeout" {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %w\n%s", p.name, errors.Join(p.err), strings.Join(p.log(), "\n"))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err == nil {
		err = fmt.Errorf("X-Remora-Status is %q", status)
	}
	return fmt.Errorf("%s does not serve on %s within %v: %w\n%s", p.name, addr, processStart, err, strings.Join(p.log(), "\n"))
}

// probe asks as a user of its own and returns the X-Remora-Status.
func probe(ctx context.Context, addr string) (status string, err error) {
	c, err := dialClient(ctx, route{addr: addr}, time.Now().Add(5*time.Second), nil)
	if err != nil {
		return "", err
	}
	defer c.close()
	r, err := c.ask(addr, "probe", "read", "Does it work?")
	return string(r.remora), err
}

// ask sends one short chat completion request with a single message and reads
// the answer, which must be a 200.
func (c *client) ask(host, user, memory, message string) (response, error) {
	body := scriptPrefix + `0-0-0","messages":[{"role":"user","content":"` + jsonText(message) + `"}]}`
	_, err := fmt.Fprintf(c.conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nX-Remora-User: %s\r\nX-Remora-Memory: %s\r\nContent-Length: %d\r\n\r\n%s",
		host, benchKey, user, memory, len(body), body)
	if err != nil {
		return response{}, fmt.Errorf("send: %w", err)
	}
	r, err := c.receive()
	if err == nil && r.status != 200 {
		err = fmt.Errorf("status %d", r.status)
	}
	return r, err
}

// introduce has every user of a target with memory ask once, so that what is
// measured is not how long a user's memories take to load.
func (b *bed) introduce(ctx context.Context, t target, users int) error {
	if t.memory == "" || t.memory == remoraTargets[targetPass] || b.introduced[t.addr] >= users {
		return nil
	}
	c, err := dialClient(ctx, t.route, time.Now().Add(time.Minute), nil)
	if err != nil {
		return err
	}
	defer c.close()
	for u := b.introduced[t.addr]; u < users; u++ {
		if _, err := c.ask(t.addr, fmt.Sprintf("user-%04d", u), "read", "Does it work?"); err != nil {
			return fmt.Errorf("introduce user %d: %w", u, err)
		}
	}
	b.introduced[t.addr] = users
	return nil
}

// remoraCounters is what a Remora counted by its end: turns that became durable
// and turns that were dropped.
type remoraCounters struct {
	known     bool
	persisted int64
	dropped   int64
}

// persistedTurns and droppedTurns return NaN if Remora did not report.
func (c remoraCounters) persistedTurns() cli.Number { return c.orNaN(c.persisted) }
func (c remoraCounters) droppedTurns() cli.Number   { return c.orNaN(c.dropped) }

func (c remoraCounters) orNaN(n int64) cli.Number {
	if !c.known {
		return cli.Number(math.NaN())
	}
	return cli.Number(n)
}

// parseRemoraCounters reads the line with which Remora ends. Dropped is what
// persistence refused, for whatever reason, and what the proxy lost before it.
func parseRemoraCounters(lines []string) remoraCounters {
	for _, text := range slices.Backward(lines) {
		var line struct {
			Msg   string `json:"msg"`
			Proxy struct {
				Lost int64 `json:"lost"`
			} `json:"proxy"`
			Persist struct {
				Persisted *int64           `json:"persisted"`
				Dropped   map[string]int64 `json:"dropped"` // by reason
			} `json:"persist"`
		}
		if json.Unmarshal([]byte(text), &line) != nil || line.Msg != "stopped" || line.Persist.Persisted == nil {
			continue
		}
		c := remoraCounters{known: true, persisted: *line.Persist.Persisted, dropped: line.Proxy.Lost}
		for _, n := range line.Persist.Dropped {
			c.dropped += n
		}
		return c
	}
	return remoraCounters{}
}
