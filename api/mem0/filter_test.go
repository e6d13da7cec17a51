package mem0

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
)

// furnish keeps some memories of several users, agents and apps.
func furnish(in *installation, key string) {
	for _, m := range []struct {
		text string
		obj
	}{
		{"The roof of the barn leaks.", obj{"user_id": "ann", "categories": []string{"house", "Repairs"}, "timestamp": 1704103200}},                                  // 2024-01-01 10:00
		{"The tractor needs new tyres.", obj{"user_id": "ann", "agent_id": "mechanic", "run_id": "r1", "categories": []string{"machines"}, "timestamp": 1704189600}}, // 2024-01-02 10:00
		{"The plough stands in field nine.", obj{"user_id": "ann", "agent_id": "mechanic", "app_id": "farm", "run_id": "r2", "timestamp": 1704276000}},
		{"The cows calve in spring.", obj{"user_id": "ann", "app_id": "farm", "metadata": obj{"herd": 12, "place": "north"}, "timestamp": 1704362400}},
		{"The hens lay well.", obj{"user_id": "ben smith", "timestamp": 1704448800}},
		{"The geese are loud.", obj{"timestamp": 1704535200}},
	} {
		body := obj{"messages": say(m.text), "infer": false}
		for k, v := range m.obj {
			body[k] = v
		}
		in.as(key, "POST", "/v3/memories/add/", body)
	}
}

// word returns the second word of each text, in order.
func word(list []string) []string {
	out := []string{}
	for _, text := range list {
		out = append(out, strings.Fields(text)[1])
	}
	slices.Sort(out)
	return out
}

