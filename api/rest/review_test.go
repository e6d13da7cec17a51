package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/storage"
)

// forgetRequests is what GET /v1/forget-requests answers.
type forgetRequests struct {
	Requests []api.ForgetRequest `json:"requests"`
}

// restored is what undo and prefer answer.
type restored struct {
	Memories []api.Memory `json:"memories"`
}

func TestMergeAndUndoEach(t *testing.T) {
	r := newService(t)
	add := func(text string, priority float64, tags ...string) api.Memory {
		return r.add(t, "user=ada", text, object{"priority": priority, "tags": tags})
	}
	before := []api.Memory{
		add("I have a cat.", 0.3, "pets"), add("My dog sleeps in the kitchen.", 0.9, "pets", "home"), add("There are fish in the pond.", 0.5, "pinned"),
	}
	var ids []string
	for _, m := range before {
		ids = append(ids, m.ID)
	}
	merged := get[api.Merged](t, r.send(t, "POST", "/v1/memories/merge", object{
		"ids": ids, "text": "I have a cat, a dog and fish.", "why": "one is enough",
	}))
	m := merged.Memory
	if m.ID != ids[0] || m.Text != "I have a cat, a dog and fish." || m.Priority != 0.9 || !slices.Equal(m.Tags, []string{"pets", "home", "pinned"}) ||
		m.ExpiresAt != "" || !slices.Equal(merged.Deleted, ids[1:]) || merged.UndoUntil == "" {
		t.Errorf("merged: %+v", merged)
	}
	if got := texts(r.list(t, "user=ada")); !slices.Equal(got, []string{m.Text}) {
		t.Errorf("left: %q", got)
	}
	why := map[string]string{ids[0]: "one is enough", ids[1]: "merged into " + ids[0], ids[2]: "merged into " + ids[0]}
	for _, id := range ids {
		h := get[api.History](t, r.send(t, "GET", "/v1/memories/"+id+"/history", nil))
		if len(h.Changes) != 2 || h.Changes[0].Why != why[id] || h.Changes[0].By != "admin" {
			t.Errorf("%s: changes %+v", id, h.Changes)
		}
	}
	for _, m := range before {
		r.send(t, "POST", "/v1/memories/"+m.ID+"/undo", nil).want(t, 200)
		got := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+m.ID, nil))
		got.Uses, got.Version, got.UpdatedAt = nil, m.Version, m.UpdatedAt
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("undone (-before +after):\n%s", diff)
		}
	}
	if got := r.list(t, "user=ada"); len(got) != 3 {
		t.Errorf("after all are undone: %q", texts(got))
	}
	// With nothing new to say, the first is merged and undone all the same.
	r.send(t, "POST", "/v1/memories/merge", object{"ids": []string{ids[2], ids[0]}}).want(t, 200)
	if m := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+ids[2], nil)); m.Text != before[2].Text {
		t.Errorf("its own text: %+v", m)
	}
	r.send(t, "POST", "/v1/memories/"+ids[2]+"/undo", nil).want(t, 200)
	if m := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+ids[2], nil)); !slices.Equal(m.Tags, before[2].Tags) || m.Confidence != before[2].Confidence {
		t.Errorf("undone: %+v", m)
	}
}

