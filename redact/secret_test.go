package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretNeverShowsItsValue(t *testing.T) {
	const value = "hunter2"
	secret := Secret(value)
	holder := struct{ Key Secret }{secret}
	outputs := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		outputs[verb] = fmt.Sprintf(verb, secret)
		outputs[verb+" in a struct"] = fmt.Sprintf(verb, holder)
		outputs[verb+" in a pointer"] = fmt.Sprintf(verb, &holder)
	}
	raw, err := json.Marshal([]any{secret, holder, &holder})
	if err != nil {
		t.Fatal(err)
	}
	outputs["json"] = string(raw)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", secret, "holder", holder)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", secret, "holder", holder)
	outputs["slog"] = log.String()
	for how, got := range outputs {
		if strings.Contains(got, value) || strings.Contains(strings.ToLower(got), "68756e74657232") {
			t.Errorf("%s shows the value: %s", how, got)
		}
	}
	if got := secret.Reveal(); got != value {
		t.Errorf("Reveal: got %q, want %q", got, value)
	}
}
