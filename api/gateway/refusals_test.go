package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/proxy/problem"
	"github.com/remora-proxy/remora/storage"
)

func TestRefusals(t *testing.T) {
	r := newRig(t, nil, Options{})
	messages := func(change func(m map[string]any)) map[string]any {
		list := said("hello there", "hi")
		change(list[1])
		return map[string]any{"session_id": "chat:one", "messages": list}
	}
	search := func(k string, v any) map[string]any {
		return map[string]any{"query": "dog", "scope": []string{"resources"}, k: v}
	}
	const secret = "sk-wrong-4711"
	for _, tt := range []struct {
		name, path string
		fields     map[string]any
		status     int
		field      string
	}{
		{"a wrong key", "/memories/search", search("user_key", secret), 401, ""},
		{"no key", "/memories/search", search("user_key", nil), 401, ""},
		{"a wrong key to add", "/memories/add", map[string]any{"user_key": secret}, 401, ""},
		{"a wrong key to flush", "/memories/flush", map[string]any{"user_key": secret}, 401, ""},
		{"no user", "/memories/search", search("user_id", ""), 422, "user_id"},
		{"a user of lines", "/memories/search", search("user_id", "a\nb"), 422, "user_id"},
		{"an app of lines", "/memories/search", search("app_id", "a\nb"), 422, "app_id"},
		{"a project of lines", "/memories/search", search("project_id", "a\nb"), 422, "project_id"},
		{"no query", "/memories/search", search("query", " "), 422, "query"},
		{"a long query", "/memories/search", search("query", strings.Repeat("dog ", 20_000)), 422, "query"},
		{"no scope", "/memories/search", search("scope", []string{}), 422, "scope"},
		{"no scope at all", "/memories/search", search("scope", nil), 422, "scope"},
		{"an unknown scope", "/memories/search", search("scope", []string{"resources", secret}), 422, "scope[1]"},
		{"topK 0", "/memories/search", search("top_k", 0), 422, "top_k"},
		{"topK -1", "/memories/search", search("top_k", -1), 422, "top_k"},
		{"topK 101", "/memories/search", search("top_k", 101), 422, "top_k"},
		{"topK as text", "/memories/search", search("top_k", secret), 422, "top_k"},
		{"a long conversation", "/memories/search", search("conversation_id", strings.Repeat("x", 600)), 422, "conversation_id"},
		{"no session", "/memories/add", map[string]any{"messages": said("a b", "c")}, 422, "session_id"},
		{"a session without a name", "/memories/add", map[string]any{"session_id": "chat:", "messages": said("a b", "c")}, 422, "session_id"},
		{"no messages", "/memories/add", map[string]any{"session_id": "chat:one"}, 422, "messages"},
		{"a tool's message", "/memories/add", messages(func(m map[string]any) { m["role"] = "tool" }), 422, "messages[1].role"},
		{"a system prompt", "/memories/add", messages(func(m map[string]any) { m["role"] = "system" }), 422, "messages[1].role"},
		{"no content", "/memories/add", messages(func(m map[string]any) { m["content"] = "\n" }), 422, "messages[1].content"},
		{"no timestamp", "/memories/add", messages(func(m map[string]any) { delete(m, "timestamp") }), 422, "messages[1].timestamp"},
		{"a negative timestamp", "/memories/add", messages(func(m map[string]any) { m["timestamp"] = -5 }), 422, "messages[1].timestamp"},
		{"a far timestamp", "/memories/add", messages(func(m map[string]any) { m["timestamp"] = int64(1) << 60 }), 422, "messages[1].timestamp"},
		{"too long", "/memories/add", messages(func(m map[string]any) { m["content"] = strings.Repeat("a ", 40_000) }), 422, "messages[1].content"},
		{"no such path", "/memories", nil, 404, ""},
	} {
		status, answer := r.post(t, tt.path, body(tt.fields))
		var p problem.Problem
		if err := json.Unmarshal([]byte(answer), &p); err != nil {
			t.Errorf("%s: %s", tt.name, answer)
		}
		if status != tt.status || p.Field != tt.field {
			t.Errorf("%s: %d, field %q, want %d %q: %s", tt.name, status, p.Field, tt.status, tt.field, answer)
		}
		if strings.Contains(answer, secret) || strings.Contains(answer, token) {
			t.Errorf("%s: the answer quotes: %s", tt.name, answer)
		}
	}
	for _, bad := range []string{"", "[]", "null", "{", `{"user_id":7}`, strings.Repeat("[", 10_000), `{"user_key":"` + token + `","user_id":{}}`} {
		if status, answer := r.post(t, "/memories/add", bad); status != 422 && status != 401 || strings.Contains(answer, token) {
			t.Errorf("%.40q: %d %s", bad, status, answer)
		}
	}
	if status, _ := r.post(t, "/memories/add", body(map[string]any{"session_id": strings.Repeat("x", 2<<20)})); status != 413 {
		t.Errorf("two MiB: %d", status)
	}
	resp, err := http.Get(r.url + "/memories/search")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if log := r.log.String(); strings.Contains(log, secret) || strings.Contains(log, token) {
		t.Errorf("the log holds a key: %s", log)
	}
}

// The credential may be a bearer token, and a user whom somebody in front of
// Remora has authenticated is the only one that can be reached.
func TestCredentials(t *testing.T) {
	r := newRig(t, nil, Options{})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	q := map[string]any{"query": "What is my dog called?", "scope": []string{"all_user_memory"}, "user_key": nil}
	if status, answer := r.post(t, "/memories/search", body(q), "Authorization", "Bearer "+token); status != 200 || !strings.Contains(answer, "Biscuit") {
		t.Errorf("bearer: %d %s", status, answer)
	}
	if status, answer := r.post(t, "/memories/search", body(q), "Authorization", "Bearer "+token, "X-User-Id", "omar"); status != 404 || strings.Contains(answer, "Biscuit") {
		t.Errorf("another's: %d %s", status, answer)
	}
	if status, answer := r.post(t, "/memories/search", body(q), "Authorization", "Bearer "+token, "X-User-Id", "ines"); status != 200 || !strings.Contains(answer, "Biscuit") {
		t.Errorf("one's own: %d %s", status, answer)
	}
}

// Where each key is a tenant, a key reaches what is remembered under it.
func TestTenantKeys(t *testing.T) {
	r := newRig(t, func(c *identity.Config) { c.Tenant = identity.TenantKey }, Options{})
	secret, err := r.store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const key, other = "sk-ines-4c1f2b7a90d3", "sk-omar-77ab1290cd45"
	tenant := r.service.Identity.TenantOf(secret, key)
	scope := storage.Scope{Tenant: tenant, App: "default", Project: "default", User: "ines"}
	write := storage.Write{Scope: scope, Memories: []storage.Memory{{ID: "m1", Kind: storage.KindFact, Text: "The dog of ines is called Biscuit.", Trust: 1, EventTime: storage.TimeOf(time.Now())}}}
	if err := r.store.Put(t.Context(), []storage.Write{write}); err != nil {
		t.Fatal(err)
	}
	q := map[string]any{"query": "What is the dog of ines called?", "scope": []string{"all_user_memory"}}
	for _, tt := range []struct {
		key    string
		status int
	}{{key, 200}, {other, 401}, {token, 422}} { // the admin must name the tenant, which the protocol can't
		q["user_key"] = tt.key
		status, answer := r.post(t, "/memories/search", body(q))
		if status != tt.status || strings.Contains(answer, "Biscuit") != (tt.status == 200) || strings.Contains(answer, tt.key) {
			t.Errorf("%d %s, want %d", status, answer, tt.status)
		}
	}
}
