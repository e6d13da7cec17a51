package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora/config"
)

func TestLogger(t *testing.T) {
	for _, test := range []struct {
		name   string
		config config.Log
		json   bool
		debug  bool
	}{
		{"auto, no terminal", config.Log{Level: "info", Format: config.FormatAuto}, true, false},
		{"text", config.Log{Level: "info", Format: config.FormatText}, false, false},
		{"JSON, debug", config.Log{Level: "debug", Format: config.FormatJSON}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			log := newLogger(test.config, &b, false)
			log.Debug("detail")
			if got := b.Len() > 0; got != test.debug {
				t.Errorf("debug is logged: got %v, want %v", got, test.debug)
			}
			b.Reset()
			log.Info("said", "n", 1)
			if got := json.Valid(b.Bytes()); got != test.json || !strings.Contains(b.String(), "said") {
				t.Errorf("JSON: got %v, want %v: %s", got, test.json, b.String())
			}
		})
	}
}
