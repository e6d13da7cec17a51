package load

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// buildRemora makes the real binary, which load starts as a process of its own.
func buildRemora(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "remora")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../../remora").CombinedOutput(); err != nil {
		t.Fatalf("build remora: %v\n%s", err, out)
	}
	return path
}

// loadLines runs load and returns its lines of cells by cell and target, and of
// counters by target. Where the machine was so busy that a cell is not enough,
// it runs again, and for longer.
func loadLines(t *testing.T, enough func(cellResult) bool, args ...string) (cells map[string]cellResult, counters map[string]countersLine) {
	t.Helper()
	for each := 100 * time.Millisecond; each < 10*time.Second; each *= 4 {
		cells, counters = loadOnce(t, append(args, "-duration", each.String())...)
		if !slices.ContainsFunc(slices.Collect(maps.Values(cells)), func(l cellResult) bool { return l.Errors == 0 && !enough(l) }) {
			break
		}
	}
	return cells, counters
}

// someAnswered wants a request in every cell, and an event where there are
// streams.
func someAnswered(l cellResult) bool {
	return l.Requests > 0 && (l.Events > 0 || !strings.Contains(l.Cell, "sse"))
}

func loadOnce(t *testing.T, args ...string) (map[string]cellResult, map[string]countersLine) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out, problems bytes.Buffer
	if err := Run(t.Context(), append([]string{"-json", "-rounds", "1"}, args...), &out, &problems); err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	cells, counters := map[string]cellResult{}, map[string]countersLine{}
	for line := range strings.Lines(out.String()) {
		var total countersLine
		var cell cellResult
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if dec.Decode(&total) == nil && total.Cell == "total" {
			counters[total.Target] = total
			continue
		}
		dec = json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&cell); err != nil {
			t.Fatal(err)
		}
		cells[cell.Cell+" "+cell.Target] = cell
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return cells, counters
}

// checkAnswered fails where a request did, or where none was answered, and
// where Remora says anything else than allowed.
func checkAnswered(t *testing.T, name string, l cellResult, allowed ...string) {
	t.Helper()
	if l.Requests == 0 || l.Errors > 0 {
		t.Errorf("%s: %d requests, %d errors, the last: %s", name, l.Requests, l.Errors, l.LastError)
	}
	for status := range l.Statuses {
		if !slices.Contains(allowed, status) {
			t.Errorf("%s: statuses %v, want none but %v", name, l.Statuses, allowed)
		}
	}
}

func TestLoadRemora(t *testing.T) {
	remora := buildRemora(t)
	t.Run("dialects", func(t *testing.T) { testLoadDialects(t, remora) })
	t.Run("forward listener", func(t *testing.T) { testLoadForward(t, remora) })
	t.Run("streams through the forward listener", func(t *testing.T) {
		cells, _ := loadLines(t, someAnswered, "-remora", remora, "-forward", "-targets", "forward", "-dialect", "messages", "-bodies", "16",
			"-conns", "2", "-modes", "sse", "-events", "3", "-gap", "1ms")
		l := cells["forward-messages-sse-16KiB-c2 forward"]
		checkAnswered(t, "forward", l, "off")
		if l.Events == 0 {
			t.Error("no event was timed")
		}
	})
}

// Memory is found, inserted and stored in every dialect.
func testLoadDialects(t *testing.T, remora string) {
	enough := func(l cellResult) bool {
		return someAnswered(l) && (l.Target != targetRead || l.Statuses["injected"] > 0)
	}
	cells, counters := loadLines(t, enough, "-remora", remora, "-log", "info", "-targets", "pass,read,on", "-dialect", "chat,responses,messages",
		"-bodies", "1", "-conns", "2", "-modes", "json,sse", "-events", "2", "-gap", "1ms", "-users", "2", "-memories", "60")
	if len(cells) != 18 {
		t.Errorf("%d lines, want 6 cells of 3 targets: %v", len(cells), slices.Sorted(maps.Keys(cells)))
	}
	requests := 0
	for _, cell := range []string{
		"json-1KiB-c2", "responses-json-1KiB-c2", "messages-json-1KiB-c2", "sse-1KiB-c2", "responses-sse-1KiB-c2", "messages-sse-1KiB-c2",
	} {
		pass, read, on := cells[cell+" pass"], cells[cell+" read"], cells[cell+" on"]
		checkAnswered(t, cell+" pass", pass, "off")
		// On a machine that is busy, recall may not make its deadline.
		checkAnswered(t, cell+" read", read, "injected", "timeout")
		checkAnswered(t, cell+" on", on, "injected", "empty", "timeout")
		if read.Statuses["injected"] == 0 {
			t.Errorf("%s: no request of read got a memory: %v", cell, read.Statuses)
		}
		requests += on.Requests
	}
	if got := counters[targetOn]; got.Persisted < int64(requests) || got.Dropped > 0 {
		t.Errorf("on: %d requests, %d turns persisted, %d dropped", requests, got.Persisted, got.Dropped)
	}
	for _, name := range []string{targetPass, targetRead} {
		if diff := cmp.Diff(countersLine{Cell: "total", Target: name}, counters[name]); diff != "" {
			t.Errorf("%s stores something (-want +got)\n%s", name, diff)
		}
	}
}

// Requests go through the forward listener decrypted: what it tunnels bears no
// status.
func testLoadForward(t *testing.T, remora string) {
	cells, _ := loadLines(t, someAnswered, "-remora", remora, "-forward", "-bodies", "1", "-conns", "2", "-modes", "json")
	const cell = "forward-json-1KiB-c2"
	if len(cells) != len(forwardTargets()) {
		t.Errorf("lines %v, want one of each target", slices.Sorted(maps.Keys(cells)))
	}
	for _, name := range forwardTargets() {
		l := cells[cell+" "+name]
		if strings.HasPrefix(name, targetReverse) {
			l.Errors = 0 // it loses answers that come early; see newBareProxy
		}
		checkAnswered(t, name, l, "off")
		if ofRemora := name == targetReverseListener || name == targetForward; ofRemora != (l.Statuses["off"] >= l.Requests && l.Requests > 0) {
			t.Errorf("%s: %d requests, statuses %v", name, l.Requests, l.Statuses)
		}
	}
	if f := cells[cell+" "+targetForward]; f.RatioRPS <= 0 || f.TimeReverse <= 0 || f.TimeReverseTLS == 0 {
		t.Errorf("ratios to the ReverseProxy %v, to the reverse listener %v, to it over TLS %v", f.RatioRPS, f.TimeReverse, f.TimeReverseTLS)
	}
}
