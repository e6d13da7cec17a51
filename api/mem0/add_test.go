package mem0

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
)

// all returns all memories of a user, as the face lists them.
func (in *installation) all(key, user string) []obj {
	in.t.Helper()
	return results(in.as(key, "POST", "/v3/memories/", obj{"filters": obj{"user_id": user}}))
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func TestAddExtracts(t *testing.T) {
	in := start(t, identity.TenantAuto)
	said := say("I'm a vegetarian and allergic to nuts.", "Got it! I'll remember your dietary preferences.", "My favorite color is green", "Nice.")
	e := in.add(adminToken, obj{"messages": said, "user_id": "alice", "metadata": obj{"source": "slack", "page": 7}})
	if e["status"] != statusSucceeded || e["event_type"] != "ADD" || e["latency"] == nil {
		t.Errorf("event: %v", e)
	}
	want := []string{"I'm a vegetarian and allergic to nuts.", "My favorite color is green"} // a fact, and a passage of which none was made
	var got []string
	for _, r := range results(e) {
		got = append(got, r["data"].(obj)["memory"].(string))
		if r["event"] != "ADD" || r["user_id"] != "alice" || r["id"] == "" {
			t.Errorf("result: %v", r)
		}
	}
	if diff := cmp.Diff(want, sorted(got)); diff != "" {
		t.Errorf("results of the event (-want +got):\n%s", diff)
	}
	all := in.all(adminToken, "alice")
	if diff := cmp.Diff(want, sorted(texts(all))); diff != "" {
		t.Errorf("memories (-want +got):\n%s", diff)
	}
	for _, m := range all {
		if diff := cmp.Diff(obj{"source": "slack", "page": 7.0}, m["metadata"]); diff != "" {
			t.Errorf("metadata of %v (-want +got):\n%s", m["memory"], diff)
		}
	}
	// The same again changes nothing.
	time.Sleep(2 * time.Millisecond) // what was made in the same millisecond counts as new
	e = in.add(adminToken, obj{"messages": said, "user_id": "alice", "metadata": obj{"source": "slack", "page": 7}})
	for _, r := range results(e) {
		if r["event"] != "NOOP" {
			t.Errorf("known, but %v: %v", r["event"], r)
		}
	}
	if again := in.all(adminToken, "alice"); len(again) != len(want) {
		t.Errorf("twice the same is %d memories: %v", len(again), texts(again))
	}
	// What is said again elsewhere is no second memory.
	in.add(adminToken, obj{"messages": say("I'm a vegetarian and allergic to nuts."), "user_id": "alice", "run_id": "another"})
	if again := in.all(adminToken, "alice"); len(again) != len(want) {
		t.Errorf("said again it is %d memories: %v", len(again), texts(again))
	}
}

func TestAddShowsWhatNoFactSays(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"user_id": "bob", "messages": say("I live in Porto. My dog is named Rex. I prefer tea. I work as a nurse on the night shift. I hate cilantro a lot.")})
	all := strings.Join(texts(in.all(adminToken, "bob")), "\n")
	for _, word := range []string{"Porto", "Rex", "tea", "nurse", "cilantro"} {
		if !strings.Contains(all, word) {
			t.Errorf("%s is plainly stated and no memory: %s", word, all)
		}
	}
}

