package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report prints results as they come: a table per cell, or one JSON object a line.
type report struct {
	out  io.Writer
	json bool
}

// number is a figure in JSON: three decimals, null where it is not known.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1000)/1000, 'f', -1, 64), nil
}

// cellLine is the JSON object of one target in one cell. Times are in microseconds, medians over the rounds; ratios
// are to the tuned bare ReverseProxy in the same round, but for those of the forward door to the reverse door,
// per request.
type cellLine struct {
	Cell           string         `json:"cell"`
	Target         string         `json:"target"`
	RPS            number         `json:"rps"`
	P50            number         `json:"p50_us"`
	P99            number         `json:"p99_us"`
	FirstByte      number         `json:"first_byte_us"`
	CPU            number         `json:"cpu_s_per_10k"`
	RSS            number         `json:"rss_mib"`
	RatioRPS       number         `json:"ratio_rps"`
	RatioCPU       number         `json:"ratio_cpu"`
	RatioP50       number         `json:"ratio_p50"`
	RatioP99       number         `json:"ratio_p99"`
	RatioFirst     number         `json:"ratio_first_byte"`
	RatioAddedP50  number         `json:"ratio_added_p50"`
	AddedP50       number         `json:"added_p50_us"`
	AddedP99       number         `json:"added_p99_us"`
	AddedFirst     number         `json:"added_first_byte_us"`
	DelayP99       number         `json:"event_delay_p99_us"`
	DelayMax       number         `json:"event_delay_max_us"`
	TimeReverse    number         `json:"time_to_reverse"`
	TimeReverseTLS number         `json:"time_to_reverse_tls"`
	CPUReverse     number         `json:"cpu_to_reverse"`
	CPUReverseTLS  number         `json:"cpu_to_reverse_tls"`
	Events         int            `json:"events"`
	Merged         int            `json:"merged_reads"`
	Requests       int            `json:"requests"`
	Errors         int            `json:"errors"`
	LastError      string         `json:"last_error,omitempty"`
	Late           int            `json:"late"`
	Statuses       map[string]int `json:"statuses"`
}

func (r cellResult) line() cellLine {
	l := cellLine{
		Cell: r.cell, Target: r.target,
		RPS: number(r.rps), P50: number(r.p50), P99: number(r.p99), FirstByte: number(r.first),
		CPU: number(r.cpu), RSS: number(r.rss), RatioRPS: number(r.ratioRPS),
		RatioCPU: number(r.ratioCPU), RatioP50: number(r.ratioP50), RatioP99: number(r.ratioP99),
		RatioFirst: number(r.ratioFirst), RatioAddedP50: number(r.ratioAddedP50),
		AddedP50: number(r.addedP50), AddedP99: number(r.addedP99), AddedFirst: number(r.addedFirst),
		DelayP99: number(r.delayP99), DelayMax: number(r.delayMax), Events: r.events, Merged: r.merged,
		TimeReverse: number(r.timeReverse), TimeReverseTLS: number(r.timeReverseTLS),
		CPUReverse: number(r.cpuReverse), CPUReverseTLS: number(r.cpuReverseTLS),
		Requests: r.requests, Errors: r.errors, Late: r.late, Statuses: r.statuses,
	}
	if r.lastError != nil {
		l.LastError = r.lastError.Error()
	}
	return l
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
			if err := p.object(r.line()); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintf(p.out, "\n%s\n", results[0].cell)
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "target\treq/s\tratio\tp50 us\tp99 us\t+p50\t+p99\tfirst byte\t+first\tCPU s/10k\tratio\tRSS MiB\t\n")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.target,
			cellText(r.rps, 0), cellText(r.ratioRPS, 2), cellText(r.p50, 0), cellText(r.p99, 0),
			cellText(r.addedP50, 0), cellText(r.addedP99, 0), cellText(r.first, 0), cellText(r.addedFirst, 0),
			cellText(r.cpu, 3), cellText(r.ratioCPU, 2), cellText(r.rss, 1))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, note := range r.notes() {
			fmt.Fprintf(p.out, "  %s: %s\n", r.target, note)
		}
	}
	return nil
}

// notes are what the table has no column for.
func (r cellResult) notes() []string {
	var notes []string
	if len(r.statuses) > 0 {
		var s []string
		for _, name := range slices.Sorted(maps.Keys(r.statuses)) {
			s = append(s, fmt.Sprintf("%s %d", name, r.statuses[name]))
		}
		notes = append(notes, "X-Remora-Status: "+strings.Join(s, ", "))
	}
	if r.events > 0 {
		notes = append(notes, fmt.Sprintf("%d events, delay p99 %s us, max %s us; %d reads brought events together that were sent apart",
			r.events, cellText(r.delayP99, 0), cellText(r.delayMax, 0), r.merged))
	}
	if !math.IsNaN(r.timeReverse) {
		notes = append(notes,
			fmt.Sprintf("%s of the reverse door's time per request, %s of its CPU", cellText(r.timeReverse, 2), cellText(r.cpuReverse, 2)),
			fmt.Sprintf("%s and %s with what TLS to clients costs the ReverseProxy added to the reverse door's", cellText(r.timeReverseTLS, 2), cellText(r.cpuReverseTLS, 2)))
	}
	if r.late > 0 {
		notes = append(notes, fmt.Sprintf("%d requests sent more than 1 ms after they were due", r.late))
	}
	if r.errors > 0 {
		notes = append(notes, fmt.Sprintf("%d ERRORS, the last: %v", r.errors, r.lastError))
	}
	return notes
}

func cellText(f float64, decimals int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
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
