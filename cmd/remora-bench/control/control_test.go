package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
	"github.com/remora-proxy/remora/cmd/remora-bench/load"
	"github.com/remora-proxy/remora/storage"
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
	for _, args := range [][]string{
		{"-users", "0"}, {"-memories", "1"}, {"-receipts", "1001"}, {"-requests", "1"}, {"-rounds", "0"}, {"-duration", "1ms"}, {"-parts", "reads,writes"},
	} {
		_, err := parse(args, io.Discard)
		if _, ok := errors.AsType[cli.UsageError](err); !ok || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%q: %v, want a usage error that names %s", args, err, args[0])
		}
	}
	if o, err := parse(nil, io.Discard); err != nil || o.users*o.memories != 1_000_000 {
		t.Errorf("defaults: %+v, %v, want a million memories", o, err)
	}
}

// TestCorpus guards that the corpus has as many memories as it says, under the
// ids that are asked for, and that it is the same every time.
func TestCorpus(t *testing.T) {
	for _, c := range []corpus{{2, 5}, {3, 52}, {1, 999}} {
		ids := map[string]bool{}
		now := time.Unix(1_760_000_000, 0)
		for user := range c.users {
			n := 0
			var last storage.Time
			for w := range c.writes(user, now) {
				if err := w.Validate(); err != nil {
					t.Fatal(err)
				}
				for i := range w.Memories {
					m := &w.Memories[i]
					if m.ID != c.id(user, n) || m.EventTime < last || m.Text == "" {
						t.Fatalf("%d of %+v: %+v, want %s", n, c, m, c.id(user, n))
					}
					last = m.EventTime
					ids[m.ID] = true
					n++
				}
			}
			if n != c.memories {
				t.Errorf("%+v: %d memories", c, n)
			}
		}
		if len(ids) != c.users*c.memories {
			t.Errorf("%+v: %d different ids", c, len(ids))
		}
	}
	c := corpus{2, 100}
	told := c.told(1, 10)
	if len(told) != 10 || told[0] != c.told(1, 1)[0] || told[0] == c.told(0, 1)[0] {
		t.Errorf("what a user told: %q", told)
	}
	for user, asked := range c.questions() {
		for _, q := range asked {
			if !strings.Contains(q.text, q.rare) || len(q.text) > questionBytes {
				t.Errorf("user %d: %+v", user, q)
			}
		}
	}
}

func TestTimes(t *testing.T) {
	var few times
	for n := range 100 {
		few = append(few, time.Duration(100-n))
	}
	for q, want := range map[float64]time.Duration{0: 1, .5: 51, .99: 100, 1: 100} {
		if got := few.quantile(q); got != want {
			t.Errorf("%g: got %d, want %d", q, got, want)
		}
	}
	if times(nil).quantile(.5) != 0 || middle([]float64{3, 1}) != 2 || middle([]float64{3, 1, 7}) != 3 {
		t.Error("of none, or of an even number")
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	p := report{out: &out}
	p.latency("fast", times{time.Millisecond}, readAim)
	p.latency("slow", times{time.Second}, readAim)
	p.info("unknown", nan, 1, "MiB", "no /proc")
	p.add(row{what: "unknown with an aim", measured: cli.Number(nan), aim: 3})
	p.add(row{what: "share", measured: .96, decimals: 2, aim: .95, atLeast: true})
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"fast, p99 1.00 ms <= 2 ok p50 1.00 ms", "slow, p99 1000.00 ms <= 2 MISS", "unknown - MiB no /proc", "aim - <= 3 MISS", "share 0.96 >= 0.95 ok"} {
		if line := strings.Join(strings.Fields(strings.Split(out.String(), "\n")[i]), " "); !strings.Contains(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
	if p.missed != 2 {
		t.Errorf("%d missed, want 2", p.missed)
	}
}

// TestExport runs a small export of a Remora that is built for it.
func TestExport(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Remora")
	}
	var out, log bytes.Buffer
	err := Run(t.Context(), []string{"-users", "2", "-memories", "50", "-receipts", "3", "-parts", "export", "-data", t.TempDir() + "/data"}, &out, &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if line, _, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(line, "export, lines") || !strings.Contains(line, " 100 ") {
		t.Errorf("%s", out.String())
	}
}
