package dialect

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzGemini checks that an insertion adds one part and changes nothing else,
// and that a body without signatures stays JSON.
func FuzzGemini(f *testing.F) {
	for _, body := range goldenInputs(f, Gemini{}, "request") {
		f.Add(body, goldenBlock)
	}
	f.Add([]byte(`{"contents":[{"role":"user","parts":[{"text":"a","thoughtSignature":"x"}]}],"systemInstruction":{"parts":[]}}`), "b")
	f.Add([]byte(`{"system_instruction":{"parts":[{"text":"s"}]},"contents":[{"parts":[{"functionResponse":{}},{"text":"a"},{"functionResponse":{}}]}]}`), "b")
	f.Add([]byte(`{"contents":[{"role":"model","parts":[{"thoughtSignature":"x","functionCall":{}}]},{"parts":[7,null,[]]}]}`), "b")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		text = strings.ToValidUTF8(text, "?")
		req, err := (Gemini{}).Parse(body)
		if err != nil || !json.Valid(body) {
			return
		}
		for _, p := range placements {
			ins, err := (Gemini{}).Insert(req, req.Turn, p.placement, text)
			if err != nil {
				continue
			}
			out := bytes.Join(Splice(body, ins), nil)
			if !json.Valid(out) {
				t.Fatalf("%s: %s is not JSON", p.name, out)
			}
			got, want := decode(t, out), decode(t, body)
			if !removePart(got, text, p.placement == System, req.Turn) {
				t.Fatalf("%s: the part is not in %s", p.name, out)
			}
			if p.placement == System && req.systemEnd == req.systemStart {
				delete(got.(map[string]any), "systemInstruction")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", p.name, diff)
			}
		}
		cuts, _ := Gemini{}.Unbind(req, 0, len(req.Messages))
		if out := bytes.Join(Splice(body, cuts), nil); !json.Valid(out) {
			t.Errorf("without signatures: %s is not JSON", out)
		}
	})
}

// removePart removes the last part with that text.
func removePart(body any, text string, system bool, turn int) bool {
	in := body.(map[string]any)
	var content map[string]any
	if system {
		for _, key := range []string{"systemInstruction", "system_instruction"} {
			if c, ok := in[key].(map[string]any); ok {
				content = c
			}
		}
	} else {
		content, _ = in["contents"].([]any)[turn].(map[string]any)
	}
	parts, _ := content["parts"].([]any)
	for i := len(parts) - 1; i >= 0; i-- {
		if p, ok := parts[i].(map[string]any); ok && len(p) == 1 && p["text"] == text {
			content["parts"] = append(parts[:i:i], parts[i+1:]...)
			return true
		}
	}
	return false
}

func TestGeminiSignatures(t *testing.T) {
	const body = `{"contents":[{"role":"model","parts":[{"thoughtSignature":"c2ln","functionCall":{"name":"f"}}]},{"parts":[{"text":"q"}]}]}`
	req := mustParseGemini(t, body)
	cuts, through := Gemini{}.Unbind(req, 0, 1)
	want := strings.Replace(body, `"c2ln"`, unsigned, 1)
	if got := string(bytes.Join(Splice([]byte(body), cuts), nil)); got != want || through != 0 {
		t.Errorf("got %s, %d", got, through)
	}
	for text, changed := range map[string]bool{
		`{"error":{"code":400,"message":"Thought signature is not valid","status":"INVALID_ARGUMENT"}}`:                                      true,
		`{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}`: true,
		`{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}`:                                                   false,
	} {
		if got := (Gemini{}).BoundRefusal(400, []byte(text)); got.Changed != changed {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func mustParseGemini(t *testing.T, body string) *Request {
	t.Helper()
	req, err := (Gemini{}).Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
