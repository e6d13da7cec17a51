package proxy

import (
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
)

// An agent changes its system prompt between the turns of a conversation: what
// was inserted stays.
func TestSystemPromptIsNotInTheChain(t *testing.T) {
	for _, a := range []api{apis[1], apis[2], apis[3]} {
		t.Run(a.name, func(t *testing.T) {
			r := a.rig(t)
			r.recall.set("fact")
			r.post(a.body("system: today is Monday", "user: q1"))
			r.sent()
			r.recall.set()
			r.sleep(time.Hour)
			got := r.post(a.body("system: today is Tuesday", "user: q1", "assistant: fine", "user: q2"))
			if got.status != StatusReplayed || got.memories != "1" {
				t.Errorf("status %s with %s memories, want the first turn's replayed", got.status, got.memories)
			}
		})
	}
}

// The price: without a name, the same words within a minute are one request
// sent twice, whatever the system prompt says. With names they are two.
func TestSameWordsUnderTwoSystemPrompts(t *testing.T) {
	for _, a := range []api{apis[1], apis[3]} {
		t.Run(a.name, func(t *testing.T) {
			r := a.rig(t)
			r.recall.set("fact")
			r.post(a.body("system: one", "user: hi"))
			r.post(a.body("system: two", "user: hi"))
			if n := len(r.recall.asked()); n != 1 {
				t.Errorf("searched %d times, want once", n)
			}
			if turns := r.turns(); len(turns) != 2 || turns[0].ID != turns[1].ID {
				t.Errorf("%d turns, want one that is told twice", len(turns))
			}
			r.post(a.body("system: one", "user: hello"), identity.HeaderConversation, "one")
			r.post(a.body("system: two", "user: hello"), identity.HeaderConversation, "two")
			if n := len(r.recall.asked()); n != 2 {
				t.Errorf("searched %d times, want for each conversation", n)
			}
			if turns := r.turns(); len(turns) != 2 || turns[0].ID == turns[1].ID {
				t.Errorf("%d turns, want two apart", len(turns))
			}
		})
	}
}