func TestFilters(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	for _, test := range []struct {
		name    string
		filters string
		want    string
	}{
		{"a user has all apps and agents", `{"user_id":"ann"}`, "cows plough roof tractor"},
		{"an agent of a user", `{"AND":[{"user_id":"ann"},{"agent_id":"mechanic"}]}`, "plough tractor"},
		{"an agent and an app", `{"user_id":"ann","agent_id":"mechanic","app_id":"farm"}`, "plough"},
		{"an app of a user", `{"AND":[{"AND":[{"user_id":"ann"}]},{"app_id":"farm"}]}`, "cows plough"},
		{"the user of no name", `{}`, "geese"},
		{"an agent without a user has nobody's memories", `{"agent_id":"mechanic"}`, ""},
		{"every user", `{"user_id":"*"}`, "cows geese hens plough roof tractor"},
		{"users in a list", `{"user_id":{"in":["ann","ben smith"]}}`, "cows hens plough roof tractor"},
		{"a name with a space", `{"user_id":"ben smith"}`, "hens"},
		{"a run", `{"user_id":"ann","run_id":"r1"}`, "tractor"},
		{"runs in a list", `{"user_id":"ann","run_id":{"in":["r1","r2"]}}`, "plough tractor"},
		{"any run and agent", `{"user_id":"ann","run_id":"*","agent_id":"*"}`, "cows plough roof tractor"},
		{"conditions on one id must all hold", `{"AND":[{"user_id":"ann"},{"user_id":"ben smith"}]}`, ""},
		{"or of one", `{"OR":[{"user_id":"ann"}],"app_id":"farm"}`, "cows plough"},
		{"a category", `{"user_id":"ann","categories":{"in":["house","machines"]}}`, "roof tractor"},
		{"a part of a category", `{"user_id":"ann","categories":{"contains":"repair"}}`, "roof"},
		{"metadata", `{"user_id":"ann","metadata":{"herd":12,"place":"north"}}`, "cows"},
		{"other metadata", `{"user_id":"ann","metadata":{"herd":13}}`, ""},
		{"keywords", `{"user_id":"ann","keywords":{"icontains":"FIELD"}}`, "plough"},
		{"keywords with case", `{"user_id":"ann","keywords":{"contains":"FIELD"}}`, ""},
		{"since a day", `{"user_id":"ann","created_at":{"gte":"2024-01-02"}}`, "cows plough tractor"},
		{"until a day, all of it", `{"user_id":"ann","created_at":{"lte":"2024-01-02"}}`, "roof tractor"},
		{"before a day", `{"user_id":"ann","created_at":{"lt":"2024-01-02"}}`, "roof"},
		{"after a time", `{"user_id":"ann","created_at":{"gt":"2024-01-02T10:00:00Z","lt":"2024-01-04T00:00:00+00:00"}}`, "plough"},
		{"a time in seconds", `{"user_id":"ann","created_at":{"gte":1704276000}}`, "cows plough"},
		{"changed since", `{"user_id":"ann","updated_at":{"gte":"2025-01-01"}}`, "cows plough roof tractor"},
		{"nobody", `{"user_id":"zoe"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := word(texts(results(in.as(adminToken, "POST", "/v3/memories/", `{"filters":`+test.filters+`}`))))
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			found := word(texts(results(in.as(adminToken, "POST", "/v3/memories/search/",
				`{"query":"roof tractor plough cows hens geese","top_k":100,"filters":`+test.filters+`}`))))
			if diff := cmp.Diff(strings.Fields(test.want), found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnsupportedFilters(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	for filters, field := range map[string]string{
		`{"OR":[{"user_id":"ann"},{"user_id":"ben"}]}`:                "filters.OR",
		`{"NOT":[{"user_id":"ann"}]}`:                                 "filters.NOT",
		`{"AND":[{"user_id":"ann"},{"text":"tractor-word"}]}`:         "filters.AND[1].text",
		`{"AND":{"user_id":"ann"}}`:                                   "filters.AND",
		`{"user_id":{"ne":"tractor-word"}}`:                           "filters.user_id",
		`{"user_id":["ann",7]}`:                                       "filters.user_id",
		`{"user_id":"undefined"}`:                                     "filters.user_id",
		`{"created_at":"2024-01-01"}`:                                 "filters.created_at",
		`{"created_at":{"eq":"2024-01-01"}}`:                          "filters.created_at",
		`{"created_at":{"gte":"tractor-word"}}`:                       "filters.created_at.gte",
		`{"categories":{"ne":"tractor-word"}}`:                        "filters.categories",
		`{"metadata":{"a":{"contains":"tractor-word"}}}`:              "filters.metadata",
		`{"metadata":7}`:                                              "filters.metadata",
		`{"keywords":"tractor-word"}`:                                 "filters.keywords",
		`{"tractor word!":1}`:                                         "filters",
		`[]`:                                                          "filters",
		`{"user_id":{"in":["` + strings.Repeat(`a","`, 101) + `b"]}}`: "filters.user_id.in",
	} {
		for _, path := range []string{"/v3/memories/", "/v3/memories/search/"} {
			a := in.do(adminToken, "POST", path, `{"query":"x","filters":`+filters+`}`)
			if a.status != 422 || a.field() != field {
				t.Errorf("%s %s: %d %s, want the field %s", path, filters, a.status, a.body, field)
			}
			if strings.Contains(string(a.body), "tractor-word") || strings.Contains(string(a.body), "tractor word!") {
				t.Errorf("%s %s quotes the value: %s", path, filters, a.body)
			}
		}
	}
}

func TestPages(t *testing.T) {
	in := start(t, identity.TenantAuto)
	for n := range 7 {
		in.addFact(adminToken, "gil", fmt.Sprintf("Crate %d holds apples.", n))
	}
	body := obj{"filters": obj{"user_id": "gil"}}
	var seen []string
	for n, path := 0, "/v3/memories/?page=1&page_size=3"; path != ""; n++ {
		p := in.as(adminToken, "POST", path, body).(obj)
		if p["count"] != 7.0 || n > 2 {
			t.Fatalf("page %d: %v", n, p)
		}
		if got := p["previous"] != nil; got != (n > 0) {
			t.Errorf("page %d: previous %v", n, p["previous"])
		}
		seen = append(seen, texts(results(p))...)
		path, _ = p["next"].(string)
	}
	if len(seen) != 7 || len(slices.Compact(sorted(seen))) != 7 {
		t.Errorf("pages: %v", seen)
	}
	if p := in.as(adminToken, "POST", "/v3/memories/?page=9&page_size=3", body).(obj); p["count"] != 7.0 || len(results(p)) != 0 {
		t.Errorf("beyond the end: %v", p)
	}
	// The older forms are lists, unless a page is asked for.
	if v, ok := in.as(adminToken, "GET", "/v1/memories/?user_id=gil", nil).([]any); !ok || len(v) != 7 {
		t.Errorf("v1: %v", v)
	}
	if p := in.as(adminToken, "GET", "/v1/memories/?user_id=gil&page=2&page_size=5", nil).(obj); len(results(p)) != 2 ||
		!strings.Contains(p["previous"].(string), "user_id=gil") {
		t.Errorf("v1 page: %v", p)
	}
	if v, ok := in.as(adminToken, "POST", "/v2/memories/", body).([]any); !ok || len(v) != 7 {
		t.Errorf("v2: %v", v)
	}
	for _, path := range []string{"/memories?user_id=gil", "/api/v1/memories?user_id=gil"} {
		if v := in.as(adminToken, "GET", path, nil); len(results(v)) != 7 {
			t.Errorf("%s: %v", path, v)
		}
	}
	if v := in.as(adminToken, "GET", "/memories?user_id=gil&top_k=2", nil); len(results(v)) != 2 {
		t.Errorf("top_k: %v", v)
	}
	// Fields.
	p := in.as(adminToken, "POST", "/v3/memories/?page_size=1", obj{"filters": obj{"user_id": "gil"}, "fields": []string{"memory"}}).(obj)
	if m := results(p)[0]; len(m) != 2 || m["id"] == nil || m["memory"] == nil {
		t.Errorf("fields: %v", m)
	}
}

func TestSearch(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"user_id": "hal", "messages": say("I'm a vegetarian and allergic to nuts.", "I will keep your diet in mind.", "My sister's boat is called Marbella.", "Nice.")})
	in.add(adminToken, obj{"user_id": "ida", "messages": say("My boat is called Nautilus.")})
	find := func(body obj) []obj {
		return results(in.as(adminToken, "POST", "/v3/memories/search/", body))
	}
	got := find(obj{"query": "What is the boat called?", "filters": obj{"user_id": "hal"}})
	if len(got) == 0 || got[0]["memory"] != "My sister's boat is called Marbella." || strings.Contains(fmt.Sprint(got), "Nautilus") {
		t.Fatalf("found: %v", got)
	}
	for _, r := range got {
		if score := r["score"].(float64); score <= 0 || score > 1 {
			t.Errorf("score %v", score)
		}
	}
	// An answer that matches stands for what the user said.
	if got := find(obj{"query": "diet", "filters": obj{"user_id": "hal"}}); len(got) != 1 || got[0]["memory"] != "I'm a vegetarian and allergic to nuts." {
		t.Errorf("by the answer: %v", got)
	}
	if got := find(obj{"query": "boat", "filters": obj{"user_id": "hal"}, "threshold": 1.01}); len(got) != 0 {
		t.Errorf("above the threshold: %v", got)
	}
	if got := find(obj{"query": "boat vegetarian nuts", "filters": obj{"user_id": "hal"}, "top_k": 1}); len(got) != 1 {
		t.Errorf("top_k: %v", got)
	}
	if v, ok := in.as(adminToken, "POST", "/v1/memories/search/", obj{"query": "boat", "user_id": "ida"}).([]any); !ok || len(v) != 1 {
		t.Errorf("v1: %v", v)
	}
	if v := in.as(adminToken, "POST", "/search", obj{"query": "boat", "user_id": "ida"}); len(results(v)) != 1 {
		t.Errorf("self-hosted: %v", v)
	}
	in.as(adminToken, "POST", "/v3/memories/add/", obj{"messages": say("My boat hides a safe."), "user_id": "ida", "infer": false, "categories": []string{"private"}})
	if got := find(obj{"query": "boat safe", "filters": obj{"user_id": "ida"}}); strings.Contains(fmt.Sprint(got), "hides") {
		t.Errorf("a private memory is found: %v", got)
	}
	if got := in.all(adminToken, "ida"); len(got) != 2 {
		t.Errorf("a private memory is not listed: %v", texts(got))
	}
	m := results(in.as(adminToken, "POST", "/api/v1/memories/search", obj{"query": "boat", "user_id": "ida"}))[0]
	for _, field := range []string{"id", "memory", "score", "metadata"} {
		if _, ok := m[field]; !ok {
			t.Errorf("a result without %s: %v", field, m)
		}
	}
}
