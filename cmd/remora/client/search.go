package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/remora-proxy/remora/api"
)

// Search asks for memories by what they say, and shows why they rank.
type Search struct {
	api.Search
	Explain bool // takes the scores apart
}

// Run implements [Verb].
func (v *Search) Run(ctx context.Context, s *Session) error {
	var raw json.RawMessage
	if err := s.call(ctx, ask{method: http.MethodPost, path: "/v1/memories/search", body: v.Search}, &raw); err != nil {
		return err
	}
	if s.JSON {
		return s.raw(raw)
	}
	var res api.Results
	if err := json.Unmarshal(raw, &res); err != nil {
		return err
	}
	w := bufio.NewWriter(s.Out)
	rows := s.table(w, "score", "id", "day", "kind", "text")
	for i := range res.Results {
		f := &res.Results[i]
		note := ""
		if v.Explain {
			note = partsOf(f.Parts)
		}
		rows.addWith(note, score(f.Score), f.Memory.ID, day(f.Memory.EventTime), kindOf(&f.Memory), f.Memory.Text)
	}
	rows.flush()
	if len(res.Cut) > 0 {
		fmt.Fprintln(w, "not returned:")
		cutRows(s.Console, w, res.Cut)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "%d memories matched, relevance %.2f", res.Considered, res.Relevance)
	if v.Gated {
		fmt.Fprintf(s.Err, ", the gate is at %.2f", res.Gate)
	}
	if res.Vectors != "" {
		fmt.Fprintf(s.Err, ", vectors %s", OneLine(res.Vectors))
	}
	fmt.Fprintf(s.Err, ", %s\n", micros(res.TookMicros))
	return nil
}

// cutRows shows what matched and was turned down, and why.
func cutRows(c *Console, w *bufio.Writer, cut []api.Turned) {
	rows := c.table(w, "score", "id", "why", "text")
	for i := range cut {
		t := &cut[i]
		text := "(it is gone)"
		if t.Memory != nil {
			text = t.Memory.Text
		}
		rows.add(score(t.Score), t.ID, reasonOf(t.Reason), text)
	}
	rows.flush()
}

// reasonOf returns why a memory was turned down, for people.
func reasonOf(reason string) string {
	if known := reasons(reason); known != "" {
		return known
	}
	return reason
}

func reasons(reason string) string {
	switch reason {
	case "gate":
		return "not relevant enough"
	case "visible":
		return "the request carries it"
	case "duplicate":
		return "said by another one"
	case "budget":
		return "no room left"
	case "topK":
		return "ranks too low"
	case "floor":
		return "far below the best"
	case "empty":
		return "small talk"
	case "policy":
		return "kept out by policy"
	case api.StateSuperseded:
		return "a later statement holds"
	case api.StateQuarantined:
		return "in quarantine"
	}
	return ""
}

func score(v float64) string { return fmt.Sprintf("%.2f", v) }

// partsOf returns what a score is made of: addends by their term and field, and
// factors.
func partsOf(parts []api.Part) string {
	if len(parts) == 0 {
		return "(not taken apart)"
	}
	var out []string
	for _, p := range parts {
		if p.Term == "" {
			out = append(out, fmt.Sprintf("%s %.3g", p.Name, p.Value))
		} else {
			out = append(out, fmt.Sprintf("%s in %s %.3g", p.Term, p.Name, p.Value))
		}
	}
	return OneLine(strings.Join(out, ", "))
}

// micros returns a time in microseconds, for people.
func micros(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d µs", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f ms", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f s", float64(n)/1_000_000)
}
