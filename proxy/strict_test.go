package proxy

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/recall/fence"
)

// Servers that refuse as real ones do: the first refusal costs a request, then
// each turn has its block where it is taken, and every request after it
// succeeds at once with the same bytes in front.
func TestStrictServers(t *testing.T) {
	for name, strictness := range map[string]proxytest.Strictness{
		"vLLM": proxytest.VLLM, "llama.cpp": proxytest.LlamaCPP, "Mistral": proxytest.Mistral, "LM Studio": proxytest.LMStudio,
		"LM Studio, stream": proxytest.LMStudio,
	} {
		t.Run(name, func(t *testing.T) {
			asked := func(body string) string { return body }
			if strings.HasSuffix(name, "stream") {
				asked = streaming
			}
			llm := &proxytest.LLM{Strict: strictness, Answer: func(proxytest.Recorded) proxytest.Reply { return proxytest.Reply{Text: "fine"} }}
			up := httptest.NewServer(llm)
			defer up.Close()
			r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL })
			history := []string{"system: be kind"}
			previous := ""
			for turn := range 5 {
				r.recall.set(fmt.Sprint("fact ", turn))
				history = append(history, fmt.Sprint("user: q", turn))
				llm.Reset()
				got := r.post(asked(chat(history...)))
				history = append(history, "assistant: fine")
				want, requests := StatusInjected, 1
				if turn == 0 {
					want, requests = StatusRejected, 2
				}
				sent := llm.Requests()
				if got.code != 200 || got.status != want || len(sent) != requests || !strings.Contains(got.body, "fine") {
					t.Fatalf("turn %d: code %d, status %s after %d requests, want 200, %s after %d", turn, got.code, got.status, len(sent), want, requests)
				}
				body := string(sent[len(sent)-1].Body)
				apis[0].grows(t, previous, body)
				previous = body
			}
			want := []string{
				"system: be kind", "user: q0", "assistant: fine", "user: [fact 1]\n\nq1", "assistant: fine", "user: [fact 2]\n\nq2", "assistant: fine",
				"user: [fact 3]\n\nq3", "assistant: fine", "user: [fact 4]\n\nq4",
			}
			if diff := cmp.Diff(want, roles(t, previous)); diff != "" {
				t.Errorf("last request (-want +got):\n%s", diff)
			}
			// What the client gets wrong by itself is the client's, and teaches
			// nothing. Streams to a model that takes blocks there are not
			// looked at before they pass on, so the refusal is that of the
			// request with them.
			llm.Reset()
			got := r.post(asked(chat("user: a", "wizard: b")))
			if sent := llm.Requests(); !strings.Contains(got.body, "role") || fence.Contains(string(sent[len(sent)-1].Body)) != (name == "LM Studio, stream") {
				t.Errorf("a role of the client's own: code %d", got.code)
			}
			if got := r.post(asked(chat("user: another"))); got.status != StatusInjected {
				t.Errorf("after it: status %s, want injected", got.status)
			}
		})
	}
}

// A second system message is no way out either: with system placement the block
// joins the one that is there.
func TestStrictServersSystemPlacement(t *testing.T) {
	llm := &proxytest.LLM{Strict: proxytest.LlamaCPP}
	up := httptest.NewServer(llm)
	defer up.Close()
	r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL; c.Injection.Placement = PlacementSystem })
	r.recall.set("fact")
	for _, body := range []string{chat("user: q"), chat("system: s", "user: another")} {
		if got := r.post(body); got.code != 200 || got.status != StatusInjected {
			t.Errorf("code %d, status %s, want 200, injected", got.code, got.status)
		}
	}
}

// Roles must alternate in other dialects, too, where a server makes chat
// messages of what it gets. Messages has nothing to learn: its blocks stand
// inside the turn.
func TestStrictTemplatesOfOtherDialects(t *testing.T) {
	for _, a := range []api{apis[1], apis[3], apis[4]} {
		t.Run(a.name, func(t *testing.T) {
			r := a.rig(t)
			refused := 0
			r.answers(func(got received) (int, string, string) {
				before := ""
				in := object(t, got.body)
				list, _ := in["messages"].([]any)
				items, _ := in["input"].([]any)
				for _, m := range append(list, items...) {
					role, _ := m.(map[string]any)["role"].(string)
					if role == "user" && before == "user" {
						refused++
						return 500, "application/json", `{"error":{"code":500,"message":"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`
					}
					before = role
				}
				return a.replyWith("fine")(got)
			})
			r.recall.set("one")
			r.post(a.body("user: q1"))
			r.recall.set("one", "two")
			got := r.post(a.body("user: q1", "assistant: fine", "user: q2"))
			if got.code != 200 || got.status != StatusInjected {
				t.Fatalf("code %d, status %s, want 200, injected", got.code, got.status)
			}
			if want := 1; a.name == "messages" && refused != 0 || a.name != "messages" && refused != want {
				t.Errorf("refused %d times", refused)
			}
			sent := r.sent()
			r.recall.set()
			r.sleep(time.Hour)
			r.post(a.body("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3"))
			a.grows(t, sent[len(sent)-1].body, r.one().body)
		})
	}
}

