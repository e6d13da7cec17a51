package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall/fence"
)

// held is the API whose upstream keeps the conversation.
func held(t *testing.T, opts ...rigOption) *rig {
	t.Helper()
	return apis[3].rig(t, opts...)
}

// after is a request that continues a response with these items.
func after(id string, lines ...string) string {
	body := strings.Replace(responsesBody(lines...), `"store":false,`, "", 1)
	if id == "" {
		return body
	}
	return strings.Replace(body, `"model":"m",`, fmt.Sprintf(`"model":"m","previous_response_id":%q,`, id), 1)
}

// as answers with a response of this id.
func (r *rig) as(id, body string) {
	r.answers(func(received) (int, string, string) {
		return 200, "application/json", strings.Replace(body, "resp_call", id, 1)
	})
}

func texts(turns []persist.Turn) []string {
	var out []string
	for _, turn := range turns {
		var said []string
		for _, m := range turn.Messages {
			said = append(said, m.Text)
		}
		out = append(out, strings.Join(said, " / "))
	}
	return out
}

// What the upstream holds is neither repeated nor recalled again, and the
// conversation stays one.
func TestResponsesAreContinued(t *testing.T) {
	r := held(t)
	r.recall.set("tea")
	r.as("resp_1", responsesAnswer("resp_1", "fine"))
	r.post(after("", "user: q1"))
	r.recall.set("tea", "cake")
	r.as("resp_2", responsesAnswer("resp_2", "fine"))
	got := r.post(after("resp_1", "user: q2"))
	if diff := cmp.Diff([]string{"user: [cake]", "user: q2"}, apis[3].lines(t, r.sent()[1].body)); diff != "" || got.status != StatusInjected {
		t.Errorf("status %s (-want +got):\n%s", got.status, diff)
	}
	got = r.post(after("resp_2", "user: q3"))
	if body := r.one().body; got.status != StatusEmpty || fence.Contains(body) {
		t.Errorf("status %s; both memories stand at the upstream, want empty: %s", got.status, body)
	}
	turns := r.turns()
	if turns[0].Conversation == "" || turns[0].Conversation != turns[1].Conversation || turns[1].Conversation != turns[2].Conversation {
		t.Errorf("conversations %q, %q and %q, want one", turns[0].Conversation, turns[1].Conversation, turns[2].Conversation)
	}
	asked := r.recall.asked()
	if asked[1].Previous() != "q1" || asked[2].Previous() != "q2" {
		t.Errorf("asked after %q and %q, want what was said before", asked[1].Previous(), asked[2].Previous())
	}
	for i, turn := range turns[:2] {
		if !visible(asked[2], turn.Chain) {
			t.Errorf("turn %d is not named as visible", i)
		}
	}
	// Another branch from the first response: the second's memory does not
	// stand there.
	r.post(after("resp_1", "user: other"))
	if diff := cmp.Diff([]string{"user: [cake]", "user: other"}, apis[3].lines(t, r.one().body)); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}

// A retry of the same continuation is the same turn with the same bytes.
func TestResponsesRetry(t *testing.T) {
	r := held(t)
	r.recall.set("one")
	r.post(after("resp_0", "user: q"))
	r.recall.set("two")
	r.sleep(30 * time.Second)
	if got := r.post(after("resp_0", "user: q")); got.status != StatusReplayed {
		t.Errorf("status %s, want replayed", got.status)
	}
	if sent := r.sent(); sent[0].body != sent[1].body {
		t.Errorf("other bytes:\n%s\n%s", sent[0].body, sent[1].body)
	}
	r.post(after("resp_other", "user: q"))
	if turns := r.turns(); turns[0].ID != turns[1].ID || turns[1].ID == turns[2].ID {
		t.Errorf("ids %s, %s and %s, want the first two alike", turns[0].ID, turns[1].ID, turns[2].ID)
	}
}

