package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Two conversations that begin alike go on with their own blocks, under their own ids, in whatever order: what was answered tells
// them apart.
func TestConversationsThatBeginAlike(t *testing.T) {
	calling := func(id string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, id)
	}
	step := func(id string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"r"}]}`, id, id)
	}
	for name, tt := range map[string]struct{ answer, next func(which string) string }{
		"by their answers": {
			func(which string) string { return chatAnswer("", "answer "+which) },
			func(which string) string { return chat("user: q", "assistant: answer "+which, "user: next") },
		},
		"by their calls": {calling, step},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, which := range []string{"one", "two", "three"} {
				r.recall.set(which)
				r.answers(func(received) (int, string, string) { return 200, "application/json", tt.answer(which) })
				r.post(chat("user: q"))
				r.settle()
				r.sleep(2 * time.Minute)
			}
			r.sent()
			first := r.turns()
			r.recall.set()
			r.answers(replyWith("fine"))
			for _, which := range []string{"two", "one", "three", "one", "two"} {
				r.post(tt.next(which))
				if got := roles(t, r.one().body)[0]; got != "user: ["+which+"]" {
					t.Errorf("%s goes on with %q", which, got)
				}
				turns := r.turns()
				for i, begun := range []string{"one", "two", "three"} {
					if begun == which && len(first) == 3 && turns[0].Conversation != first[i].Conversation {
						t.Errorf("%s goes on as %s, want %s", which, turns[0].Conversation, first[i].Conversation)
					}
				}
			}
		})
	}
}

// A request that names its conversation and one that names none are not one sent twice, and each goes on with its own.
func TestNamedAndUnnamedAreApart(t *testing.T) {
	named := []string{"X-Remora-Conversation", "B"}
	r := newRig(t)
	r.recall.set("unnamed")
	r.post(chat("user: q"))
	r.recall.set("named")
	r.post(chat("user: q"), named...)
	r.recall.set("unnamed again")
	r.sleep(time.Second)
	if got := r.post(chat("user: q")); got.status != StatusReplayed {
		t.Errorf("a retry: %s, want replayed", got.status)
	}
	turns := r.turns()
	if len(turns) != 3 || turns[0].ID != turns[2].ID || turns[0].ID == turns[1].ID || turns[1].Conversation != "B" {
		t.Fatalf("turns: %+v", turns)
	}
	r.sent()
	r.recall.set()
	next := []string{"user: q", "assistant: fine", "user: next"}
	r.post(chat(next...))
	r.post(chat(next...), named...)
	var got []string
	for _, sent := range r.sent() {
		got = append(got, roles(t, sent.body)[0])
	}
	if diff := cmp.Diff([]string{"user: [unnamed]", "user: [named]"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if turns := r.turns(); turns[0].Conversation == "B" || turns[1].Conversation != "B" {
		t.Errorf("they go on as %s and %s", turns[0].Conversation, turns[1].Conversation)
	}
}

// A system message that changes from turn to turn, as one that tells the time, begins no other conversation.
func TestSystemMessagesThatChange(t *testing.T) {
	r := newRig(t)
	r.recall.set("fact")
	r.post(chat("system: it is 10:00", "developer: be brief", "user: q"))
	r.recall.set()
	r.post(chat("system: it is 10:01", "user: q", "assistant: fine", "user: next"))
	sent := r.sent()
	want := []string{"system: it is 10:01", "user: [fact]", "user: q", "assistant: fine", "user: next"}
	if diff := cmp.Diff(want, roles(t, sent[1].body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if turns := r.turns(); len(turns) != 2 || turns[0].Conversation != turns[1].Conversation {
		t.Errorf("turns: %+v", turns)
	}
}
