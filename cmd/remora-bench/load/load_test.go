package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

// childEnv makes the test binary behave as remora-bench: load starts its own
// binary again.
const childEnv = "REMORA_BENCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	if err := os.Setenv(childEnv, "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// child runs the commands that load starts as processes of their own.
func child() {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{"upstream": RunUpstream, "reverseproxy": RunReverseProxy}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := commands[os.Args[1]](ctx, os.Args[2:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestLoadEndToEnd(t *testing.T) {
	got, _ := loadLines(t, someAnswered, "-targets", "direct,reverseproxy", "-bodies", "1,16", "-conns", "2", "-modes", "json,sse",
		"-events", "3", "-gap", "1ms", "-rounds", "2")
	if len(got) != 8 {
		t.Errorf("%d lines, want 4 cells of 2 targets: %v", len(got), got)
	}
	for _, cell := range []string{"json-1KiB-c2", "json-16KiB-c2", "sse-1KiB-c2", "sse-16KiB-c2"} {
		for _, name := range []string{targetDirect, targetReverse} {
			l, ok := got[cell+" "+name]
			if !ok || l.Requests == 0 || l.RPS <= 0 || l.P50 <= 0 || l.P99 < l.P50 {
				t.Errorf("%s of %s: %+v", cell, name, l)
			}
			if strings.HasPrefix(cell, "sse") != (l.Events > 0) {
				t.Errorf("%s of %s: %d events", cell, name, l.Events)
			}
		}
		reverse := got[cell+" "+targetReverse]
		if reverse.RatioRPS != 1 {
			t.Errorf("%s: the ReverseProxy's ratio to itself is %v", cell, reverse.RatioRPS)
		}
		if runtime.GOOS == "linux" && reverse.RSS <= 0 {
			t.Errorf("%s: RSS of the ReverseProxy = %v", cell, reverse.RSS)
		}
	}
}

func TestLoadWithoutRemora(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	err := Run(t.Context(), []string{"-remora", "/nonexistent/remora", "-targets", "pass"}, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/remora") || !strings.Contains(err.Error(), "-remora") {
		t.Errorf("error %v, want one that names the binary and the flag", err)
	}
}

func TestLoadUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string // parts of the message
	}{
		{[]string{"-bodies", "0,x", "-modes", "xml", "-rounds", "0", "-targets", "nobody,direct,direct"},
			[]string{`-bodies: "0"`, `-bodies: "x"`, `-modes: "xml"`, "-rounds", `"nobody"`, `duplicate "direct"`}},
		{[]string{"-dialect", "chat,morse,chat"}, []string{`-dialect: "morse"`, `-dialect: duplicate "chat"`}},
		{[]string{"-forward", "-targets", "forward,read", "-target", "other=http://127.0.0.1:1"}, []string{`-targets: unknown target "read"`, "-target: not with -forward"}},
		{[]string{"-targets", "forward"}, []string{`-targets: unknown target "forward"`}},
		{[]string{"-fast"}, []string{"-fast"}},
		{[]string{"stray"}, []string{`"stray"`}},
		{[]string{"-strict"}, []string{"-strict"}},
	} {
		err := Run(t.Context(), tc.args, &bytes.Buffer{}, &bytes.Buffer{})
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%q: %v, want a usage error", tc.args, err)
			continue
		}
		for _, part := range tc.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want it to name %s", tc.args, err, part)
			}
		}
	}
}

func TestParseTargetURL(t *testing.T) {
	for _, tc := range []struct{ in, name, addr string }{
		{"nginx=http://127.0.0.1:8080", "nginx", "127.0.0.1:8080"},
		{"far=http://proxy.example/", "far", "proxy.example:80"},
		{"nourl", "", ""},
		{"tls=https://127.0.0.1:1", "", ""},
		{"path=http://127.0.0.1:1/v1", "", ""},
		{"=http://127.0.0.1:1", "", ""},
	} {
		name, addr, err := parseTargetURL(tc.in)
		if (err != nil) != (tc.addr == "") || err == nil && (name != tc.name || addr != tc.addr) {
			t.Errorf("parseTargetURL(%q) = %q, %q, %v", tc.in, name, addr, err)
		}
	}
}