// A tool loop whose steps show nothing but results ends in the turn that it
// began with.
func TestResponsesToolLoop(t *testing.T) {
	for _, placement := range []string{PlacementItem, PlacementInstructions} {
		r := held(t, func(c *Config, _ *Deps) { c.Injection.Responses = placement })
		r.recall.set("fact")
		r.as("resp_1", responsesCalling)
		r.post(after("", "user: do it"))
		first := r.one().body
		r.as("resp_2", responsesCalling)
		r.sleep(2 * time.Minute)
		got := r.post(after("resp_1", "result: c"))
		r.as("resp_3", responsesAnswer("resp_3", "done"))
		last := r.post(after("resp_2", "result: c"))
		want := []string{"result: c"}
		status := StatusEmpty
		if placement == PlacementInstructions { // which the upstream does not keep
			want, status = []string{"system: [fact]", "result: c"}, StatusReplayed
		}
		sent := r.sent()
		for i := range sent {
			if diff := cmp.Diff(want, apis[3].lines(t, sent[i].body)); diff != "" {
				t.Errorf("%s, step %d (-want +got):\n%s", placement, i+1, diff)
			}
		}
		if got.status != status || last.status != status || !fence.Contains(first) {
			t.Errorf("%s: status %s and %s, want %s; first %s", placement, got.status, last.status, status, first)
		}
		if n := len(r.recall.asked()); n != 1 {
			t.Errorf("%s: recalled %d times, want 1", placement, n)
		}
		if diff := cmp.Diff([]string{"do it / done"}, texts(r.turns())); diff != "" {
			t.Errorf("%s: turns (-want +got):\n%s", placement, diff)
		}
	}
}

