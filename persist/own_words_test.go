package persist

import (
	"strings"
	"testing"
)

func TestThoughtsAreNotStored(t *testing.T) {
	p := New(DefaultConfig(), nil, nil, nil, nil, nil, nil)
	got, err := p.redactor.prepare(turnOf(testScope, "t", "Why?", "<think>hmm</think>So."))
	if err != nil || got.Messages[1].Text != "So." {
		t.Errorf("got %+v, %v", got.Messages, err)
	}
}

func TestBinaryIsNotStored(t *testing.T) {
	p := New(DefaultConfig(), nil, nil, nil, nil, nil, nil)
	for name, text := range map[string]string{"NUL": "PNG\x00\x01", "control": strings.Repeat("\x01\x02text", 20)} {
		if _, err := p.redactor.prepare(turnOf(testScope, "t", text, "")); err == nil {
			t.Errorf("%s: stored", name)
		}
	}
	image := "Look: data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100) + " nice?"
	got, err := p.redactor.prepare(turnOf(testScope, "t", image, ""))
	if want := "Look: data:image/png;base64,[DATA] nice?"; err != nil || got.Messages[0].Text != want {
		t.Errorf("encoded data: got %q, %v; want %q", got.Messages[0].Text, err, want)
	}
}