func TestStrictTemplates(t *testing.T) {
	const twice = `{"error":{"code":500,"message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`
	strict := func(code int, refuses func(received) bool, refusal string) func(received) (int, string, string) {
		ok := replyWith("fine")
		return func(got received) (int, string, string) {
			if refuses(got) {
				return code, "application/json", refusal
			}
			return ok(got)
		}
	}
	adjacent := func(got received) bool {
		var in struct{ Messages []struct{ Role string } }
		_ = json.Unmarshal([]byte(got.body), &in)
		for i := 1; i < len(in.Messages); i++ {
			if in.Messages[i].Role == "user" && in.Messages[i-1].Role == "user" {
				return true
			}
		}
		return false
	}
	for _, code := range []int{400, 422, 500} {
		t.Run(fmt.Sprint("two users ", code), func(t *testing.T) {
			r := newRig(t)
			r.answers(strict(code, adjacent, twice))
			r.recall.set("fact")
			body := chat("user: q1")
			got := r.post(body)
			if up := r.sent(); got.code != 200 || got.status != StatusRejected || len(up) != 2 || up[1].body != body {
				t.Fatalf("code %d, status %s, %d requests; want the original sent once after the refusal", got.code, got.status, len(up))
			}
			// Learned: the block is part of the user's message, and of that
			// turn for good. The refused turn stays bare.
			got = r.post(chat("user: q1", "assistant: fine", "user: q2"))
			if got.status != StatusInjected {
				t.Errorf("status %s, want injected", got.status)
			}
			want := []string{"user: q1", "assistant: fine", "user: [fact]\n\nq2"}
			if diff := cmp.Diff(want, roles(t, r.one().body)); diff != "" {
				t.Errorf("second turn (-want +got):\n%s", diff)
			}
			r.recall.set()
			got = r.post(chat("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3"))
			want = append(want, "assistant: fine", "user: q3")
			if diff := cmp.Diff(want, roles(t, r.one().body)); diff != "" {
				t.Errorf("third turn (-want +got):\n%s", diff)
			}
			if got.code != 200 || got.status != StatusReplayed {
				t.Errorf("code %d, status %s, want 200, replayed", got.code, got.status)
			}
		})
	}
	t.Run("context length teaches nothing", func(t *testing.T) {
		r := newRig(t)
		r.answers(strict(400, func(got received) bool { return fence.Contains(got.body) },
			`{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`))
		r.recall.set("fact")
		got := r.post(chat("user: q1"))
		if n := len(r.sent()); got.code != 200 || got.status != StatusRejected || n != 2 {
			t.Fatalf("code %d, status %s, %d requests; want 200, rejected, 2", got.code, got.status, n)
		}
		r.answers(replyWith("fine"))
		r.post(chat("user: q1", "assistant: fine", "user: q2"))
		want := []string{"user: q1", "assistant: fine", "user: [fact]", "user: q2"}
		if diff := cmp.Diff(want, roles(t, r.one().body)); diff != "" {
			t.Errorf("next turn (-want +got):\n%s", diff)
		}
	})
	t.Run("the original is refused too", func(t *testing.T) {
		r := newRig(t)
		r.answers(strict(400, func(received) bool { return true }, `{"error":{"message":"bad temperature"}}`))
		r.recall.set("fact")
		got := r.post(chat("user: q1"))
		if n := len(r.sent()); got.code != 400 || n != 2 || !strings.Contains(got.body, "bad temperature") {
			t.Fatalf("code %d after %d requests, want the original's 400 after 2", got.code, n)
		}
		r.answers(replyWith("fine"))
		r.sleep(2 * time.Minute)
		r.post(chat("user: q1"))
		if diff := cmp.Diff([]string{"user: [fact]", "user: q1"}, roles(t, r.one().body)); diff != "" {
			t.Errorf("a refusal of both taught something (-want +got):\n%s", diff)
		}
	})
	t.Run("an ordinary 500 is the client's", func(t *testing.T) {
		r := newRig(t)
		r.answers(strict(500, func(received) bool { return true }, `{"error":{"message":"out of GPU memory"}}`))
		r.recall.set("fact")
		got := r.post(chat("user: q1"))
		if n := len(r.sent()); got.code != 500 || n != 1 || !strings.Contains(got.body, "GPU") {
			t.Errorf("code %d after %d requests, want the upstream's 500 after 1", got.code, n)
		}
	})
	t.Run("no placement is accepted", func(t *testing.T) {
		r := newRig(t)
		r.answers(strict(400, func(got received) bool { return fence.Contains(got.body) }, `{"error":{"message":"no"}}`))
		r.recall.set("fact")
		// The refusals say nothing, so it takes two of them for each step.
		for i, want := range []Status{StatusRejected, StatusRejected, StatusRejected, StatusRejected, StatusUnsupported} {
			if got := r.post(chat(fmt.Sprint("user: q", i))); got.status != want || got.code != 200 {
				t.Errorf("request %d: code %d, status %s, want 200, %s", i, got.code, got.status, want)
			}
		}
		r.sent()
		r.sleep(2 * time.Hour)
		r.answers(replyWith("fine"))
		if got := r.post(chat("user: later")); got.status != StatusInjected {
			t.Errorf("hours later: status %s, want another try", got.status)
		}
	})
}

