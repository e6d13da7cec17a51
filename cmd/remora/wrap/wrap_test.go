package wrap

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/agents"
)

func TestEnvironment(t *testing.T) {
	claude, _ := agents.Named("claude")
	claude = claude.At("http://127.0.0.1:8787")
	for _, test := range []struct {
		name      string
		given     []string
		want, not []string
		replaced  []string
	}{
		{"nothing set", []string{"A=b"}, []string{"A=b", "ANTHROPIC_BASE_URL=http://127.0.0.1:8787"}, []string{"NO_PROXY="}, nil},
		{"the same", []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8787"}, []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8787"}, nil, nil},
		{"another", []string{"ANTHROPIC_BASE_URL=http://elsewhere"}, []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:8787"},
			[]string{"ANTHROPIC_BASE_URL=http://elsewhere"}, []string{"ANTHROPIC_BASE_URL"}},
		{"a key is not touched", []string{"ANTHROPIC_API_KEY=sk-1"}, []string{"ANTHROPIC_API_KEY=sk-1"}, nil, nil},
		{"a proxy", []string{"https_proxy=http://p"}, []string{"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}, nil, nil},
		{"a proxy with exceptions", []string{"HTTPS_PROXY=http://p", "NO_PROXY=a.b, c.d"}, []string{"NO_PROXY=a.b,c.d,127.0.0.1", "no_proxy=a.b,c.d,127.0.0.1"}, nil, nil},
		{"exceptions in both spellings", []string{"http_proxy=http://p", "NO_PROXY=a.b,c.d", "no_proxy=c.d,e.f"},
			[]string{"NO_PROXY=a.b,c.d,e.f,127.0.0.1", "no_proxy=a.b,c.d,e.f,127.0.0.1"}, nil, nil},
		{"a proxy that is not used here", []string{"HTTPS_PROXY=http://p", "NO_PROXY=127.0.0.1", "no_proxy=*"},
			[]string{"NO_PROXY=*", "no_proxy=*"}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			env, replaced, err := Environment(test.given, claude, "127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range test.want {
				if !slices.Contains(env, kv) {
					t.Errorf("%q is missing in %q", kv, env)
				}
			}
			for _, start := range test.not {
				if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, start) }) {
					t.Errorf("%q is in %q", start, env)
				}
			}
			if !slices.Equal(replaced, test.replaced) {
				t.Errorf("replaced %q, want %q", replaced, test.replaced)
			}
		})
	}
}

// A configuration in a variable is not replaced, unless it is the same.
func TestEnvironmentKeepsConfiguration(t *testing.T) {
	agent, _ := agents.Named("opencode")
	agent = agent.At("http://127.0.0.1:8787")
	env, _, err := Environment([]string{"A=b"}, agent, "127.0.0.1")
	if err != nil || lookup(env, "OPENCODE_CONFIG_CONTENT") == "" {
		t.Fatalf("got %q, %v", env, err)
	}
	if _, _, err := Environment(env, agent, "127.0.0.1"); err != nil {
		t.Errorf("the same: %v", err)
	}
	_, _, err = Environment([]string{`OPENCODE_CONFIG_CONTENT={"theme": "mine"}`}, agent, "127.0.0.1")
	if err == nil || !strings.Contains(err.Error(), "OPENCODE_CONFIG_CONTENT is set") || strings.Contains(err.Error(), "theme") {
		t.Errorf("got %v", err)
	}
}

func TestHandedOn(t *testing.T) {
	for kv, want := range map[string]bool{
		"OPENAI_API_KEY=x": false, "PGPASSWORD=x": false, "DATABASE_URL=x": false, "GOOGLE_API_KEY=x": false, "X=": false,
		"REMORA_SERVER=x": false, "NOTIFY_SOCKET=x": false, "WATCHDOG_USEC=1": false, "LISTEN_FDS=1": false,
		"REMORA_API_TOKEN=x": true, "REMORA_STORAGE_KEY=x": true, "OTEL_EXPORTER_OTLP_HEADERS=x": true, "PATH=/a_KEY": true,
		"HOME=/": true, "https_proxy=x": true, "container=podman": true, "SystemRoot=x": true, "XDG_CONFIG_HOME=x": true,
		"LC_ALL=C": true, "GOMEMLIMIT=1": true,
	} {
		if got := handedOn(kv); got != want {
			t.Errorf("%s: %t", kv, got)
		}
	}
}

// Each user of a Remora keeps it; the last one ends it, and nobody begins to use
// one that ends.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	one, err := Hold(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Hold(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []func(){one, two} {
		if alone, err := lockAlone(path); alone != nil || err != nil {
			t.Fatalf("unused while it is used: %v", err)
		}
		release()
	}
	ended, err := AwaitUnused(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if late, err := lockShared(path); late != nil || err != nil {
		t.Fatalf("used while it ends: %v", err)
	}
	ended()
	again, err := Hold(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := AwaitUnused(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Hold(t.Context(), filepath.Join(path, "no directory")); err == nil {
		t.Error("a lock without a directory")
	}
}

func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143} {
		code, err := Run(t.Context(), exec.Command("sh", "-c", script))
		if code != want || err != nil {
			t.Errorf("%s: got %d, %v; want %d", script, code, err, want)
		}
	}
	if _, err := Run(t.Context(), exec.Command(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("a program that is missing runs")
	}
}

// A server that ends before it answers is reported with its log, which others
// can't read.
func TestStartFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	log := filepath.Join(t.TempDir(), "log")
	server := exec.Command("sh", "-c", `echo "key: $OPENAI_API_KEY$PGPASSWORD"; exit 1`)
	server.Env = append(os.Environ(), "OPENAI_API_KEY=sk-1", "PGPASSWORD=canary")
	err := Start(t.Context(), server, log, func(context.Context) error { return errors.New("nobody") })
	if err == nil || !strings.Contains(err.Error(), log) {
		t.Errorf("got %v", err)
	}
	text, _ := os.ReadFile(log)
	if string(text) != "key: \n" {
		t.Errorf("log %q", text)
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	server = exec.Command("sh", "-c", "exit 1")
	if err := Start(t.Context(), server, log, func(context.Context) error { return nil }); err != nil {
		t.Errorf("another one answers: %v", err)
	}
}

// What a Remora in the background writes and is held by is its user's alone, and
// a link in its place is not followed.
func TestOwnFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes and no sh")
	}
	dir := filepath.Join(t.TempDir(), "cache", "remora")
	for range 2 {
		if err := MakeDirectory(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Fatalf("mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	log, lock, other := filepath.Join(dir, "log"), filepath.Join(dir, "lock"), filepath.Join(dir, "other")
	for _, file := range []string{log, lock, other} {
		if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	start := func() error {
		return Start(t.Context(), exec.Command("sh", "-c", "exit 0"), log, func(context.Context) error { return nil })
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	release, err := Hold(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	release()
	for _, file := range []string{log, lock} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if err := errors.Join(os.Remove(file), os.Symlink(other, file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(); err == nil {
		t.Error("a link in place of the log is followed")
	}
	if _, err := Hold(t.Context(), lock); err == nil {
		t.Error("a link in place of the lock is followed")
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "kept" {
		t.Errorf("another file has %q, %v", text, err)
	}
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil {
		t.Error("a directory in place of the log")
	}
}
