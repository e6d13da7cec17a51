package load

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

var nan = cli.Number(math.NaN())

// numbers compares them as floats, of which no two that are not known differ.
var numbers = cmp.Options{cmp.Transformer("float64", func(n cli.Number) float64 { return float64(n) }), cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0)}

func TestCompare(t *testing.T) {
	targets := []target{{name: targetDirect}, {name: targetReverse}, {name: targetPass}}
	now := []figures{
		{RPS: 1000, P50: 10, P99: 20, First: 9, CPU: nan},
		{RPS: 100, P50: 110, P99: 220, First: 109, CPU: 2},
		{RPS: 150, P50: 60, P99: 300, First: 59, CPU: 1},
	}
	compare(targets, now)
	got := now[2]
	want := figures{
		RPS: 150, P50: 60, P99: 300, First: 59, CPU: 1,
		AddedP50: 50, AddedP99: 280, AddedFirst: 50,
		RatioRPS: 1.5, RatioCPU: .5, RatioP50: 60. / 110, RatioP99: 300. / 220, RatioFirst: 59. / 109, RatioAddedP50: .5,
		OverP50:     -50,
		OverP99:     80,
		TimeReverse: nan, TimeReverseTLS: nan, CPUReverse: nan, CPUReverseTLS: nan,
	}
	if diff := cmp.Diff(want, got, numbers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The reverse listener takes 1 ms a request, TLS to the client costs the
// ReverseProxy 1 ms more, so with TLS the reverse listener would take 2 ms. The
// forward listener takes 2.5.
func TestCompareForwardDoor(t *testing.T) {
	targets := []target{{name: targetReverse}, {name: targetPlain}, {name: targetReverseListener}, {name: targetForward}}
	now := []figures{{RPS: 250, CPU: 4}, {RPS: 1000. / 3, CPU: 3}, {RPS: 1000, CPU: 1}, {RPS: 400, CPU: 5}}
	compare(targets, now)
	ofReverse := func(f figures) []cli.Number {
		return []cli.Number{f.TimeReverse, f.TimeReverseTLS, f.CPUReverse, f.CPUReverseTLS}
	}
	if diff := cmp.Diff([]cli.Number{2.5, 1.25, 5, 2.5}, ofReverse(now[3]), numbers); diff != "" {
		t.Errorf("to the reverse listener (-want +got)\n%s", diff)
	}
	if got, want := now[3].RatioRPS, cli.Number(1.6); got != want {
		t.Errorf("throughput to the ReverseProxy's = %v, want %v", got, want)
	}
	unknown := []cli.Number{nan, nan, nan, nan}
	alone := []figures{{RPS: 400, CPU: 5}}
	compare([]target{{name: targetForward}}, alone)
	for what, f := range map[string]figures{"the ReverseProxy": now[0], "the reverse listener": now[2], "the forward listener alone": alone[0]} {
		if diff := cmp.Diff(unknown, ofReverse(f), numbers); diff != "" {
			t.Errorf("%s has ratios to the reverse listener (-want +got)\n%s", what, diff)
		}
	}
}

// Without a ReverseProxy or direct in the run, what refers to them is not
// known.
func TestCompareWithoutBaseline(t *testing.T) {
	now := []figures{{RPS: 150, P50: 60}}
	compare([]target{{name: targetPass}}, now)
	for name, got := range map[string]cli.Number{"ratioRPS": now[0].RatioRPS, "addedP50": now[0].AddedP50} {
		if !math.IsNaN(float64(got)) {
			t.Errorf("%s = %v, want NaN", name, got)
		}
	}
}

// Ratios are medians of the rounds' ratios, not ratios of medians. The longest
// delay is that of all rounds.
func TestMergeFigures(t *testing.T) {
	got := mergeFigures([]figures{{RPS: 1, RatioRPS: 3, DelayMax: 9}, {RPS: 5, RatioRPS: 1}, {RPS: 3, RatioRPS: 2}})
	if diff := cmp.Diff(figures{RPS: 3, RatioRPS: 2, DelayMax: 9}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCellLine(t *testing.T) {
	r := cellResult{Cell: "json-1KiB-c1", Target: "on", Requests: 7, Statuses: map[string]int{"injected": 7}}
	r.figures = unknownFigures()
	r.RPS, r.RatioRPS = 1234.56789, .98765
	var out strings.Builder
	if err := (report{out: &out, json: true}).cells([]cellResult{r}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("not one line: %q", out.String())
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"cell": "json-1KiB-c1", "target": "on", "rps": 1234.568, "p50_us": nil, "p99_us": nil, "first_byte_us": nil,
		"cpu_s_per_10k": nil, "rss_mib": nil, "ratio_rps": .988, "requests": 7., "errors": 0.,
		"statuses": map[string]any{"injected": 7.},
	} {
		value, ok := got[key]
		if diff := cmp.Diff(want, value); !ok || diff != "" {
			t.Errorf("%s: present %v (-want +got)\n%s", key, ok, diff)
		}
	}
}

func TestRequirement(t *testing.T) {
	for _, tc := range []struct {
		r    requirement
		want string
	}{
		{requirement{measured: 1.2, limit: 1.15, atLeast: true}, "PASS"},
		{requirement{measured: 1.1, limit: 1.15, atLeast: true}, "FAIL"},
		{requirement{measured: .8, limit: .85}, "PASS"},
		{requirement{measured: .9, limit: .85}, "FAIL"},
		{requirement{measured: nan, limit: .85}, "FAIL"},
		{requirement{measured: nan, limit: .85, atLeast: true}, "FAIL"},
		{requirement{measured: 7, info: true}, "INFO"},
	} {
		if got := tc.r.verdict(); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.r, got, tc.want)
		}
	}
}

func TestParseRemoraCounters(t *testing.T) {
	stopped := `{"level":"INFO","msg":"stopped","proxy":{"exchanges":9,"lost":1},"persist":{"enqueued":8,"persisted":5,"dropped":{"full":2,"poison":1}}}`
	for _, tc := range []struct {
		name  string
		lines []string
		want  remoraCounters
	}{
		{"reasons apart", []string{`{"msg":"exchange"}`, stopped, ""}, remoraCounters{known: true, persisted: 5, dropped: 4}},
		{"cut or absent", []string{`ted":5}`, "", `{"msg":"exchange","persisted":3}`}, remoraCounters{}},
	} {
		if diff := cmp.Diff(tc.want, parseRemoraCounters(tc.lines), cmp.AllowUnexported(remoraCounters{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.name, diff)
		}
	}
}

func TestProcStat(t *testing.T) {
	stat := []byte("18296 (a ) b) R 18293 18293 6174 0 -1 4194304 102 0 0 0 123 45 0 0 20 0 1 0 107281 3133440 388 1844\n")
	if got, want := statCPU(stat), 1680*time.Millisecond; got != want {
		t.Errorf("CPU = %v, want %v", got, want)
	}
	if got := statCPU([]byte("1 (x) R")); got != 0 {
		t.Errorf("CPU of a short line = %v", got)
	}
	if got, want := residentOf([]byte("5500-7ffe ---p 0 00:00 0 [rollup]\nRss:  99 kB\nPss:\t    2020 kB\nPss_Dirty: 1 kB\n")), int64(2020<<10); got != want {
		t.Errorf("RSS = %d, want %d", got, want)
	}
	if got := residentOf([]byte("Name: x\n")); got != 0 {
		t.Errorf("RSS without a line = %d", got)
	}
}
