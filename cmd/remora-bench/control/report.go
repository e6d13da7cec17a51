package control

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

var nan = math.NaN()

// row is a line of the report.
type row struct {
	what     string
	measured cli.Number
	decimals int
	unit     string
	aim      cli.Number // NaN = none
	atLeast  bool       // or at most
	note     string
}

func (r row) verdict() string {
	met := r.measured <= r.aim // never true of NaN: what could not be measured is not met
	if r.atLeast {
		met = r.measured >= r.aim
	}
	switch {
	case math.IsNaN(float64(r.aim)):
		return ""
	case met:
		return "ok"
	}
	return "MISS"
}

func (r row) aimText() string {
	switch {
	case math.IsNaN(float64(r.aim)):
		return ""
	case r.atLeast:
		return fmt.Sprintf(">= %g", float64(r.aim))
	}
	return fmt.Sprintf("<= %g", float64(r.aim))
}

// report collects rows and prints them as a table.
type report struct {
	out    io.Writer
	rows   []row
	missed int
}

func (p *report) add(r row) { p.rows = append(p.rows, r) }

// info adds a figure without an aim.
func (p *report) info(what string, measured float64, decimals int, unit, note string) {
	p.add(row{what: what, measured: cli.Number(measured), decimals: decimals, unit: unit, aim: cli.Number(nan), note: note})
}

// latency adds the times of calls. aim is that of the 99th percentile, 0 =
// none.
func (p *report) latency(what string, t times, aim time.Duration) {
	r := row{what: what + ", p99", measured: millis(t.quantile(.99)), decimals: 2, unit: "ms", aim: cli.Number(nan)}
	r.note = fmt.Sprintf("p50 %s ms, longest %s ms, %d calls", millis(t.quantile(.5)).Text(2), millis(t.quantile(1)).Text(1), len(t))
	if aim > 0 {
		r.aim = millis(aim)
	}
	p.add(r)
}

func millis(d time.Duration) cli.Number { return cli.Number(d) / cli.Number(time.Millisecond) }

// flush prints what was added since.
func (p *report) flush() error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, r := range p.rows {
		if r.verdict() == "MISS" {
			p.missed++
		}
		fmt.Fprintf(w, "%s\t%s %s\t%s\t%s\t%s\n", r.what, r.measured.Text(r.decimals), r.unit, r.aimText(), r.verdict(), r.note)
	}
	p.rows = nil
	fmt.Fprintln(w)
	return w.Flush()
}
