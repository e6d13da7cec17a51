// Package quality measures what Remora finds: memories ([RunRecall]), when to
// recall nothing ([RunGate]), how both grow with the memories ([RunScale]), and
// secrets and personal data ([RunRedact]).
//
// Each function is a command of remora-bench. It reads its data from files that
// it is given or generates it from a fixed seed, runs the engines in process
// over a temporary store, and prints a table or JSON objects.
package quality

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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

// weightsUsage describes the flag -weights.
const weightsUsage = "JSON `file` of ranking weights that replace the defaults: {\"Phrase\": 0.2}; their names are in docs/recall-figures.md"

// readWeights replaces the weights of cfg that the file sets. path "" leaves
// them as they are.
func readWeights(cfg *recall.Config, path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read weights: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&cfg.Weights); err != nil {
		return fmt.Errorf("read weights: %s: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("read weights: %s: must hold one JSON object", path)
	}
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("read weights: %s: %w", path, err)
	}
	return nil
}