func TestResponsesSurviveRestart(t *testing.T) {
	r := held(t)
	r.recall.set("tea")
	r.as("resp_1", responsesAnswer("resp_1", "fine"))
	r.post(after("", "user: q1"))
	first := r.turns()
	r.h.ledger.Flush(t.Context())
	again := apis[3].restart(r)
	again.recall.set("tea", "cake")
	again.post(after("resp_1", "user: q2"))
	if diff := cmp.Diff([]string{"user: [cake]", "user: q2"}, apis[3].lines(t, again.one().body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if turns := again.turns(); turns[0].Conversation != first[0].Conversation {
		t.Errorf("conversation %q, want %q", turns[0].Conversation, first[0].Conversation)
	}
	for _, s := range segments(t, r.local) {
		if strings.Contains(string(s.Value), "q1") {
			t.Error("what the user said is stored with the ledger")
		}
	}
	// Past its time a position is gone.
	r.sleep(r.h.cfg.Ledger.TTL + time.Hour)
	late := apis[3].restart(r)
	late.recall.set("tea")
	late.post(after("resp_1", "user: q2"))
	if diff := cmp.Diff([]string{"user: [tea]", "user: q2"}, apis[3].lines(t, late.one().body)); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}

// Nobody can continue what another user's response left.
func TestPositionsStayWithTheirUser(t *testing.T) {
	r := held(t)
	r.recall.set("tea")
	r.as("resp_1", responsesCalling)
	r.post(after("", "user: secret"), identity.HeaderUser, "ann")
	r.as("resp_2", responsesAnswer("resp_2", "done"))
	r.post(after("resp_1", "result: c"), identity.HeaderUser, "bob")
	if turns := r.turns(); len(turns) != 0 {
		t.Errorf("bob's request persisted %v", texts(turns))
	}
}

func TestResponsesHeldConversation(t *testing.T) {
	body := func(text string) string {
		return fmt.Sprintf(`{"model":"m","conversation":{"id":"conv_1"},"input":%q}`, text)
	}
	r := held(t)
	r.recall.set("fact")
	for i, text := range []string{"go on", "go on"} {
		r.as("", responsesAnswer(fmt.Sprint("resp_", i), "fine"))
		got := r.post(body(text))
		if up := r.one(); got.status != StatusUnsupported || up.body != body(text) {
			t.Errorf("status %s, want unsupported with the body unchanged", got.status)
		}
	}
	turns := r.turns()
	if len(turns) != 2 || turns[0].ID == turns[1].ID || turns[0].Conversation != "conv_1" || turns[1].Conversation != "conv_1" {
		t.Errorf("turns %+v, want two of conv_1", turns)
	}
	if n := len(r.recall.asked()); n != 0 {
		t.Errorf("recalled %d times for nothing", n)
	}
	// Instructions are not kept with the conversation.
	r = held(t, func(c *Config, _ *Deps) { c.Injection.Responses = PlacementInstructions })
	r.recall.set("fact")
	if got := r.post(body("hi")); got.status != StatusInjected {
		t.Errorf("status %s, want injected", got.status)
	}
	if diff := cmp.Diff([]string{"system: [fact]", "user: hi"}, apis[3].lines(t, r.one().body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResponsesStringInput(t *testing.T) {
	r := held(t)
	r.recall.set("fact")
	r.post(`{"input":"q1","model":"m"}`)
	first := r.one().body
	if diff := cmp.Diff([]string{"user: [fact]", "user: q1"}, apis[3].lines(t, first)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.recall.set()
	for _, item := range []string{
		`{"role":"user","content":"q1"}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"q1"}]}`,
	} {
		got := r.post(`{"input":[` + item + `,{"role":"assistant","content":"fine"},{"role":"user","content":"q2"}],"model":"m"}`)
		want := []string{"user: [fact]", "user: q1", "assistant: fine", "user: q2"}
		if diff := cmp.Diff(want, apis[3].lines(t, r.one().body)); diff != "" || got.status != StatusReplayed {
			t.Errorf("status %s (-want +got):\n%s", got.status, diff)
		}
	}
}

func TestResponsesThatAreNoTurns(t *testing.T) {
	done := responsesAnswer("resp_1", "fine")
	status := func(s, details string) string {
		return strings.Replace(done, `"status":"completed","error":null`, fmt.Sprintf(`"status":%q,"incomplete_details":%s`, s, details), 1)
	}
	for _, tt := range []struct {
		name, request, answer string
		want                  int
	}{
		{"completed", "", done, 1},
		{"length", "", status("incomplete", `{"reason":"max_output_tokens"}`), 1},
		{"filtered", "", status("incomplete", `{"reason":"content_filter"}`), 0},
		{"cancelled", "", status("cancelled", "null"), 0},
		{"queued", "", status("queued", "null"), 0},
		{"failed", "", status("failed", "null"), 0},
		{"background", `"background":true,`, done, 0},
		{"refusal", "", strings.Replace(done, `{"type":"output_text","text":"fine","annotations":[]}`, `{"type":"refusal","refusal":"no"}`, 1), 0},
		{"calls", "", responsesCalling, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := held(t)
			r.as("", tt.answer)
			r.post(`{` + tt.request + `"model":"m","input":"q"}`)
			if n := len(r.turns()); n != tt.want {
				t.Errorf("persisted %d turns, want %d", n, tt.want)
			}
		})
	}
}

// Where the answer is encoded or streamed, its id is found all the same, and
// before the client can use it.
func TestResponseIDs(t *testing.T) {
	_, events := responsesStream("fine")
	for _, encoding := range []string{"", "gzip", "br", "zstd"} {
		for name, plain := range map[string]string{"application/json": responsesAnswer("resp_s", "fine"), "text/event-stream": events} {
			r := held(t)
			sent := plain
			if encoding != "" {
				sent = encode(t, encoding, plain)
			}
			r.encoding = encoding
			r.answers(func(received) (int, string, string) { return 200, name, sent })
			r.post(after("", "user: q1"), "Accept-Encoding", "gzip, br, zstd")
			r.post(after("resp_s", "user: q2"), "Accept-Encoding", "gzip, br, zstd")
			turns := r.turns()
			if len(turns) != 2 || turns[0].Conversation != turns[1].Conversation {
				t.Errorf("%q %s: %d turns, want two of one conversation", encoding, name, len(turns))
			}
		}
	}
}

// A response that nothing can continue leaves no position.
func TestUnstoredResponsesLeaveNoPosition(t *testing.T) {
	for store, want := range map[string]int{`"store":false,`: 1, "": 2} {
		r := held(t)
		r.post(`{` + store + `"model":"m","input":"q"}`)
		r.settle()
		r.h.ledger.Flush(t.Context())
		if n := storedEntries(t, r.local); n != want {
			t.Errorf("%q: %d entries, want %d", store, n, want)
		}
	}
}

// What belongs to a response, and what is no conversation, passes as it came.
func TestNeighboursPassThrough(t *testing.T) {
	weird := "{ \"input\" : \"h\\u00e9\",\"prompt\":\"p\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\n\"n\":1.50e0 , \"model\":\"m\"}"
	r := held(t)
	r.recall.set("must not show")
	for _, path := range []string{
		"/v1/completions", "/api/generate", "/v1/embeddings", "/api/embed", "/api/embeddings", "/api/pull", "/v1/responses/resp_1/cancel", "/v1/conversations", "/v1/messages/batches", "/v1/threads/t/messages", "/v1/audio/speech",
		"/v1/complete", "/v1/rerank",
	} {
		got := r.postTo(path, weird)
		if up := r.one(); got.status != StatusUnsupported || up.body != weird || up.path != path {
			t.Errorf("%s: status %s, upstream got %q at %s", path, got.status, up.body, up.path)
		}
	}
	for _, path := range []string{"/v1/responses/resp_1", "/v1/responses/resp_1?stream=true", "/v1/responses/resp_1/input_items", "/v1/messages"} {
		req, err := http.NewRequest(http.MethodGet, r.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		r.posted++
		if r.one(); resp.Header.Get(headerStatus) != string(StatusUnsupported) {
			t.Errorf("GET %s: status %s", path, resp.Header.Get(headerStatus))
		}
	}
}
