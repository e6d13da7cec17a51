package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/telemetry"
)

func messagesRig(t *testing.T, opts ...rigOption) *rig {
	t.Helper()
	return apis[1].rig(t, opts...)
}

// The form of a turn and the place of the marks change from request to request;
// what was inserted stays.
func TestFormsOfATurnReplayAlike(t *testing.T) {
	body := func(turns ...string) string {
		return `{"model":"m","messages":[` + strings.Join(turns, ",") + `]}`
	}
	const mark = `"cache_control":{"type":"ephemeral"}`
	forms := []string{
		`{"role":"user","content":"q1"}`,
		`{"role":"user","content":[{"type":"text","text":"q1"}]}`,
		`{"role":"user","content":[{"type":"text","text":"q1",` + mark + `}]}`,
		`{"content":[{` + mark + `,"text":"q1","type":"text"}],"role":"user"}`,
	}
	for i, before := range forms {
		for j, after := range forms {
			r := messagesRig(t)
			r.recall.set("fact")
			r.post(body(before))
			first := r.one().body
			r.recall.set()
			got := r.post(body(after, `{"role":"assistant","content":"fine"}`, `{"role":"user","content":"q2"}`))
			if got.status != StatusReplayed {
				t.Errorf("form %d after %d: status %s, want replayed", j, i, got.status)
			}
			marked := apis[2]
			marked.grows(t, first, r.one().body)
		}
	}
}

// No prefix that the client marks is cut short, but the one that ends with the
// turn itself.
func TestMarkedPrefixesStayWhole(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	doc := `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"long"},` + mark + `}`
	r := messagesRig(t)
	for i, question := range []string{"who?", "when?"} {
		r.recall.set(fmt.Sprintf("fact %d", i))
		head := `{"model":"m","messages":[{"role":"user","content":[` + doc + `,`
		r.post(head + fmt.Sprintf(`{"type":"text","text":%q}]}]}`, question))
		got := r.one().body
		if !strings.HasPrefix(got, head) || !fence.Contains(got) {
			t.Errorf("the marked document is not where it was: %s", got)
		}
		r.sleep(time.Hour)
	}
}

