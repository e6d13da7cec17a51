package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
)

// TestMain runs the mock upstream, which the bench starts from its own binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "upstream" {
		if err := load.RunUpstream(context.Background(), os.Args[2:], os.Stdout, os.Stderr); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-duration", "1ms"}, {"-remora", "x", "y"}} {
		_, err := parse(args, io.Discard)
		if _, ok := errors.AsType[cli.UsageError](err); !ok {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}

// TestRun measures for a moment. What it measures is not looked at.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Remora")
	}
	remora := filepath.Join(t.TempDir(), "remora")
	if out, err := exec.Command("go", "build", "-o", remora, "github.com/remora-proxy/remora/cmd/remora").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	if err := Run(t.Context(), []string{"-remora", remora, "-before", remora, "-rounds", "1", "-duration", "200ms"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || strings.Count(out.String(), "%") != 6 {
		t.Errorf("got\n%s", out.String())
	}
}

func TestLost(t *testing.T) {
	ways := []*way{
		{name: "off", aim: .02, rps: []float64{100, 200}, cpu: []float64{10, 10}},
		{name: "on", aim: .15, rps: []float64{90, 180}, cpu: []float64{11, 11}},
		{name: "slow", aim: .15, rps: []float64{50, 100}, cpu: []float64{20, 20}},
	}
	var out bytes.Buffer
	if err := print(&out, ways); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"10.0 %", "<= 15 % ok", "1.100", "50.0 %", "MISS"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