// A merge that is refused changes nothing.
func TestMergeRefuses(t *testing.T) {
	r := newService(t)
	ids := make([]string, 0, 4)
	for _, c := range []struct{ query, text string }{
		{"user=ada", "I have a cat."}, {"user=ada", "My sister sails."}, {"user=ben", "I play the oboe."}, {"user=ada&project=p", "The barn is red."},
	} {
		ids = append(ids, r.add(t, c.query, c.text, nil).ID)
	}
	r.send(t, "POST", "/v1/resources?resource_uri=x&user=ada", "A document.", "Content-Type", "text/plain").want(t, 201)
	document := r.list(t, "user=ada&kind=resource")[0].ID
	old := r.add(t, "user=ada", "I live in Porto.", object{"eventTime": "2026-01-01"}).ID
	r.add(t, "user=ada", "I live in Rome.", nil)
	deleted := r.add(t, "user=ada", "I collect stamps.", nil).ID
	r.send(t, "DELETE", "/v1/memories/"+deleted, nil).want(t, 200)
	before := r.send(t, "GET", "/v1/export?user=ada", nil).body
	for name, c := range map[string]struct {
		body   object
		status int
		kind   string
		field  string
	}{
		"another user":    {object{"ids": []string{ids[0], ids[2]}}, 422, "invalid", "ids"},
		"another project": {object{"ids": []string{ids[0], ids[3]}}, 422, "invalid", "ids"},
		"a document":      {object{"ids": []string{ids[0], document}}, 422, "invalid", "ids[1]"},
		"superseded":      {object{"ids": []string{old, ids[0]}}, 422, "invalid", "ids[0]"},
		"deleted":         {object{"ids": []string{ids[0], deleted}}, 404, "not-found", ""},
		"unknown":         {object{"ids": []string{ids[0], "unknown"}}, 404, "not-found", ""},
		"a secret":        {object{"ids": ids[:2], "text": "The key is sk-proj-q7Zk2mXv9Lr4Tb8Nw3Hs6Jd1Pc5Fg0YyA1B2C3D4."}, 422, "secret", ""},
		"twice":           {object{"ids": []string{ids[0], ids[0]}}, 422, "invalid", "ids[1]"},
		"one":             {object{"ids": ids[:1]}, 422, "invalid", "ids"},
		"too many":        {object{"ids": repeated(51, "x")}, 422, "invalid", "ids"},
	} {
		a := r.send(t, "POST", "/v1/memories/merge", c.body)
		a.what += " " + name
		a.problem(t, c.status, c.kind, c.field)
	}
	for n := range 40 {
		r.add(t, "user=eva", fmt.Sprintf("My neighbour %d plays chess.", n), object{"tags": []string{fmt.Sprint("t", n)}})
	}
	var many []string
	for _, m := range r.list(t, "user=eva") {
		many = append(many, m.ID)
	}
	r.send(t, "POST", "/v1/memories/merge", object{"ids": many}).problem(t, 422, "invalid", "ids")
	if after := r.send(t, "GET", "/v1/export?user=ada", nil).body; after != before || len(r.list(t, "user=eva")) != len(many) {
		t.Error("something was changed")
	}
	r.with("X-Remora-User", "ben").send(t, "POST", "/v1/memories/merge", object{"ids": ids[:2]}).problem(t, 404, "not-found", "")
}

// What is private makes the merged fact private, and the rest of its turn.
func TestMergeOfPrivateFacts(t *testing.T) {
	r := newService(t)
	r.say(t, "ada", "t1", 1, "Remember that I live in Porto.")
	r.settle(t)
	r.add(t, "user=ada", "My flat has a red door.", object{"tags": []string{"private"}})
	list := r.list(t, "user=ada&kind=fact")
	if len(list) != 2 {
		t.Fatalf("facts: %q", texts(list))
	}
	said := slices.IndexFunc(list, func(m api.Memory) bool { return strings.Contains(m.Text, "Porto") })
	r.send(t, "POST", "/v1/memories/merge", object{"ids": []string{list[said].ID, list[1-said].ID}}).want(t, 200)
	for _, m := range r.list(t, "user=ada") {
		if !slices.Contains(m.Tags, storage.PrivateTag) {
			t.Errorf("%s is not private: %q", m.Kind, m.Tags)
		}
	}
}

