package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

func TestAddFlushSearch(t *testing.T) {
	r := newRig(t, nil, Options{})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	got := r.find(t, "What is my dog called?", map[string]any{"conversation_id": "two"})
	if len(got) == 0 {
		t.Fatal("nothing found")
	}
	first := got[0]
	if !strings.Contains(fmt.Sprint(first["text"]), "Biscuit") || first["session_id"] != "chat:one" || first["source_scope"] != "all_user_memory" || first["id"] == "" {
		t.Errorf("got %v", first)
	}
	if keys := slices.Sorted(maps.Keys(first)); !slices.Equal(keys, []string{"id", "resource_uri", "score", "session_id", "source_scope", "text"}) {
		t.Errorf("fields %v", keys)
	}
	if score, ok := first["score"].(float64); !ok || score <= 0 {
		t.Errorf("score %v", first["score"])
	}
	for _, m := range r.find(t, "What is my dog called?", map[string]any{"conversation_id": "one"}) {
		if m["source_scope"] != "current_chat" {
			t.Errorf("the conversation's own memory is of %v", m["source_scope"])
		}
	}
}

// The answer to a search has exactly one field.
func TestSearchAnswer(t *testing.T) {
	r := newRig(t, nil, Options{})
	status, answer := r.post(t, "/memories/search", body(map[string]any{"query": "anything", "scope": []string{"resources"}}))
	if status != http.StatusOK || strings.TrimSpace(answer) != `{"results":[]}` {
		t.Errorf("nothing found answers %d %s", status, answer)
	}
}

func TestScopes(t *testing.T) {
	r := newRig(t, nil, Options{})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	if _, err := r.service.AddResource(t.Context(), admin(t, r), api.Target{User: "ines"}, api.Document{URI: "file:///dogs.md", MediaType: "text/plain", Body: []byte("The dog licence of Biscuit ends in May.")}); err != nil {
		t.Fatal(err)
	}
	scopes := func(conversation string, scope ...string) (all []string) {
		for _, m := range r.find(t, "Is the dog Biscuit a beagle, and when does her licence end?", map[string]any{"scope": scope, "conversation_id": conversation}) {
			all = append(all, fmt.Sprint(m["source_scope"]))
			if uri := m["resource_uri"]; (m["source_scope"] == "resources") != (uri == "file:///dogs.md") {
				t.Errorf("%v has the URI %v", m["source_scope"], uri)
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	if got := scopes("two", "resources"); !slices.Equal(got, []string{"resources"}) {
		t.Errorf("resources: %v", got)
	}
	if got := scopes("one", "current_chat"); !slices.Equal(got, []string{"current_chat"}) {
		t.Errorf("current_chat: %v", got)
	}
	if got := scopes("two", "current_chat"); len(got) != 0 {
		t.Errorf("current_chat of another conversation: %v", got)
	}
	if got := scopes("one", "current_chat", "resources", "all_user_memory"); !slices.Equal(got, []string{"current_chat", "resources"}) {
		t.Errorf("all: %v", got)
	}
}

// Users, apps and projects have memories of their own.
func TestIsolation(t *testing.T) {
	r := newRig(t, nil, Options{})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	r.tell(t, "chat:one", "My dog is called Rex and he is a poodle.", "user_id", "omar")
	for _, other := range []map[string]any{{"user_id": "omar"}, {"app_id": "other"}, {"project_id": "other"}, {"user_id": "lena"}} {
		for _, m := range r.find(t, "What is my dog called?", other) {
			if strings.Contains(fmt.Sprint(m["text"]), "Biscuit") {
				t.Errorf("%v gets %v", other, m)
			}
		}
	}
	if got := r.find(t, "What is my dog called?", map[string]any{"app_id": "default", "project_id": "default"}); len(got) == 0 {
		t.Error("app and project are not default by default")
	}
}

// Private memories go only where a policy names the upstream, which this
// protocol can't.
func TestPrivateMemoriesStay(t *testing.T) {
	r := newRig(t, nil, Options{})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	for _, m := range r.find(t, "What is my dog called?", nil) {
		tags := []string{storage.PrivateTag}
		if _, err := r.service.Update(t.Context(), admin(t, r), api.Target{User: "ines"}, fmt.Sprint(m["id"]), 0, api.Patch{Tags: &tags}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.find(t, "What is my dog called?", nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// The same messages again change nothing.
func TestAddIsIdempotent(t *testing.T) {
	r := newRig(t, nil, Options{})
	turn := said("My dog is called Biscuit and she is a beagle.", "Noted.")
	more := append(slices.Clone(turn), said("My cat is called Olive and she is a tabby.", "Nice.")...)
	for i, messages := range [][]map[string]any{turn, turn, more, more} {
		status, answer := r.post(t, "/memories/add", body(map[string]any{"session_id": "chat:one", "messages": messages}))
		if want := fmt.Sprintf(`{"turns":%d}`, len(messages)/2); status != http.StatusOK || strings.TrimSpace(answer) != want {
			t.Fatalf("add %d: %d %s, want %s", i, status, answer, want)
		}
		r.post(t, "/memories/flush", body(nil))
	}
	page, err := r.service.List(t.Context(), admin(t, r), api.Target{User: "ines"}, api.Filter{Kinds: []string{"episode"}}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	turns := map[string]bool{}
	for _, m := range page.Memories {
		turns[m.Turn] = true
		if m.Conversation != "one" || m.Source != source || m.Speaker != "" {
			t.Errorf("conversation %q, source %q, speaker %q", m.Conversation, m.Source, m.Speaker)
		}
	}
	if len(turns) != 2 {
		t.Errorf("%d turns are stored, want 2", len(turns))
	}
}

// A store that is away is 503, and the pipeline takes in what it can.
func TestStoreAway(t *testing.T) {
	r := newRig(t, nil, Options{FlushTimeout: 50 * time.Millisecond})
	r.tell(t, "chat:one", "My dog is called Biscuit and she is a beagle.")
	r.store.Fail(true)
	defer r.store.Fail(false)
	if status, answer := r.post(t, "/memories/add", body(map[string]any{"session_id": "chat:one", "messages": said("I like tea.", "Noted.")})); status != 200 {
		t.Errorf("add: %d %s", status, answer)
	}
	if status, answer := r.post(t, "/memories/flush", body(nil)); status != 503 {
		t.Errorf("flush: %d %s", status, answer)
	}
}

func TestSenders(t *testing.T) {
	r := newRig(t, nil, Options{})
	messages := said("My dog is called Biscuit and she is a beagle.", "Noted.")
	messages[0]["sender_id"] = "Omar"
	if status, answer := r.post(t, "/memories/add", body(map[string]any{"session_id": "one", "messages": messages})); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	r.post(t, "/memories/flush", body(nil))
	page, err := r.service.List(t.Context(), admin(t, r), api.Target{User: "ines"}, api.Filter{Kinds: []string{"episode"}}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var speakers []string
	for _, m := range page.Memories {
		speakers = append(speakers, m.Role+"="+m.Speaker)
	}
	slices.Sort(speakers)
	if !slices.Equal(speakers, []string{"assistant=", "user=Omar"}) {
		t.Errorf("speakers %v", speakers)
	}
}

func admin(t testing.TB, r *rig) api.Principal {
	t.Helper()
	p, err := r.service.Authenticate(t.Context(), token, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
