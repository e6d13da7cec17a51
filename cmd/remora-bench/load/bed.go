package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// Names of the targets that load knows. More come by -target.
const (
	targetDirect  = "direct"
	targetReverse = "reverseproxy" // the 1 of all ratios
	targetPass    = "pass"
	targetRead    = "read"
	targetOn      = "on"
)

// remoraTargets maps each target of Remora's to the mode of memory that it
// measures.
var remoraTargets = map[string]string{targetPass: "off", targetRead: "read", targetOn: "on"}

// target is something that requests are sent to.
type target struct {
	name string
	route
	memory string // X-Remora-Memory; "" = the header is absent
	users  int    // 0 = as many as the cell has
	proc   *process
}

// bed holds what a run needs: the mock upstream, the targets with their
// processes, the questions. Everything lives in a temporary directory that
// close removes.
type bed struct {
	remora   string // path of Remora's binary
	logLevel string // of the Remoras that are targets
	self     string // path of this one
	dir      string
	stderr   io.Writer
	upstream string // address of the mock upstream
	secure   string // address of the one that speaks TLS; "" = not started
	cert     certificate
	procs    []*process // all that were started, the mock upstream too

	memories  int
	filled    string // directory with the data of a user with that many memories; "" = none (yet)
	questions []string
	talk      []string
	serial    atomic.Uint64 // of all requests

	introduced map[string]int // how many users have asked before, by a target's address
}

// openBed starts the mock upstream. The caller must close the bed.
func openBed(ctx context.Context, o loadOptions, stderr io.Writer) (*bed, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	remora := o.remora
	if remora == "" {
		remora = filepath.Join(filepath.Dir(self), "remora")
	}
	dir, err := os.MkdirTemp("", "remora-bench-")
	if err != nil {
		return nil, fmt.Errorf("make temporary directory: %w", err)
	}
	b := &bed{remora: remora, logLevel: o.logLevel, self: self, dir: dir, stderr: stderr, memories: o.memories, introduced: map[string]int{}}
	b.questions, b.talk = benchQuestions(o.memories), benchTalk()
	_, b.upstream, err = b.child(ctx, "upstream", "-listen", o.upstream)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// close ends all processes and removes the temporary directory.
func (b *bed) close() error {
	for _, p := range b.procs {
		p.kill()
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("remove temporary directory: %w", err)
	}
	return nil
}

// start runs a process that close ends.
func (b *bed) start(ctx context.Context, name, path string, args, env []string) (*process, error) {
	log := filepath.Join(b.dir, fmt.Sprintf("%s-%d.log", name, len(b.procs)))
	p, err := startProcess(ctx, name, log, path, args, env)
	if err != nil {
		return nil, err
	}
	b.procs = append(b.procs, p)
	return p, nil
}

// child runs a serving command of this binary, and returns its address.
func (b *bed) child(ctx context.Context, args ...string) (*process, string, error) {
	p, err := b.start(ctx, args[0], b.self, args, nil)
	if err != nil {
		return nil, "", err
	}
	addr, err := p.listening(ctx)
	return p, addr, err
}

// targets starts the named targets, in order; others holds the addresses of the
// unknown ones.
func (b *bed) targets(ctx context.Context, names []string, others map[string]string) ([]target, error) {
	var all []target
	for _, name := range names {
		t := target{name: name}
		var err error
		switch {
		case others[name] != "":
			t.addr = others[name]
		case name == targetDirect:
			t.addr = b.upstream
		case name == targetReverse:
			t.proc, t.addr, err = b.child(ctx, "reverseproxy", "-upstream", "http://"+b.upstream)
		case remoraTargets[name] != "":
			t, err = b.remoraTarget(ctx, name)
		default:
			err = cli.UsageError(fmt.Sprintf("-targets: unknown target %q", name))
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (b *bed) remoraTarget(ctx context.Context, name string) (target, error) {
	t := target{name: name, memory: remoraTargets[name]}
	data := filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, len(b.procs)))
	if name != targetPass {
		if err := b.fill(ctx); err != nil {
			return t, fmt.Errorf("fill user with memories: %w", err)
		}
		if b.filled != "" {
			if err := os.CopyFS(data, os.DirFS(b.filled)); err != nil {
				return t, fmt.Errorf("copy filled data: %w", err)
			}
		}
	}
	if name == targetRead {
		t.users = 1
	}
	var err error
	t.proc, t.addr, err = b.startRemora(ctx, name, data, b.logLevel)
	return t, err
}

// stop ends a target's process in good order and returns its counters.
func (t target) stop() (remoraCounters, error) {
	if t.proc == nil {
		return remoraCounters{}, nil
	}
	err := t.proc.stop()
	if t.memory == "" {
		return remoraCounters{}, nil // our own child: how it ends does not matter
	}
	if err != nil {
		return remoraCounters{}, fmt.Errorf("stop %s: %w\n%s", t.name, err, strings.Join(t.proc.log(), "\n"))
	}
	return parseRemoraCounters(t.proc.log()), nil
}

// parseTargetURL takes "name=url" apart. Only plain HTTP is spoken.
func parseTargetURL(s string) (name, addr string, err error) {
	name, raw, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%q: must be name=url", s)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return "", "", fmt.Errorf("%q: must be an http:// URL without a path", raw)
	}
	if u.Port() == "" {
		u.Host += ":80"
	}
	return name, u.Host, nil
}
