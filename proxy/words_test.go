package proxy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/dialect"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/ledger"
)

// What was said before a tool loop was steered has no answer of its own, so it
// is kept with the turn that gets one. All else of the turn is the newest
// message's.
func TestSteeredTurns(t *testing.T) { inEach(t, testSteeredTurns) }

func testSteeredTurns(t *testing.T, a api) {
	const first, steer = "I'm allergic to peanuts, plan the dinner", "make it quick"
	r := a.rig(t)
	r.answers(func(received) (int, string, string) { return 200, "application/json", a.calling })
	lines := []string{"user: " + first}
	r.post(a.body(lines...))
	lines = append(lines, "call: c1", "result: c1")
	r.post(a.body(lines...))
	lines = append(lines, "user: "+steer)
	r.post(a.body(lines...))
	lines = append(lines, "call: c2", "result: c2")
	if got := texts(r.turns()); len(got) > 0 {
		t.Fatalf("turns without an answer: %q", got)
	}
	r.answers(a.replyWith("Risotto."))
	r.post(a.body(lines...))
	r.sleep(10 * time.Second)
	r.post(a.body(lines...)) // a retry
	turns := r.turns()
	want := first + "\n\n" + steer + " / Risotto."
	if diff := cmp.Diff([]string{want, want}, texts(turns)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if asked := r.recall.asked(); len(asked) != 2 || asked[1].Newest != steer || asked[1].Previous() != first {
		t.Errorf("asked for %+v", asked)
	}
	steered := turns[0]
	if turns[1].ID != steered.ID {
		t.Errorf("a retry is another turn: %s, then %s", steered.ID, turns[1].ID)
	}

	r.post(a.body(append(lines, "assistant: Risotto.", "user: and a dessert?")...))
	if diff := cmp.Diff([]string{"and a dessert? / Risotto."}, texts(r.turns())); diff != "" {
		t.Errorf("what was answered is kept again (-want +got):\n%s", diff)
	}
	if asked := r.recall.asked(); len(asked) != 1 || !visible(asked[0], steered.Chain) || asked[0].Previous() != steer {
		t.Errorf("asked for %+v, want it to know of the turn %s", asked, steered.Chain)
	}
}

func parsed(t *testing.T, a api, body string) *dialect.Request {
	t.Helper()
	d := map[string]dialect.Dialect{"chat": dialect.Chat{}, "messages": dialect.Messages{}, "messages marked": dialect.Messages{}, "responses": dialect.Responses{}, "ollama": dialect.Ollama{}, "gemini": dialect.Gemini{}}[a.name]
	req, err := d.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// Which earlier messages nothing has answered, as far as a request shows it.
func TestUnanswered(t *testing.T) {
	long := strings.Repeat("x", maxUnansweredBytes/2)
	reminder := "user: <system-reminder>be brief</system-reminder>"
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"nothing before", []string{"user: a"}, nil},
		{"an answer", []string{"user: a", "assistant: b", "user: c"}, nil},
		{"an answer behind a loop", []string{"user: a", "call: 1", "result: 1", "assistant: b", "user: c"}, nil},
		{"a loop", []string{"user: a", "call: 1", "result: 1", "user: c"}, []string{"a"}},
		{"a call that never ran", []string{"user: a", "call: 1", "user: c"}, []string{"a"}},
		{"text before a call", []string{"user: a", "assistant: let me see", "call: 1", "result: 1", "user: c"}, []string{"a"}},
		{"an answer, then one with a call", []string{"user: a", "assistant: b", "user: c", "assistant: let me see", "call: 1", "result: 1", "user: d"}, []string{"c"}},
		{"an answer, and a harness before the call", []string{"user: a", "assistant: b", reminder, "call: 1", "result: 1", "user: d"}, nil},
		{"steered twice", []string{"user: a", "call: 1", "result: 1", "user: b", "call: 2", "result: 2", "user: c"}, []string{"a", "b"}},
		{"a harness between", []string{"user: a", reminder, "call: 1", "result: 1", reminder, "user: c"}, []string{"a"}},
		{"the newest is a harness's", []string{"user: a", "call: 1", "result: 1", "user: c", reminder}, []string{"a"}},
		{"two in a row behind an answer", []string{"user: a", "assistant: b", "user: c", "user: d"}, []string{"c"}},
		{"two in a row in a loop", []string{"user: a", "call: 1", "result: 1", "user: b", "user: c"}, []string{"a", "b"}},
		{"in the midst of the newest turn's loop", []string{"user: a", "call: 1", "result: 1", "user: b", "call: 2", "result: 2"}, []string{"a"}},

		// Clients that keep no answers: each of these was a turn already.
		{"nothing but user messages", []string{"user: a", "user: b", "user: c"}, nil},
		{"with a system prompt", []string{"system: s", "user: a", "user: b", "user: c"}, nil},
		{"with the loop that goes on", []string{"user: a", "user: b", "user: c", "call: 1", "result: 1"}, nil},
		{"with a loop that was steered", []string{"user: a", "user: b", "call: 1", "result: 1", "user: c"}, []string{"b"}},
		{"behind a setup and its reply", append(setup[1:3:3], "user: a", "user: b"), nil},
		{"behind a greeting", []string{"assistant: Hello!", "user: a", "user: b"}, nil},

		{"as many as are kept", slices.Concat([]string{"user: z", "assistant: y"}, each("user: ", "1", "2", "3", "4", "5")), []string{"1", "2", "3", "4"}},
		{"more", slices.Concat([]string{"user: z", "assistant: y"}, each("user: ", "1", "2", "3", "4", "5", "6")), []string{"2", "3", "4", "5"}},
		{"as much as is kept", []string{"user: " + long, "call: 1", "result: 1", "user: " + long, "call: 2", "result: 2", "user: c"}, []string{long, long}},
		{"too much", []string{"user: a", "call: 0", "user: b" + long, "call: 1", "result: 1", "user: " + long, "call: 2", "result: 2", "user: c"}, []string{long}},
	} {
		for _, a := range apis {
			if strings.HasPrefix(a.name, "messages") && strings.HasPrefix(tt.lines[0], "assistant") {
				continue
			}
			req := parsed(t, a, a.body(tt.lines...))
			x := &reading{req: req, client: profileOf("")}
			if strings.HasPrefix(tt.name, "behind a setup") {
				x.client = profileOf("", identity.Client{Name: "*", Harness: []identity.Opening{{Begins: "This is the Qwen Code."}}})
			}
			if err := x.demoteResults(); err != nil {
				t.Fatal(err)
			}
			x.readNewest()
			_, at := x.words()
			if diff := cmp.Diff(tt.want, x.unanswered(at, &ledger.Walk{})); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.name, a.name, diff)
			}
		}
	}
}