func TestContradictionsAndPrefer(t *testing.T) {
	r := newService(t)
	pairs := func(query string) api.Contradictions {
		t.Helper()
		return get[api.Contradictions](t, r.send(t, "GET", "/v1/contradictions?user=ada&"+query, nil))
	}
	if got := pairs(""); len(got.Contradictions) != 0 || got.Next != "" {
		t.Errorf("nothing: %+v", got)
	}
	older := r.add(t, "user=ada", "I live in Porto.", object{"eventTime": "2026-01-01"})
	newer := r.add(t, "user=ada", "I live in Rome.", object{"eventTime": "2026-02-01"})
	r.add(t, "user=ada", "I eat meat.", object{"eventTime": "2026-01-01"})
	r.add(t, "user=ada", "I don't eat meat.", object{"eventTime": "2026-03-01"})
	all := pairs("").Contradictions
	if len(all) != 2 || !all[0].Opposite || all[0].Newer.Text != "I don't eat meat." || all[0].Older.Text != "I eat meat." ||
		all[1].Opposite || all[1].Newer.ID != newer.ID || all[1].Older.ID != older.ID || all[1].At != "2026-02-01T00:00:00.000Z" {
		t.Errorf("pairs: %+v", all)
	}
	first := pairs("limit=1")
	second := pairs("limit=1&cursor=" + first.Next)
	if diff := cmp.Diff(all, append(first.Contradictions, second.Contradictions...)); diff != "" || first.Next == "" || second.Next != "" {
		t.Errorf("page by page, next %q and %q (-whole +pages):\n%s", first.Next, second.Next, diff)
	}
	r.send(t, "GET", "/v1/contradictions?user=ada&cursor=%ff", nil).problem(t, 422, "invalid", "cursor")
	r.send(t, "GET", "/v1/contradictions?user=ada&limit=501", nil).problem(t, 422, "invalid", "limit")

	path := "/v1/memories/" + older.ID
	r.send(t, "POST", "/v1/memories/"+newer.ID+"/prefer", nil).problem(t, 422, "invalid", "id")
	r.send(t, "POST", path+"/prefer?user=ben", nil).problem(t, 404, "not-found", "")
	changed := get[restored](t, r.send(t, "POST", path+"/prefer", object{"why": "I moved back"})).Memories
	if len(changed) != 2 || changed[0].ID != older.ID || changed[0].State != api.StateCurrent || changed[0].SupersededBy != "" ||
		changed[1].ID != newer.ID || changed[1].State != api.StateSuperseded || changed[1].SupersededBy != older.ID {
		t.Errorf("preferred: %+v", changed)
	}
	got := pairs("").Contradictions
	if len(got) != 2 || got[0].Newer.ID != older.ID || got[0].Older.ID != newer.ID || got[0].Opposite {
		t.Errorf("pairs: %+v", got)
	}
	h := get[api.History](t, r.send(t, "GET", path+"/history", nil))
	if c := h.Changes[0]; c.Op != "prefer" || c.Why != "I moved back" || c.By != "admin" || len(h.Chain) != 1 {
		t.Errorf("history: %+v", h)
	}
	r.send(t, "POST", "/v1/memories/"+newer.ID+"/undo", nil).want(t, 200)
	if got := pairs("").Contradictions; !slices.EqualFunc(got, all, func(a, b api.Contradiction) bool { return a.Newer.ID == b.Newer.ID && a.At == b.At }) {
		t.Errorf("pairs after it was undone: %+v", got)
	}
	// A pair of which one is deleted is none.
	r.send(t, "DELETE", "/v1/memories/"+newer.ID, nil).want(t, 200)
	if got := pairs("").Contradictions; len(got) != 1 || !got[0].Opposite {
		t.Errorf("pairs after one was deleted: %+v", got)
	}
}

func TestForgetRequests(t *testing.T) {
	r := newService(t)
	requests := func(user string) []api.ForgetRequest {
		t.Helper()
		return get[forgetRequests](t, r.send(t, "GET", "/v1/forget-requests?user="+user, nil)).Requests
	}
	cellar := r.add(t, "user=ada", "My cellar door code is hidden behind the clock.", nil)
	ask := func(n int) api.ForgetRequest {
		t.Helper()
		r.say(t, "ada", fmt.Sprint("t", n), n, "Please forget my cellar door code.")
		r.settle(t)
		list := requests("ada")
		if len(list) != 1 || !strings.Contains(list[0].Text, "forget my cellar door code") || list[0].Conversation == "" || list[0].At == "" {
			t.Fatalf("requests: %+v", list)
		}
		if len(list[0].Memories) != 1 || list[0].Memories[0].ID != cellar.ID {
			t.Fatalf("it means %+v", list[0].Memories)
		}
		return list[0]
	}
	there := func() bool { return slices.Contains(texts(r.list(t, "user=ada&kind=fact")), cellar.Text) }

	f := ask(1)
	path := "/v1/forget-requests/" + f.ID + "?user="
	r.send(t, "POST", path+"ben", object{"forget": true}).problem(t, 404, "not-found", "")
	r.send(t, "POST", "/v1/forget-requests/unknown?user=ada", object{"forget": true}).problem(t, 404, "not-found", "")
	r.send(t, "POST", path+"ada", object{}).problem(t, 422, "invalid", "forget")
	r.send(t, "POST", path+"ada", object{"forget": true, "ids": []string{"other"}}).problem(t, 422, "invalid", "ids[0]")
	r.send(t, "POST", path+"ada", object{"forget": false, "ids": []string{cellar.ID}}).problem(t, 422, "invalid", "ids")
	if len(requests("ada")) != 1 || len(requests("ben")) != 0 || !there() {
		t.Error("something was changed")
	}

	gone := get[api.Removed](t, r.send(t, "POST", path+"ada", object{"forget": false}))
	if len(gone.Deleted) != 0 || gone.UndoUntil != "" || !there() || len(requests("ada")) != 0 {
		t.Errorf("dismissed: %+v", gone)
	}
	f = ask(2)
	path = "/v1/forget-requests/" + f.ID + "?user="
	gone = get[api.Removed](t, r.send(t, "POST", path+"ada", object{"forget": true, "ids": []string{cellar.ID}}))
	if !slices.Equal(gone.Deleted, []string{cellar.ID}) || gone.UndoUntil == "" || there() || len(requests("ada")) != 0 {
		t.Errorf("forgotten: %+v", gone)
	}
	r.send(t, "POST", path+"ada", object{"forget": true}).problem(t, 404, "not-found", "")
	r.send(t, "POST", "/v1/memories/"+cellar.ID+"/undo", nil).want(t, 200)
	if !there() {
		t.Error("it is not back")
	}
	f = ask(3) // of which nothing is left when it is granted
	r.send(t, "DELETE", "/v1/memories/"+cellar.ID, nil).want(t, 200)
	if list := requests("ada"); len(list) != 1 || len(list[0].Memories) != 0 {
		t.Errorf("requests: %+v", list)
	}
	gone = get[api.Removed](t, r.send(t, "POST", "/v1/forget-requests/"+f.ID+"?user=ada", object{"forget": true}))
	if len(gone.Deleted) != 0 || len(requests("ada")) != 0 {
		t.Errorf("granted too late: %+v", gone)
	}
}

