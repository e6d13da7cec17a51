package proxy

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/proxytest"
	"github.com/remora-proxy/remora/recall/fence"
)

// Servers that refuse as real ones do: the first refusal costs a request, then each turn has its block where it is taken,
// and every request after it succeeds at once with the same bytes in front.
func TestStrictServers(t *testing.T) {
	for name, strictness := range map[string]proxytest.Strictness{
		"vLLM": proxytest.VLLM, "llama.cpp": proxytest.LlamaCPP, "Mistral": proxytest.Mistral, "LM Studio": proxytest.LMStudio,
	} {
		t.Run(name, func(t *testing.T) {
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
				got := r.post(chat(history...))
				history = append(history, "assistant: fine")
				want, requests := StatusInjected, 1
				if turn == 0 {
					want, requests = StatusRejected, 2
				}
				sent := llm.Requests()
				if got.code != 200 || got.status != want || len(sent) != requests {
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
			// What the client gets wrong by itself is the client's, and teaches nothing.
			llm.Reset()
			got := r.post(chat("user: a", "wizard: b"))
			if sent := llm.Requests(); got.code/100 == 2 || fence.Contains(string(sent[len(sent)-1].Body)) {
				t.Errorf("a role of the client's own: code %d", got.code)
			}
			if got := r.post(chat("user: another")); got.status != StatusInjected {
				t.Errorf("after it: status %s, want injected", got.status)
			}
		})
	}
}

// A second system message is no way out either: with system placement the block joins the one that is there.
func TestStrictServersSystemPlacement(t *testing.T) {
	llm := &proxytest.LLM{Strict: proxytest.LlamaCPP}
	up := httptest.NewServer(llm)
	defer up.Close()
	r := newRig(t, func(c *Config, _ *Deps) { c.Upstreams[0].URL = up.URL; c.Injection.Placement = PlacementSystem })
	r.recall.set("fact")
	for _, body := range []string{chat("user: q"), chat("system: s", "user: q")} {
		if got := r.post(body); got.code != 200 || got.status != StatusInjected {
			t.Errorf("code %d, status %s, want 200, injected", got.code, got.status)
		}
	}
}

// Roles must alternate in other dialects, too, where a server makes chat messages of what it gets. Messages has nothing
// to learn: its blocks stand inside the turn.
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
