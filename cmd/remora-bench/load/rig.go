package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/prose"
)

// Rig lends the mock upstream, Remora in front of it and the traffic through it
// to measurements of something else than the traffic.
type Rig struct{ bed *bed }

// OpenRig starts the mock upstream. remora is the path of Remora's binary. The
// caller must close the Rig.
func OpenRig(ctx context.Context, remora string, stderr io.Writer) (*Rig, error) {
	shortenSlices()
	b, err := openBed(ctx, loadOptions{remora: remora, logLevel: logWarn, upstream: "127.0.0.1:0"}, stderr)
	if err != nil {
		return nil, err
	}
	return &Rig{b}, nil
}

// Close ends all processes and removes their data.
func (r *Rig) Close() error { return r.bed.close() }

// Server is a Remora that a Rig has started.
type Server struct {
	Control string // address of its control plane
	Health  string // address of its health listener; "" = none
	name    string
	addr    string
	proc    *process
}

// Tenant is the tenant of all traffic, as a store names it, and DataDir and
// KeyFile are where a Remora that is served from dir keeps its store.
const Tenant = "name:bench"

func DataDir(dir string) string { return filepath.Join(dir, remoraData) }
func KeyFile(dir string) string { return filepath.Join(dir, remoraKey) }

// User returns the name of the n-th user of the traffic.
func User(n int) string { return fmt.Sprintf("user-%04d", n) }

// Setup is a Remora to be started.
type Setup struct {
	Name     string
	Dir      string   // of its data
	Binary   string   // "" = that of the Rig
	LogLevel string   // "" = warn
	Health   bool     // with a health listener
	Env      []string // as in [os/exec.Cmd.Env]
}

// Serve runs `remora serve` over the data in dir, and returns when memory is
// on.
func (r *Rig) Serve(ctx context.Context, name, dir string) (*Server, error) {
	return r.Start(ctx, Setup{Name: name, Dir: dir})
}

// Start is Serve for any setup.
func (r *Rig) Start(ctx context.Context, setup Setup) (*Server, error) {
	s := &Server{name: setup.Name}
	var err error
	if s.Control, err = freeAddress(); err != nil {
		return nil, err
	}
	if setup.Health {
		if s.Health, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	s.proc, s.addr, err = r.bed.serveRemora(ctx, remoraSetup{
		name: s.name, dir: setup.Dir, logLevel: cmp.Or(setup.LogLevel, logWarn), upstream: "http://" + r.bed.upstream,
		control: s.Control, health: s.Health, binary: setup.Binary, env: setup.Env,
	})
	return s, err
}

// Stop ends the process in good order.
func (s *Server) Stop() error {
	if err := s.proc.stop(); err != nil {
		return fmt.Errorf("stop %s: %w\n%s", s.name, err, strings.Join(s.proc.log(), "\n"))
	}
	return nil
}

// Ended reports whether the process has ended.
func (s *Server) Ended() bool { return s.proc.ended() }

// Kill ends the process at once, whatever it has to do yet.
func (s *Server) Kill() { s.proc.kill() }

// Rest waits until both processes have come to rest, at most for limit.
func (s *Server) Rest(ctx context.Context, limit time.Duration) { s.proc.rest(ctx, time.Second, limit) }

// PIDs returns the ids of the process and of those that it has started.
func (s *Server) PIDs() []int {
	pid := s.proc.cmd.Process.Pid
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				all = append(all, id)
			}
		}
	}
	return all
}

// Traffic is what clients send through the proxy in a closed loop: users state
// and ask in turn, with memory on.
type Traffic struct {
	Size     int // of a body, in bytes
	Conns    int
	Users    int
	Duration time.Duration // after a warm-up
}

// Flow is what became of Traffic.
type Flow struct {
	RPS      float64
	P50, P99 time.Duration
	Requests int
	// CPU is the processor time of all processes, this one too, in the measured
	// time. It is 0 where there is no /proc.
	CPU time.Duration
}

// Send sends t through a Server. It is an error if a request fails.
func (r *Rig) Send(ctx context.Context, s *Server, t Traffic) (Flow, error) {
	c := cell{api: apis()[0], size: t.Size, conns: t.Conns, duration: t.Duration}
	spec := requestSpec{api: c.api, host: s.addr, memory: remoraTargets[targetOn], size: c.size}
	template, err := newRequestTemplate(spec, prose.New(5))
	if err != nil {
		return Flow{}, err
	}
	var before time.Duration
	m, err := job{
		route: route{addr: s.addr}, template: template, conns: c.conns, warmup: c.warmup(), duration: c.duration, users: t.Users,
		messages: r.bed.talk, serial: &r.bed.serial, started: func() { before = r.cpu() },
	}.run(ctx)
	used := r.cpu() - before
	if err != nil {
		return Flow{}, err
	}
	if m.errors > 0 {
		return Flow{}, fmt.Errorf("%d requests failed, the last: %w", m.errors, errors.Join(m.lastError))
	}
	return Flow{
		float64(m.requests) / m.elapsed.Seconds(), m.latency.quantile(.5), m.latency.quantile(.99), m.requests, used,
	}, nil
}

// cpu returns the processor time that this process and all that the Rig has
// started have used.
func (r *Rig) cpu() time.Duration {
	all := usageOf("self").cpu
	for _, p := range r.bed.procs {
		if !p.ended() {
			all += p.usage().cpu
		}
	}
	return all
}