func each(before string, texts ...string) (out []string) {
	for _, text := range texts {
		out = append(out, before+text)
	}
	return out
}

// Text that nobody may read any more is not kept.
func TestUnansweredIsBoundedInReading(t *testing.T) {
	req := parsed(t, apis[0], chat("user: a", "call: 1", "result: 1", "user: c"))
	x := &reading{req: req, client: profileOf(""), spent: maxRead}
	if got := x.unanswered(req.Turn, &ledger.Walk{}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// A step that calls comes with what the assistant says beside the call, in one
// message.
func TestTextBesideACallIsNoAnswer(t *testing.T) {
	body := strings.Replace(chat("user: a", "call: 1", "result: 1", "user: c"), `"content":null`, `"content":"let me see"`, 1)
	req := parsed(t, apis[0], body)
	x := &reading{req: req, client: profileOf("")}
	if diff := cmp.Diff([]string{"a"}, x.unanswered(req.Turn, &ledger.Walk{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The same where the upstream holds what was said first: results at the
// beginning of the input show that the response before them called, so that
// nothing has answered it.
func TestHeldTurnsAreSteered(t *testing.T) {
	r := held(t)
	r.as("resp_1", responsesCalling)
	r.post(after("", "user: I'm allergic to peanuts, plan the dinner"))
	r.as("resp_2", responsesCalling)
	r.post(after("resp_1", "result: c", "user: for four"))
	r.as("resp_3", responsesCalling)
	r.post(after("resp_2", "result: c", "user: make it quick"))
	r.as("resp_4", responsesAnswer("resp_4", "Risotto."))
	r.post(after("resp_3", "result: c"))
	const want = "I'm allergic to peanuts, plan the dinner\n\nfor four\n\nmake it quick / Risotto."
	if diff := cmp.Diff([]string{want}, texts(r.turns())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.as("resp_5", responsesAnswer("resp_5", "Cake."))
	r.post(after("resp_4", "user: and a dessert?"))
	if diff := cmp.Diff([]string{"and a dessert? / Cake."}, texts(r.turns())); diff != "" {
		t.Errorf("what was answered is kept again (-want +got):\n%s", diff)
	}
	asked := r.recall.asked()
	if len(asked) != 4 || asked[2].Newest != "make it quick" || asked[2].Previous() != "for four" || asked[3].Previous() != "make it quick" {
		t.Errorf("asked for %+v", asked)
	}
}

// What was answered is in a turn, though the client has dropped the answer.
func TestWordsWhoseAnswerIsDropped(t *testing.T) {
	r := newRig(t)
	r.post(chat("user: one", "assistant: a", "user: two"))
	r.settle()
	r.post(chat("user: one", "assistant: a", "user: two", "user: three"))
	r.settle()
	r.post(chat("user: one", "assistant: a", "user: two", "user: three", "user: four"))
	var got []string
	for _, turn := range r.turns() {
		got = append(got, turn.Messages[0].Text)
	}
	if diff := cmp.Diff([]string{"two", "three", "four"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