func TestAddVerbatim(t *testing.T) {
	in := start(t, identity.TenantAuto)
	body := obj{"messages": say("The lock opens to the left.", "I see.", "The key hangs in the shed."), "infer": false, "user_id": "carol",
		"agent_id": "helper", "run_id": "run-7", "metadata": obj{"a": "b"}, "categories": []string{"house"}, "timestamp": 1700000000}
	v := in.as(adminToken, "POST", "/v3/memories/add/", body).(obj)
	if v["status"] != statusSucceeded || len(results(v)) != 2 {
		t.Fatalf("answer: %v", v)
	}
	all := in.all(adminToken, "carol")
	if diff := cmp.Diff([]string{"The key hangs in the shed.", "The lock opens to the left."}, sorted(texts(all))); diff != "" {
		t.Errorf("memories (-want +got):\n%s", diff)
	}
	for _, m := range all {
		got := obj{"agent_id": m["agent_id"], "run_id": m["run_id"], "app_id": m["app_id"], "metadata": m["metadata"], "categories": m["categories"]}
		want := obj{"agent_id": "helper", "run_id": "run-7", "app_id": nil, "metadata": obj{"a": "b"}, "categories": []any{"house"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", m["memory"], diff)
		}
		if !strings.HasPrefix(m["created_at"].(string), "2023-11-14T22:13:2") {
			t.Errorf("created_at %v does not follow the timestamp", m["created_at"])
		}
	}
	// Said again, it is known, and takes the new metadata.
	body["metadata"] = obj{"c": 1}
	v = in.as(adminToken, "POST", "/v3/memories/add/", body).(obj)
	for _, r := range results(v) {
		if r["event"] != "NOOP" {
			t.Errorf("known, but %v", r)
		}
	}
	if m := in.all(adminToken, "carol"); len(m) != 2 || !cmp.Equal(m[0]["metadata"], any(obj{"a": "b", "c": 1.0})) {
		t.Errorf("after the second time: %v", m)
	}
	// An agent's own words are kept if there is nothing else.
	in.as(adminToken, "POST", "/v3/memories/add/", obj{"agent_id": "helper", "infer": false, "messages": []obj{{"role": "assistant", "content": "I answer in French."}}})
	got := results(in.as(adminToken, "POST", "/v3/memories/", obj{"filters": obj{"agent_id": "helper"}}))
	if len(got) != 1 || got[0]["memory"] != "I answer in French." || got[0]["user_id"] != nil {
		t.Errorf("of the agent: %v", got)
	}
}

func TestAddShapes(t *testing.T) {
	in := start(t, identity.TenantAuto)
	body := func(more obj) obj {
		out := obj{"messages": say("I was born in Lisbon."), "user_id": "dora"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	if v := in.as(adminToken, "POST", "/v1/memories/", body(nil)).([]any); len(v) != 1 || v[0].(obj)["status"] != statusPending {
		t.Errorf("v1: %v", v)
	}
	if v := in.as(adminToken, "POST", "/v1/memories/", body(obj{"output_format": "v1.1"})); len(results(v)) != 1 {
		t.Errorf("v1.1: %v", v)
	}
	for _, path := range []string{"/memories", "/api/v1/memories"} {
		got := results(in.as(adminToken, "POST", path, body(nil)))
		if len(got) != 1 || got[0]["memory"] != "I was born in Lisbon." {
			t.Errorf("%s: %v", path, got)
		}
	}
	for name, messages := range map[string]any{
		"text":   "My cat is called Oslo.",
		"object": obj{"role": "user", "content": "My cat is called Oslo."},
		"parts": []obj{{"role": "system", "content": "You are a helper."}, {"role": "user", "content": []obj{
			{"type": "image_url", "image_url": obj{"url": "https://example.com/a.png"}}, {"type": "text", "text": "My cat is called Oslo."}}}},
	} {
		in.add(adminToken, obj{"messages": messages, "user_id": name})
		if got := texts(in.all(adminToken, name)); !slices.Equal(got, []string{"My cat is called Oslo."}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAddRefusesSecrets(t *testing.T) {
	in := start(t, identity.TenantAuto)
	secret := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	for name, body := range map[string]obj{
		"verbatim": {"messages": []obj{{"role": "user", "content": "The weather is fine."}, {"role": "user", "content": "My token is " + secret}}, "infer": false},
		"metadata": {"messages": say("The weather is fine."), "metadata": obj{"list": []any{obj{"token": secret}}}},
		"category": {"messages": say("The weather is fine."), "categories": []string{secret}},
	} {
		body["user_id"] = "eve"
		a := in.do(adminToken, "POST", "/v3/memories/add/", body)
		if a.status != 422 || strings.Contains(string(a.body), secret) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if all := in.all(adminToken, "eve"); len(all) != 0 {
		t.Errorf("kept: %v", texts(all))
	}
	in.add(adminToken, obj{"messages": say("My mail is jane.roe@example.org, I like chess."), "user_id": "eve", "metadata": obj{"contact": "jane.roe@example.org"}})
	if a := in.do(adminToken, "POST", "/v3/memories/", obj{"filters": obj{"user_id": "eve"}}); strings.Contains(string(a.body), "jane.roe") {
		t.Errorf("personal data: %s", a.body)
	}
}

func TestMetadataRoundTrip(t *testing.T) {
	in := start(t, identity.TenantAuto)
	metadata := obj{
		"plain": "x", "with=sign#and+more": true, "number": 12.5, "null": nil, "nested": obj{"list": []any{1.0, "two", nil}},
		"long": strings.Repeat("ünïcode ", 100), "": "no key", "<html>": "a < b && c",
	}
	in.as(adminToken, "POST", "/v3/memories/add/", obj{"messages": say("The barn is red."), "infer": false, "user_id": "frank", "metadata": metadata})
	all := in.all(adminToken, "frank")
	if diff := cmp.Diff(metadata, all[0]["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	a := in.do(adminToken, "POST", "/v3/memories/add/", obj{"messages": say("The barn is blue."), "infer": false, "user_id": "frank", "metadata": obj{"k": strings.Repeat("x", 5000)}})
	if a.status != 422 || !strings.Contains(string(a.body), `"field":"metadata"`) {
		t.Errorf("more than fits: %d %s", a.status, a.body)
	}
}

// What was said before it was deleted does not come back.
func TestDeletedIsNotAddedAgain(t *testing.T) {
	in := start(t, identity.TenantAuto)
	id := in.addFact(adminToken, "gus", "The oven is broken.")
	in.as(adminToken, "DELETE", "/v1/memories/"+id+"/", nil)
	old := obj{"messages": say("The oven is broken."), "user_id": "gus", "infer": false, "timestamp": 1700000000}
	if v := in.as(adminToken, "POST", "/v3/memories/add/", old); len(results(v)) != 0 {
		t.Errorf("an old message: %v", v)
	}
	delete(old, "timestamp")
	if v := in.as(adminToken, "POST", "/v3/memories/add/", old); len(results(v)) != 1 {
		t.Errorf("said again: %v", v)
	}
}

// What was said long ago is kept as long as what is said now.
func TestLongAgo(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"messages": say("Remember that my locker is number nine.", "I will.", "The pool opens at seven in the morning.", "Yes."), "user_id": "ida", "timestamp": 1000000000})
	all := in.all(adminToken, "ida")
	if len(all) != 2 {
		t.Fatalf("memories: %v", texts(all))
	}
	for _, m := range all {
		if at := m["created_at"].(string); !strings.HasPrefix(at, "2001-09-09T01:46:4") {
			t.Errorf("created_at %s", at)
		}
	}
}