// What an upstream says about a text teaches nothing about places, and one odd
// refusal harms nobody else.
func TestRefusalsThatTeachNothing(t *testing.T) {
	for name, refusal := range map[string]string{
		"content filter": `{"error":{"code":"content_filter","message":"The response was filtered due to the prompt triggering Azure's content management policy."}}`,
		"once":           `{"error":{"message":"odd"}}`,
	} {
		r := newRig(t)
		r.recall.set("fact")
		r.answers(func(got received) (int, string, string) {
			if fence.Contains(got.body) {
				return 400, "application/json", refusal
			}
			return replyWith("fine")(got)
		})
		n := 1
		if name == "content filter" {
			n = 5
		}
		for i := range n {
			if got := r.post(chat(fmt.Sprint("user: q", i))); got.status != StatusRejected {
				t.Errorf("%s: status %s, want rejected", name, got.status)
			}
		}
		r.answers(replyWith("fine"))
		r.sent()
		r.post(chat("user: another"), identity.HeaderUser, "somebody else")
		if diff := cmp.Diff([]string{"user: [fact]", "user: another"}, roles(t, r.one().body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A lesson changes where blocks stand once, and for good: no expiry, pause or
// restart moves what was sent.
func TestLessonsKeepThePrefix(t *testing.T) {
	strict := func(got received) (int, string, string) {
		var in struct{ Messages []struct{ Role string } }
		_ = json.Unmarshal([]byte(got.body), &in)
		for i := 1; i < len(in.Messages); i++ {
			if in.Messages[i].Role == "user" && in.Messages[i-1].Role == "user" {
				return 400, "application/json", `{"error":{"message":"roles must alternate"}}`
			}
		}
		return replyWith("fine")(got)
	}
	r := newRig(t)
	r.recall.set("one")
	r.post(chat("user: q1")) // before the server became strict
	r.answers(strict)
	r.recall.set("two")
	r.post(chat("user: other")) // learns
	r.recall.set()
	r.sent()
	r.post(chat("user: q1", "assistant: fine", "user: q2"))
	moved := r.one().body
	if diff := cmp.Diff([]string{"user: [one]\n\nq1", "assistant: fine", "user: q2"}, roles(t, moved)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	r.sleep(25 * time.Hour / 2)
	r.post(chat("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3"))
	r.sleep(25 * time.Hour / 2) // the lesson is over
	r.sent()
	r.post(chat("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3", "assistant: fine", "user: q4"))
	if got := r.one().body; !strings.HasPrefix(got, strings.TrimSuffix(moved, "]}")) {
		t.Errorf("after the lesson the block moved:\n%s\n%s", moved, got)
	}
	r.h.ledger.Flush(t.Context())
	again := restart(r)
	again.answers(strict)
	again.recall.set("new")
	if got := again.post(chat("user: q1", "assistant: fine", "user: q2", "assistant: fine", "user: q3")); got.status == StatusRejected {
		t.Error("a restart forgot the place that the conversation's own blocks tell")
	}
}
