package proxy

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/recall/fence"
)

// The paths of Google's and Azure's services, as their clients write them.
func TestPathsOfServices(t *testing.T) {
	var log bytes.Buffer
	for _, tt := range []struct {
		api   int
		path  string
		model string // "" = the body's
		body  func(string) string
	}{
		{5, "/v1beta/models/gemini-3-pro:generateContent?key=AIza-hush", "gemini-3-pro", nil},
		{5, "/v1/models/gemini-3-pro:streamGenerateContent?alt=sse&key=AIza-hush", "gemini-3-pro", nil},
		{5, "/v1/projects/p/locations/europe-west1/publishers/google/models/gemini-3-pro:generateContent", "gemini-3-pro", nil},
		{1, "/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5-5:rawPredict", "claude-opus-5-5", withoutModel},
		{1, "/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5-5:streamRawPredict", "claude-opus-5-5", withoutModel},
		{0, "/openai/deployments/mine/chat/completions?api-version=2026-01-01", "", nil},
		{0, "/openai/v1/chat/completions", "", nil},
		{3, "/openai/v1/responses", "", nil},
	} {
		a := apis[tt.api]
		r := a.rig(t, func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		r.recall.set("tea")
		body := a.body("user: q1")
		if tt.body != nil {
			body = tt.body(body)
		}
		got := r.postTo(tt.path, body, "X-Goog-Api-Key", "AIza-hush")
		if got.status != StatusInjected || !fence.Contains(r.one().body) {
			t.Errorf("%s: status %s", tt.path, got.status)
		}
		turns := r.turns()
		if len(turns) != 1 || tt.model != "" && turns[0].Model != tt.model && turns[0].Model != "m" {
			t.Errorf("%s: turns %+v", tt.path, turns)
		}
	}
	if strings.Contains(log.String(), "hush") {
		t.Error("a key is logged")
	}
	// Other publishers have bodies of their own.
	r := newRig(t)
	r.recall.set("tea")
	if got := r.postTo("/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict", chat("user: q1")); got.status != StatusUnsupported {
		t.Errorf("another publisher: status %s", got.status)
	}
}

func withoutModel(body string) string {
	return strings.Replace(body, `"model":"m"`, `"anthropic_version":"vertex-2023-10-16"`, 1)
}

// A signature that the server no longer accepts is replaced, and stays replaced
// for the rest of the conversation.
func TestRefusedSignaturesAreReplaced(t *testing.T) {
	a := apis[5]
	r := a.rig(t)
	r.recall.set("tea")
	refused := 0
	r.answers(func(got received) (int, string, string) {
		if strings.Contains(got.body, `"c2ln"`) && !fence.Contains(got.body) {
			refused++
			return 400, "application/json", `{"error":{"code":400,"message":"Thought signature is not valid","status":"INVALID_ARGUMENT"}}`
		}
		return 200, "application/json", a.answer("r", "fine")
	})
	r.post(a.body("user: q1"))
	r.one()
	for range 2 { // calls carry a signature
		got := r.post(a.body("user: q1", "call: c", "result: c"), headerMemory, "off")
		if got.code != 200 {
			t.Errorf("got %d, status %s", got.code, got.status)
		}
	}
	if refused != 1 {
		t.Errorf("%d requests were refused, want 1", refused)
	}
	if sent := r.sent(); !strings.Contains(sent[len(sent)-1].body, "skip_thought_signature_validator") {
		t.Errorf("sent %s", sent[len(sent)-1].body)
	}
}
