package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Two conversations that begin alike go on with their own blocks, under their
// own ids, in whatever order: what was answered tells them apart.
func TestConversationsThatBeginAlike(t *testing.T) {
	calling := func(id string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, id)
	}
	step := func(id string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"r"}]}`, id, id)
	}
	for name, tt := range map[string]struct {
		turns        bool // each of what they began with is one
		answer, next func(which string) string
	}{
		"by their answers": {
			true,
			func(which string) string { return chatAnswer("", "answer "+which) },
			func(which string) string { return chat("user: q", "assistant: answer "+which, "user: next") },
		},
		"by their calls": {false, calling, step},
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
					if tt.turns && begun == which && (len(turns) != 1 || len(first) != 3 || turns[0].Conversation != first[i].Conversation) {
						t.Errorf("%s goes on as %+v after %+v", which, turns, first)
					}
				}
			}
		})
	}
}

// A request that names its conversation and one that names none are not one
// sent twice, and each goes on with its own.
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

// A system message that changes from turn to turn, as one that tells the time,
// begins no other conversation.
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

// calling answers with a call of that id, and looping is a request whose loop
// has come to these.
func calling(id string) func(received) (int, string, string) {
	return func(received) (int, string, string) {
		return 200, "application/json", fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, id)
	}
}

func looping(ids ...string) string {
	b := `{"model":"m","messages":[{"role":"user","content":"q"}`
	for _, id := range ids {
		b += fmt.Sprintf(`,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":"r"}`, id, id)
	}
	return b + `]}`
}

// A loop that has taken steps stays with its block when another conversation
// begins alike in its midst.
func TestLoopsThatOverlap(t *testing.T) {
	r := newRig(t)
	r.recall.set("one")
	r.answers(calling("a1"))
	r.post(chat("user: q"))
	r.sleep(30 * time.Second)
	r.answers(calling("a2"))
	r.post(looping("a1"))
	r.sleep(2 * time.Minute)
	r.recall.set("two")
	r.answers(calling("b1"))
	r.post(chat("user: q"))
	r.settle()
	r.sent()
	for _, tt := range []struct {
		body, want string
	}{{looping("a1", "a2"), "user: [one]"}, {looping("b1"), "user: [two]"}} {
		r.answers(replyWith("done " + tt.want))
		r.post(tt.body)
		if got := roles(t, r.one().body)[0]; got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if turns := r.turns(); len(turns) != 2 || turns[0].ID == turns[1].ID {
		t.Errorf("turns: %+v", turns)
	}
}

// Nobody goes on with a try that was not accepted, and clients may send an
// answer back in another form.
func TestAnswersThatComeBackOtherwise(t *testing.T) {
	for _, tt := range []struct{ answer, back string }{{"fine", "fine"}, {"<think>hm</think>fine", "<think>hm</think>\n\nfine"}, {"a\n\nb", "a b "}, {"fine", "not at all"}} {
		r := newRig(t)
		r.recall.set("refused")
		r.answers(func(received) (int, string, string) { return 502, "application/json", `{}` })
		r.post(chat("user: q"))
		r.sleep(2 * time.Minute)
		r.recall.set("fact")
		r.answers(replyWith(tt.answer))
		r.post(chat("user: q"))
		r.settle()
		r.sent()
		r.recall.set()
		r.post(chat("user: q", "assistant: "+tt.back, "user: next"))
		if got := roles(t, r.one().body)[0]; got != "user: [fact]" {
			t.Errorf("%q sent back as %q: got %q", tt.answer, tt.back, got)
		}
		if turns := r.turns(); len(turns) != 2 || turns[0].Conversation != turns[1].Conversation {
			t.Errorf("%q sent back as %q: turns %+v", tt.answer, tt.back, turns)
		}
	}
}

// In other dialects, too, and where nothing is stored.
func TestConversationsThatBeginAlikeInEach(t *testing.T) {
	inEach(t, func(t *testing.T, a api) {
		for _, header := range [][]string{nil, {"X-Remora-Memory", "read"}} {
			r := a.rig(t)
			for _, which := range []string{"one", "two"} {
				r.recall.set(which)
				r.answers(a.replyWith("answer " + which))
				r.post(a.body("user: q"), header...)
				r.settle()
				r.sleep(2 * time.Minute)
			}
			before := r.sent()
			r.recall.set()
			for i, which := range []string{"one", "two"} {
				r.post(a.body("user: q", "assistant: answer "+which, "user: next"), header...)
				a.grows(t, before[i].body, r.one().body)
			}
		}
	})
}

// A turn that is sent again within a minute is the same, also where the ledger
// tells the named conversation that it goes on.
func TestRetryOfWhatTheLedgerTells(t *testing.T) {
	r := newRig(t)
	r.recall.set("one")
	r.post(chat("user: q"), "X-Remora-Conversation", "C")
	r.recall.set("two")
	next := chat("user: q", "assistant: fine", "user: next")
	r.post(next)
	r.recall.set("three")
	if got := r.post(next); got.status != StatusReplayed {
		t.Errorf("got %s, want replayed", got.status)
	}
	if turns := r.turns(); len(turns) != 3 || turns[1].ID != turns[2].ID || turns[2].Conversation != "C" {
		t.Errorf("turns: %+v", turns)
	}
}

// What differs in its leading system messages alone is no later answer to the
// same turn: one may be the title of the other.
func TestSystemMessagesTellTurnsApart(t *testing.T) {
	for _, header := range [][]string{nil, {"X-Remora-Conversation", "c"}} {
		r := newRig(t)
		r.post(chat("system: help", "user: what is my dog's name?"), header...)
		r.sleep(5 * time.Second)
		r.answers(replyWith("Dogs"))
		r.post(chat("system: make a title", "user: what is my dog's name?"), header...)
		if turns := r.turns(); len(turns) != 2 || turns[0].ID == turns[1].ID {
			t.Errorf("%v: turns %+v", header, turns)
		}
	}
}

// A mark is of the way in which the turn was sent, and keeps no answer in
// memory.
func TestAnswerMarks(t *testing.T) {
	r := newRig(t)
	for _, which := range []string{"one", "two"} { // the second regenerates
		r.recall.set(which)
		r.answers(replyWith("answer " + which))
		r.post(chat("user: q"), "X-Remora-Conversation", "c")
		r.settle()
		r.sleep(2 * time.Minute)
	}
	r.sent()
	r.recall.set()
	for _, which := range []string{"one", "two"} {
		r.post(chat("user: q", "assistant: answer "+which, "user: next"), "X-Remora-Conversation", "c")
		if got := roles(t, r.one().body)[0]; got != "user: ["+which+"]" {
			t.Errorf("%s goes on with %q", which, got)
		}
	}
}
