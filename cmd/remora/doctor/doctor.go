// Package doctor examines what a Remora depends on: ports, upstreams, the clock,
// space, the environment of agents. Each [Finding] says what is so, and what to
// do about it.
//
// Nothing is changed, no key is sent or shown, and values of variables are only
// shown as far as they are addresses without credentials.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
)

// Status is how bad a finding is.
type Status string

// All statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, and is probably not meant
	Failed  Status = "failed"
)

// Finding is one thing that was examined.
type Finding struct {
	Subject string `json:"subject"` // e.g. "address 127.0.0.1:8787"
	Status  Status `json:"status"`
	Text    string `json:"text"`
	// Fix says what to do, in a sentence; "" = nothing.
	Fix string `json:"fix,omitempty"`
}

// Count returns how many findings have a status.
func Count(findings []Finding, status Status) (n int) {
	for _, f := range findings {
		if f.Status == status {
			n++
		}
	}
	return n
}

// Write writes findings for people: a line each, and one below with the fix.
func Write(w io.Writer, findings []Finding) {
	for _, f := range findings {
		fmt.Fprintf(w, "%-8s %s: %s\n", f.Status, f.Subject, f.Text)
		if f.Fix != "" {
			fmt.Fprintf(w, "         -> %s\n", f.Fix)
		}
	}
}

// WriteJSON writes findings as one JSON object. Its member ok is false if
// something failed.
func WriteJSON(w io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		OK       bool      `json:"ok"`
		Findings []Finding `json:"findings"`
	}{Count(findings, Failed) == 0, findings})
}