// What a harness adds to tool results is a part of the loop, what a person adds
// is a turn, and results stay in front.
func TestTextBesideToolResults(t *testing.T) {
	loop := func(text string) string {
		return `{"model":"m","messages":[{"role":"user","content":"do it"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"},{"type":"text","text":"` + text + `"}]}]}`
	}
	r := messagesRig(t)
	r.recall.set("one")
	r.post(`{"model":"m","messages":[{"role":"user","content":"do it"}]}`)
	r.recall.set("one", "two")
	r.sent()
	got := r.post(loop(`<system-reminder>be brief</system-reminder>`))
	want := []string{"user: [one]", "user: do it", "call: c", "result: c", "user: <system-reminder>be brief</system-reminder>"}
	if diff := cmp.Diff(want, apis[1].lines(t, r.one().body)); diff != "" || got.status != StatusReplayed {
		t.Errorf("reminder: status %s (-want +got):\n%s", got.status, diff)
	}
	got = r.post(loop(`stop, do this instead`))
	want = []string{"user: [one]", "user: do it", "call: c", "result: c", "user: [two]", "user: stop, do this instead"}
	if diff := cmp.Diff(want, apis[1].lines(t, r.one().body)); diff != "" || got.status != StatusInjected {
		t.Errorf("a person: status %s (-want +got):\n%s", got.status, diff)
	}
	said := texts(r.turns())
	slices.Sort(said)
	if diff := cmp.Diff([]string{"do it\n\nstop, do this instead / fine", "do it / fine", "do it / fine"}, said); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestCountTokens(t *testing.T) {
	for _, tt := range []struct {
		a     api
		count string
	}{{apis[1], "/v1/messages/count_tokens?beta=true"}, {apis[3], "/v1/responses/input_tokens"}} {
		r := tt.a.rig(t)
		asks := func(body string) (seen, string) {
			t.Helper()
			got := r.postTo(tt.count, body)
			return got, r.one().body
		}
		q1 := tt.a.body("user: q1")
		r.recall.set("fact")
		if got, up := asks(q1); got.status != StatusEmpty || up != q1 {
			t.Errorf("%s: an unknown turn: status %s, body %s", tt.a.name, got.status, up)
		}
		r.post(q1)
		sent := r.one().body
		if got, up := asks(q1); got.status != StatusReplayed || up != sent {
			t.Errorf("%s: the turn just sent: status %s, counted %s, sent %s", tt.a.name, got.status, up, sent)
		}
		r.settle()
		asked, turns := len(r.recall.asked()), len(r.turns())
		r.h.ledger.Flush(t.Context())
		stored := len(segments(t, r.local))
		next := tt.a.body("user: q1", "assistant: fine", "user: q2")
		_, counted := asks(next)
		tt.a.grows(t, sent, counted)
		r.h.ledger.Flush(t.Context())
		if n := len(segments(t, r.local)); asked != 1 || turns != 1 || n != stored || len(r.turns()) != 0 {
			t.Errorf("%s: counting searched or stored something", tt.a.name)
		}
		r.recall.set("new")
		if r.post(next); r.one().body == counted {
			t.Errorf("%s: the turn was entered by a count", tt.a.name)
		}
		off := tt.a.rig(t, func(c *Config, _ *Deps) {
			c.Injection.CountTokens = false
			c.Upstreams[0].URL = r.h.cfg.Upstreams[0].URL
		})
		got := off.postTo(tt.count, next)
		if up := r.one(); got.status != StatusUnsupported || up.body != next {
			t.Errorf("%s: switched off: status %s, body %s", tt.a.name, got.status, up.body)
		}
	}
}

// A count that is refused with what would be inserted is taken without, and
// teaches nothing.
func TestCountTokensRefused(t *testing.T) {
	r := messagesRig(t)
	r.recall.set("fact")
	r.post(messagesBody("user: q1"))
	r.sent()
	r.answers(func(got received) (int, string, string) {
		if fence.Contains(got.body) {
			return 400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}`
		}
		return 200, "application/json", `{"input_tokens":3}`
	})
	got := r.postTo("/v1/messages/count_tokens", messagesBody("user: q1"))
	if n := len(r.sent()); got.code != 200 || n != 2 || got.status != StatusRejected {
		t.Errorf("code %d, status %s after %d requests", got.code, got.status, n)
	}
	r.answers(apis[1].replyWith("fine"))
	r.post(messagesBody("user: q1", "assistant: fine", "user: q2"))
	if got := r.one().body; strings.Count(got, `{"type":"text","text":"<remora-memory-`) != 1 {
		t.Errorf("the first turn lost its block: %s", got)
	}
}

func TestMessagesTooLong(t *testing.T) {
	r := messagesRig(t)
	r.recall.set("fact")
	r.answers(func(got received) (int, string, string) {
		if fence.Contains(got.body) {
			return 400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 207791 tokens > 200000 maximum"}}`
		}
		return apis[1].replyWith("fine")(got)
	})
	for i := range 3 { // it teaches nothing
		body := messagesBody(fmt.Sprint("user: q", i))
		got := r.post(body)
		if up := r.sent(); got.code != 200 || got.status != StatusRejected || len(up) != 2 || up[1].body != body {
			t.Errorf("code %d, status %s after %d requests; want the original sent once", got.code, got.status, len(up))
		}
	}
}

func TestMessagesThatAreNoTurns(t *testing.T) {
	done := messagesAnswer("", "fine")
	for reason, want := range map[string]int{
		"end_turn": 1, "stop_sequence": 1, "max_tokens": 1, "model_context_window_exceeded": 1, "tool_use": 0, "pause_turn": 0, "refusal": 0, "": 1,
	} {
		r := messagesRig(t)
		r.answers(func(received) (int, string, string) {
			return 200, "application/json", strings.Replace(done, `"end_turn"`, fmt.Sprintf("%q", reason), 1)
		})
		r.post(messagesBody("user: q"))
		turns := r.turns()
		if len(turns) != want {
			t.Errorf("%q: persisted %d turns, want %d", reason, len(turns), want)
		}
		if want == 1 && turns[0].Messages[1].Text != "fine" {
			t.Errorf("%q: persisted %q", reason, turns[0].Messages[1].Text)
		}
	}
}

// Claude Code names an account, an installation and a session in one string;
// only the account is a user, and the installation stands in for it. What
// nobody knows how to read is nobody.
func TestClaudeCodeUser(t *testing.T) {
	for _, tt := range []struct{ agent, id, user, conv string }{
		{"claude-cli/2.1", `{"device_id":"d","account_uuid":"ann","session_id":"s1"}`, "ann", "s1"},
		{"claude-cli/2.1", `{"device_id":"d","account_uuid":"","session_id":"s1"}`, "\x00installation:d", "s1"},
		{"claude-cli/1.0", `user_d_account_ann_session_s2`, "ann", "s2"},
		{"claude-cli/1.0", `user_d_account__session_s2`, "\x00installation:d", "s2"},
		{"another/1.0", `bob`, "bob", ""},
		{"another/1.0", `{"team":"x"}`, "", ""},
	} {
		r := messagesRig(t, func(c *Config, _ *Deps) { c.Identity.Tenant, c.Identity.Container = identity.TenantKey, true })
		got := r.post(fmt.Sprintf(`{"model":"m","metadata":{"user_id":%q},"messages":[{"role":"user","content":"q"}]}`, tt.id), "User-Agent", tt.agent)
		turns := r.turns()
		if tt.user == "" {
			if len(turns) != 0 || got.status != StatusNoUser {
				t.Errorf("%s: status %s, turns %+v", tt.id, got.status, turns)
			}
			continue
		}
		if len(turns) != 1 || turns[0].Scope.User != tt.user || tt.conv != "" && turns[0].Conversation != tt.conv {
			t.Errorf("%s: turns %+v, want one of %q in %q", tt.id, turns, tt.user, tt.conv)
		}
	}
}

// What went into the prompt cache and what came from it is told.
func TestMessagesUsage(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	defer func() { _ = tp.Shutdown(context.Background()) }()
	r := messagesRig(t, func(_ *Config, d *Deps) { d.Tracer = tp })
	r.answers(func(received) (int, string, string) {
		return 200, "application/json", strings.Replace(messagesAnswer("", "fine"), `"input_tokens":7`,
			`"input_tokens":7,"cache_creation_input_tokens":20,"cache_read_input_tokens":100`, 1)
	})
	r.post(messagesBody("user: q"))
	got := map[attribute.Key]int64{}
	for _, a := range exporter.GetSpans()[0].Attributes {
		if a.Value.Type() == attribute.INT64 {
			got[a.Key] = a.Value.AsInt64()
		}
	}
	for key, want := range map[attribute.Key]int64{telemetry.AttrInputTokens: 127, telemetry.AttrOutputTokens: 2, telemetry.AttrCachedTokens: 100, telemetry.AttrWrittenTokens: 20} {
		if got[key] != want {
			t.Errorf("%s is %d, want %d", key, got[key], want)
		}
	}
}
