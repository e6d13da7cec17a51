package load

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// report prints results as they come: a table per cell, or one JSON object a
// line.
type report struct {
	out  io.Writer
	json bool
}

func (p report) object(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = fmt.Fprintf(p.out, "%s\n", line)
	return err
}

// cells prints one cell's results.
func (p report) cells(results []cellResult) error {
	if p.json {
		for _, r := range results {
			if err := p.object(r); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintf(p.out, "\n%s\n", results[0].Cell)
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "target\treq/s\tratio\tp50 us\tp99 us\t+p50\t+p99\tfirst byte\t+first\tCPU s/10k\tratio\tRSS MiB\t\n")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Target,
			r.RPS.Text(0), r.RatioRPS.Text(2), r.P50.Text(0), r.P99.Text(0),
			r.AddedP50.Text(0), r.AddedP99.Text(0), r.First.Text(0), r.AddedFirst.Text(0),
			r.CPU.Text(3), r.RatioCPU.Text(2), r.RSS.Text(1))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, note := range r.notes() {
			fmt.Fprintf(p.out, "  %s: %s\n", r.Target, note)
		}
	}
	return nil
}

// notes are what the table has no column for.
func (r cellResult) notes() []string {
	var notes []string
	if len(r.Statuses) > 0 {
		var s []string
		for _, name := range slices.Sorted(maps.Keys(r.Statuses)) {
			s = append(s, fmt.Sprintf("%s %d", name, r.Statuses[name]))
		}
		notes = append(notes, "X-Remora-Status: "+strings.Join(s, ", "))
	}
	if r.Events > 0 {
		notes = append(notes, fmt.Sprintf("%d events, delay p99 %s us, max %s us; %d reads brought events together that were sent apart",
			r.Events, r.DelayP99.Text(0), r.DelayMax.Text(0), r.Merged))
	}
	if !math.IsNaN(float64(r.TimeReverse)) {
		notes = append(notes,
			fmt.Sprintf("%s of the reverse listener's time per request, %s of its CPU", r.TimeReverse.Text(2), r.CPUReverse.Text(2)),
			fmt.Sprintf("%s and %s with what TLS to clients costs the ReverseProxy added to the reverse listener's", r.TimeReverseTLS.Text(2), r.CPUReverseTLS.Text(2)))
	}
	if r.Late > 0 {
		notes = append(notes, fmt.Sprintf("%d requests sent more than 1 ms after they were due", r.Late))
	}
	if r.Errors > 0 {
		notes = append(notes, fmt.Sprintf("%d ERRORS, the last: %s", r.Errors, r.LastError))
	}
	return notes
}

// countersLine tells what a Remora had counted when it ended.
type countersLine struct {
	Cell      string `json:"cell"` // always "total"
	Target    string `json:"target"`
	Persisted int64  `json:"persisted"`
	Dropped   int64  `json:"dropped"`
}

func (p report) counters(target string, c remoraCounters) error {
	if !c.known {
		return nil
	}
	if p.json {
		return p.object(countersLine{"total", target, c.persisted, c.dropped})
	}
	_, err := fmt.Fprintf(p.out, "\n%s: %d turns persisted, %d dropped\n", target, c.persisted, c.dropped)
	return err
}
