package proxy

import "testing"

// What an answer is labelled as does not decide how it is read.
func TestLabelsOfAnswers(t *testing.T) {
	const events = `data: {"choices":[{"index":0,"delta":{"content":"fine"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	const lines = `{"message":{"content":"fi"},"done":false}` + "\n" + `{"message":{"content":"ne"},"done":true}` + "\n"
	for _, tt := range []struct {
		api         int
		label, body string
	}{
		{0, "application/json", events},
		{0, "text/plain; charset=utf-8", ": hello\n\n" + events},
		{0, "application/octet-stream", events},
		{0, "text/event-stream", chatAnswer("", "fine")},
		{4, "application/json", lines},
		{4, "application/x-ndjson", "{\n\"message\": {\"content\": \"fine\"},\n\"done\": true}"},
	} {
		a := apis[tt.api]
		r := a.rig(t)
		r.answers(func(received) (int, string, string) { return 200, tt.label, tt.body })
		r.post(a.body("user: q1"))
		turns := r.turns()
		if len(turns) != 1 || turns[0].Messages[1].Text != "fine" {
			t.Errorf("%s labelled %s: got %+v", a.name, tt.label, turns)
		}
	}
}
