package dialect

import (
	"strings"
	"testing"
)

// TestDemoteTexts checks which user messages are results of calls in text: those
// at the end, each behind an assistant's, never the first.
func TestDemoteTexts(t *testing.T) {
	const task, call, result, person, answer = `{"role":"user","content":"do it"}`, `,{"role":"assistant","content":"Action: x"}`,
		`,{"role":"user","content":"Observation: 1"}`, `,{"role":"user","content":"thanks"}`, `,{"role":"assistant","content":"done"}`
	for _, tt := range []struct {
		messages string
		turn     int
		loop     bool
	}{
		{task + call + result, 0, true},
		{task + call + result + call + result, 0, true},
		{task + call + result + answer + person, 4, false},
		{task + call + person, 2, false},
		{task, 0, false},
		{strings.TrimPrefix(result, ","), 0, false},
	} {
		req, err := Chat{}.Parse([]byte(`{"messages":[` + tt.messages + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		err = req.DemoteTexts(func(i int) bool { return strings.HasPrefix(req.Text(i), "Observation") })
		if err != nil || req.Turn != tt.turn || req.Loop != tt.loop {
			t.Errorf("%s: turn %d, loop %t, %v; want %d, %t", tt.messages, req.Turn, req.Loop, err, tt.turn, tt.loop)
		}
	}
}
