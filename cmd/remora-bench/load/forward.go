package load

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// Targets of the forward listener's cells, in addition to direct and
// reverseproxy. All lead to one mock upstream that speaks TLS.
const (
	targetPlain           = "reverseproxy-plain" // as reverseproxy, but plain HTTP to the client
	targetReverseListener = "reverse"            // Remora's reverse listener, with plain HTTP to the client
	targetForward         = "forward"
)

// forwardTargets is what -forward measures, in this order.
//
//	generator --TLS------------> direct ------------------------------> mock upstream (TLS)
//	          --TLS------------> reverseproxy --------------------TLS->
//	          --plain----------> reverseproxy-plain --------------TLS->
//	          --plain----------> reverse (remora serve) ----------TLS->
//	          --CONNECT, TLS---> forward (remora serve --forward) -TLS->
func forwardTargets() []string {
	return []string{targetDirect, targetReverse, targetPlain, targetReverseListener, targetForward}
}

// forwardHost is a host that does not exist (RFC 2606), except for the forward
// listener, which sends its requests to the mock.
const forwardHost = "api.example"

// openSecure starts the mock upstream that speaks TLS, once.
func (b *bed) openSecure(ctx context.Context) (err error) {
	if b.secure != "" {
		return nil
	}
	if b.cert, err = makeCertificate(b.dir); err != nil {
		return err
	}
	_, b.secure, err = b.child(ctx, "upstream", "-cert", b.cert.certFile, "-key", b.cert.keyFile)
	return err
}

// secureTargets starts what the names stand for, in their order. Memory is off
// in all of them.
func (b *bed) secureTargets(ctx context.Context, names []string) ([]target, error) {
	if err := b.openSecure(ctx); err != nil {
		return nil, err
	}
	trust, err := clientTLS(b.cert.certFile, "127.0.0.1")
	if err != nil {
		return nil, err
	}
	var all []target
	for _, name := range names {
		t := target{name: name}
		switch name {
		case targetDirect:
			t.route = route{addr: b.secure, tls: trust}
		case targetReverse, targetPlain:
			args := []string{"reverseproxy", "-upstream", "https://" + b.secure, "-ca", b.cert.certFile}
			if name == targetReverse {
				args, t.tls = append(args, "-cert", b.cert.certFile, "-key", b.cert.keyFile), trust
			}
			t.proc, t.addr, err = b.child(ctx, args...)
		case targetReverseListener, targetForward:
			t.memory = "off"
			t.proc, t.route, err = b.startOverTLS(ctx, name)
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

// startOverTLS runs a Remora in front of the mock upstream that speaks TLS,
// with its reverse listener or with both listeners, and returns the named one.
func (b *bed) startOverTLS(ctx context.Context, name string) (*process, route, error) {
	s := remoraSetup{
		name: name, dir: filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, len(b.procs))), logLevel: b.logLevel,
		upstream: "https://" + b.secure, caFile: b.cert.certFile,
	}
	var err error
	if name == targetForward {
		if s.forward, err = freeAddress(); err != nil {
			return nil, route{}, err
		}
	}
	p, addr, err := b.serveRemora(ctx, s)
	if err != nil || name != targetForward {
		return p, route{addr: addr}, err
	}
	trust, err := clientTLS(s.authority(), forwardHost)
	return p, route{addr: s.forward, connect: forwardHost + ":443", tls: trust}, err
}

// makeAuthority lets Remora create the forward listener's authority.
func (b *bed) makeAuthority(ctx context.Context, config, dir string) error {
	cmd := exec.CommandContext(ctx, b.remora, "ca", "init", "--config", config)
	cmd.Env = append(cmd.Environ(), remoraEnv(dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("remora ca init: %w\n%s", err, out)
	}
	return nil
}