func TestSources(t *testing.T) {
	r := newService(t)
	r.add(t, "user=ada", "I play the cello.", object{"eventTime": "2026-01-01"})
	r.add(t, "user=ada", "I have two cats.", object{"eventTime": "2026-02-01"})
	aside := r.add(t, "user=ada", "I live in Porto.", object{"eventTime": "2026-01-05"})
	r.send(t, "PATCH", "/v1/memories/"+aside.ID, object{"state": "quarantined"}).want(t, 200)
	deleted := r.add(t, "user=ada", "I collect stamps.", nil)
	r.send(t, "DELETE", "/v1/memories/"+deleted.ID, nil).want(t, 200)
	r.send(t, "POST", "/v1/import?format=mem0&user=ada", `{"results":[{"id":"1","memory":"Plays the oboe","created_at":"2025-01-01T00:00:00Z"}]}`).want(t, 200)
	r.add(t, "user=ben", "I sail.", nil)
	got := get[api.Sources](t, r.send(t, "GET", "/v1/sources?user=ada", nil))
	want := api.Sources{Sources: []api.SourceCount{
		{Source: "api", Memories: 3, Kinds: map[string]int{"fact": 3}, Quarantined: 1, First: "2026-01-01T00:00:00.000Z", Last: "2026-02-01T00:00:00.000Z"},
		{Source: "import", Memories: 1, Kinds: map[string]int{"fact": 1}, First: "2025-01-01T00:00:00.000Z", Last: "2025-01-01T00:00:00.000Z"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	for source, want := range map[string][]string{"api": {"I have two cats.", "I play the cello."}, "import": {"Plays the oboe"}, "imp": nil, "mcp": nil} {
		if got := texts(r.list(t, "user=ada&source="+source)); !slices.Equal(got, want) {
			t.Errorf("of %s: %q, want %q", source, got, want)
		}
	}
}

// The tag pinned keeps a memory from expiring, and survives an export.
func TestPinned(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I play the cello.", object{"tags": []string{"music"}})
	path := "/v1/memories/" + m.ID
	patch := func(tags ...string) api.Memory {
		return get[api.Memory](t, r.send(t, "PATCH", path, object{"tags": tags}))
	}
	if m.ExpiresAt == "" {
		t.Fatal("it never expires")
	}
	if got := patch("music", "pinned"); got.ExpiresAt != "" || !slices.Equal(got.Tags, []string{"music", "pinned"}) {
		t.Errorf("pinned: %+v", got)
	}
	if got := texts(r.list(t, "user=ada&tag=pinned")); !slices.Equal(got, []string{m.Text}) {
		t.Errorf("listed: %q", got)
	}
	export := r.send(t, "GET", "/v1/export?user=ada", nil).body
	other := newService(t)
	other.send(t, "POST", "/v1/import?format=remora&user=ada", export).want(t, 200)
	if got := other.list(t, "user=ada&tag=pinned"); len(got) != 1 || got[0].ExpiresAt != "" {
		t.Errorf("imported: %+v", got)
	}
	if got := patch("music"); got.ExpiresAt <= m.ExpiresAt {
		t.Errorf("pinned no more, it expires at %q, not later than %q", got.ExpiresAt, m.ExpiresAt)
	}
	r.send(t, "POST", path+"/undo", nil).want(t, 200)
	if got := get[api.Memory](t, r.send(t, "GET", path, nil)); got.ExpiresAt != "" {
		t.Errorf("undone: %+v", got)
	}
}
