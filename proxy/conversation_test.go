package proxy

import "testing"

// A client that names its conversation and sends only the end of it carries the
// newest turns of that, under hashes that nobody knows. One whose history is
// known, or that names none, says by its hashes alone what it carries.
func TestWindowsOfAConversation(t *testing.T) {
	named := []string{"X-Remora-Conversation", "c"}
	whole := []string{"user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3"}
	for name, tt := range map[string]struct {
		said   []string
		header []string
		want   int
	}{
		"all of it":                   {whole, named, 0},
		"the end of it":               {whole[2:], named, 1},
		"the end, behind a summary":   {append([]string{"user: summary", "assistant: fine"}, whole[2:]...), named, 2},
		"the end, without being told": {whole[2:], nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for n := 1; n < len(whole); n += 2 {
				r.post(chat(whole[:n]...), tt.header...)
			}
			r.post(chat(tt.said...), tt.header...)
			asked := r.recall.asked()
			if got := asked[len(asked)-1].VisibleTurns; got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
