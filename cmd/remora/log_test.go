package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	for _, test := range []struct {
		name   string
		config logConfig
		json   bool
		debug  bool
	}{
		{"auto, no terminal", logConfig{levelInfo, formatAuto}, true, false},
		{"text", logConfig{levelInfo, formatText}, false, false},
		{"JSON, debug", logConfig{levelDebug, formatJSON}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			log := test.config.form(&b, false)
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
