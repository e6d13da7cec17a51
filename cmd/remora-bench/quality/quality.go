// Package quality measures what Remora finds: memories ([RunRecall]), when to
// recall nothing ([RunGate]), how both grow with the memories ([RunScale]), and
// secrets and personal data ([RunRedact]).
//
// Each function is a command of remora-bench. It reads its data from files that
// it is given or generates it from a fixed seed, runs the engines in process
// over a temporary store, and prints a table or JSON objects.
package quality

import (
	"time"

	"github.com/remora-proxy/remora/recall"
)

// patientConfig returns the defaults with deadlines that a slow machine keeps
// and enough memory for what is measured.
func patientConfig() recall.Config {
	cfg := recall.DefaultConfig()
	cfg.Deadline, cfg.FirstDeadline, cfg.LoadTimeout = time.Minute, 10*time.Minute, 10*time.Minute
	cfg.MaxBytes, cfg.MaxScopeBytes = 8<<30, 8<<30
	return cfg
}
