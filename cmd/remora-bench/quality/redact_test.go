package quality

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

func writeJSONFile(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

type redactFigures struct {
	Secrets struct {
		Recall   float64
		BySource map[string]struct {
			Recall  *float64
			Flagged *float64 `json:"flagged_benign"`
		} `json:"by_source"`
	}
	PII      map[string]*float64
	USPerKiB float64 `json:"us_per_kib"`
}

func redactJSON(t *testing.T, args ...string) (redactFigures, string) {
	t.Helper()
	var out bytes.Buffer
	if err := RunRedact(context.Background(), append(args, "-json"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var f redactFigures
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	return f, out.String()
}

func TestRedactFiguresByHand(t *testing.T) {
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	secrets := writeJSONFile(t, []map[string]any{
		{"src": "a", "secret": true, "text_b64": encoded("password = \"q7Zk2mXv9L\"")},
		{"src": "a", "secret": true, "text_b64": encoded("nothing that anyone would find")},
		{"src": "a", "secret": false, "text_b64": encoded("mail anna@example.org")}, // personal data is no secret
		{"src": "b", "secret": false, "text_b64": encoded("password = \"q7Zk2mXv9L\"")},
	})
	span := func(kind string, start, end int) map[string]any {
		return map[string]any{"type": kind, "start": start, "end": end}
	}
	pii := writeJSONFile(t, []map[string]any{
		{"text": "é anna@example.org", "spans": []any{span("EMAIL_ADDRESS", 2, 18)}},
		{"text": "é anna@example.org and bob", "spans": []any{span("EMAIL_ADDRESS", 2, 26)}}, // a part is left
		{"text": "bob@example.org", "spans": []any{span("PERSON", 0, 3)}},                    // false: no gold of a type that counts
		{"text": "nothing", "spans": []any{}},
	})
	f, raw := redactJSON(t, "-secrets", secrets, "-pii", pii)
	a, b := f.Secrets.BySource["a"], f.Secrets.BySource["b"]
	if f.Secrets.Recall != 0.5 || *a.Recall != 0.5 || *a.Flagged != 0 || b.Recall != nil || *b.Flagged != 1 {
		t.Errorf("secrets: got %s", raw)
	}
	if *f.PII["email"] != 0.5 || f.PII["phone"] != nil || *f.PII["false_sentences"] != 0.25 || f.USPerKiB <= 0 {
		t.Errorf("personal data: got %s", raw)
	}
	var out bytes.Buffer
	if err := RunRedact(context.Background(), []string{"-pii", pii}, &out, io.Discard); err != nil || !strings.Contains(out.String(), "us per KiB") || strings.Contains(out.String(), "source") {
		t.Errorf("text: got %s, %v", out.String(), err)
	}
}

// The reach that is promised, on the data that the rules were judged by.
func TestRedactReach(t *testing.T) {
	const dir = "../../../../shared/data/redaction"
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the scripted run must have the data: %v", err)
		}
		t.Skipf("no measurement: %v", err)
	}
	f, raw := redactJSON(t, "-secrets", filepath.Join(dir, "secrets.json"), "-pii", filepath.Join(dir, "pii.json"))
	t.Log(raw)
	if f.Secrets.Recall < 0.97 || len(f.Secrets.BySource) != 3 {
		t.Errorf("secrets: recall %.3f of %d sources", f.Secrets.Recall, len(f.Secrets.BySource))
	}
	for source, c := range f.Secrets.BySource {
		if *c.Recall < 0.9 {
			t.Errorf("%s: recall %.3f", source, *c.Recall)
		}
	}
	for kind, want := range map[string]float64{"email": 1, "phone": 0.95, "card": 1, "iban": 1, "ssn": 1, "ip": 1} {
		if *f.PII[kind] < want {
			t.Errorf("%s: found %.3f, want >= %.2f", kind, *f.PII[kind], want)
		}
	}
	if *f.PII["false_sentences"] > 0.005 {
		t.Errorf("false sentences: got %.4f", *f.PII["false_sentences"])
	}
}

func TestRedactRefuses(t *testing.T) {
	empty := writeJSONFile(t, []any{})
	for name, args := range map[string][]string{
		"no data":         {},
		"unexpected":      {"-pii", empty, "more"},
		"no such file":    {"-pii", empty + "x"},
		"not base64":      {"-secrets", writeJSONFile(t, []map[string]any{{"src": "a", "text_b64": "!"}})},
		"span outside":    {"-pii", writeJSONFile(t, []map[string]any{{"text": "a", "spans": []map[string]any{{"type": "US_SSN", "start": 0, "end": 2}}}})},
		"not what is due": {"-pii", writeJSONFile(t, "text")},
	} {
		err := RunRedact(context.Background(), args, io.Discard, io.Discard)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, usage := errors.AsType[cli.UsageError](err); usage != (len(args) == 0 || len(args) == 3) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
