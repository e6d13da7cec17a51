package mem0

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/proxy/identity"
)

// request is one of a route's.
type exchange struct {
	method, path string
	body         any
	foreign      int  // the status for somebody else's id; 0 = that of one's own
	admin        bool // only the admin may
}

// exchanges has a request for every route. id is a memory's, event an event's,
// export that of an export. They delete nothing that a later one needs, if they
// are sent in order.
func exchanges(id, event, export string) []exchange {
	message := say("The ox is called Bruno.")
	one := obj{"filters": obj{"user_id": "ann"}}
	return []exchange{
		{"GET", "/v1/ping/", nil, 0, false},
		{"POST", "/v3/memories/add/", obj{"messages": message, "user_id": "ann"}, 0, false},
		{"POST", "/v3/memories/", one, 0, false},
		{"POST", "/v3/memories/search/", obj{"query": "violin", "filters": obj{"user_id": "ann"}}, 0, false},
		{"POST", "/v2/memories/", one, 0, false},
		{"POST", "/v2/memories/search/", obj{"query": "violin", "filters": obj{"user_id": "ann"}}, 0, false},
		{"POST", "/v1/memories/", obj{"messages": message, "user_id": "ann", "infer": false}, 0, false},
		{"GET", "/v1/memories/?user_id=ann", nil, 0, false},
		{"POST", "/v1/memories/search/", obj{"query": "violin", "user_id": "ann"}, 0, false},
		{"GET", "/v1/memories/" + id + "/", nil, 404, false},
		{"PUT", "/v1/memories/" + id + "/", obj{"metadata": obj{"seen": true}}, 404, false},
		{"GET", "/v1/memories/" + id + "/history/", nil, 404, false},
		{"PUT", "/v1/batch/", obj{"memories": []obj{{"memory_id": id, "metadata": obj{"seen": 1}}}}, 404, false},
		{"GET", "/v1/entities/", nil, 0, false},
		{"GET", "/v2/entities/user/ann/", nil, 0, false},
		{"GET", "/v1/event/" + event + "/", nil, 404, false},
		{"GET", "/v1/events/", nil, 0, false},
		{"POST", "/v1/exports/", obj{"schema": obj{}, "filters": obj{"user_id": "ann"}}, 0, false},
		{"POST", "/v1/exports/get/", obj{"memory_export_id": export}, 404, false},
		{"POST", "/v1/feedback/", obj{"memory_id": id, "feedback": "NEGATIVE"}, 404, false},
		{"POST", "/memories", obj{"messages": message, "user_id": "ann", "infer": false}, 0, false},
		{"GET", "/memories?user_id=ann", nil, 0, false},
		{"GET", "/memories/" + id, nil, 404, false},
		{"PUT", "/memories/" + id, obj{"metadata": obj{"seen": 2}}, 404, false},
		{"GET", "/memories/" + id + "/history", nil, 404, false},
		{"POST", "/search", obj{"query": "violin", "user_id": "ann"}, 0, false},
		{"GET", "/entities", nil, 0, false},
		{"POST", "/api/v1/memories", obj{"messages": message, "user_id": "ann", "infer": false}, 0, false},
		{"GET", "/api/v1/memories?user_id=ann", nil, 0, false},
		{"POST", "/api/v1/memories/search", obj{"query": "violin", "user_id": "ann"}, 0, false},
		{"GET", "/api/v1/memories/" + id, nil, 404, false},
		{"POST", "/reset?user_id=zoe", nil, 0, true},
		{"DELETE", "/api/v1/memories/" + id, nil, 404, false},
		{"DELETE", "/v1/memories/" + id + "/", nil, 404, false},
		{"DELETE", "/memories/" + id, nil, 404, false},
		{"DELETE", "/v1/batch/", obj{"memories": []obj{{"memory_id": id}}}, 404, false},
		{"DELETE", "/v1/memories/?user_id=ann", nil, 0, false},
		{"DELETE", "/memories?user_id=ann", nil, 0, false},
		{"DELETE", "/api/v1/memories?user_id=ann", nil, 0, false},
		{"DELETE", "/v1/entities/app/orchestra/", nil, 404, false},
		{"DELETE", "/entities/agent/tuner", nil, 404, false},
		{"DELETE", "/v2/entities/user/ann/", nil, 0, false},
	}
}

// Every route of the table is in exchanges.
func TestEveryRouteIsTried(t *testing.T) {
	all := routes()
	tried := map[int]bool{}
	for _, e := range exchanges("id", "event", "export") {
		path, _, _ := strings.Cut(e.path, "?")
		for i := range all {
			if _, ok := all[i].match(strings.Split(strings.Trim(path, "/"), "/")); ok && all[i].method == e.method {
				tried[i] = true
				break
			}
		}
	}
	for i := range all {
		if all[i].method != "" && !tried[i] {
			t.Errorf("%s /%s is not tried", all[i].method, strings.Join(all[i].segments, "/"))
		}
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	in := startKeys(t)
	secret, err := in.store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tenant := identity.Show(in.service.Identity.TenantOf(secret, keyOne))
	const content = "violin"
	var id, event, export string
	furnish := func() {
		id = in.addFact(keyOne, "ann", "The violin of the museum is old.")
		in.as(keyOne, "POST", "/v3/memories/add/", obj{"messages": say("The cello needs strings."), "infer": false, "user_id": "ann", "app_id": "orchestra", "agent_id": "tuner"})
		in.as(keyOne, "POST", "/v3/memories/add/", obj{"messages": say("The harp needs strings."), "infer": false, "user_id": "kim", "agent_id": "tuner"})
		event = in.as(keyOne, "POST", "/v3/memories/add/", obj{"messages": say("I play the violin since 1999."), "user_id": "ann"}).(obj)["event_id"].(string)
		in.settled(keyOne, event)
		export = in.as(keyOne, "POST", "/v1/exports/", obj{"schema": obj{}, "filters": obj{"user_id": "ann"}}).(obj)["id"].(string)
	}
	furnish()
	for _, e := range exchanges(id, event, export) {
		for who, key := range map[string]string{"nobody": "", "a wrong key": "m0-0000000000000000", "a dummy": "test"} {
			if a := in.do(key, e.method, e.path, e.body); a.status != 401 || strings.Contains(string(a.body), content) || a.header.Get("Www-Authenticate") == "" {
				t.Errorf("%s: %s %s: %d %s", who, e.method, e.path, a.status, a.body)
			}
		}
		// Of another key the ids are unknown, and names are other people.
		a := in.do(keyTwo, e.method, e.path, e.body)
		if strings.Contains(string(a.body), content) || strings.Contains(string(a.body), "orchestra") {
			t.Errorf("another key sees it: %s %s: %s", e.method, e.path, a.body)
		}
		switch {
		case e.admin && a.status != 403, e.foreign != 0 && a.status != e.foreign, e.foreign == 0 && !e.admin && a.status/100 != 2:
			t.Errorf("another key: %s %s: %d %s", e.method, e.path, a.status, a.body)
		}
	}
	if m := in.as(keyOne, "GET", "/v1/memories/"+id+"/", nil).(obj); m["memory"] != "The violin of the museum is old." {
		t.Errorf("somebody else changed %v", m)
	}
	// The owner, and the admin for the owner's tenant.
	gone := map[bool]int{}
	for _, e := range exchanges(id, event, export) {
		a := in.do(keyOne, e.method, e.path, e.body)
		switch {
		case e.admin:
			if a.status != 403 {
				t.Errorf("the owner: %s %s: %d %s", e.method, e.path, a.status, a.body)
			}
		case a.status == 404 && e.method == "DELETE" && e.foreign != 0 && gone[true] < 4: // the memory is deleted once
			gone[true]++
		case a.status/100 != 2:
			t.Errorf("the owner: %s %s: %d %s", e.method, e.path, a.status, a.body)
		}
	}
	furnish()
	gone = map[bool]int{}
	for _, e := range exchanges(id, event, export) {
		path := e.path + "?tenant=" + url.QueryEscape(tenant)
		if strings.Contains(e.path, "?") {
			path = e.path + "&tenant=" + url.QueryEscape(tenant)
		}
		a := in.do(adminToken, e.method, path, e.body)
		if a.status == 404 && e.method == "DELETE" && e.foreign != 0 && gone[true] < 4 {
			gone[true]++
			continue
		}
		if a.status/100 != 2 {
			t.Errorf("the admin: %s %s: %d %s", e.method, path, a.status, a.body)
		}
	}
	if got := texts(in.all(keyTwo, "someone")); len(got) != 1 {
		t.Errorf("another key's: %v", got)
	}
}

// Somebody whom a proxy in front has authenticated reaches nobody else.
func TestOnlyTheAuthenticatedUser(t *testing.T) {
	in := startKeys(t)
	id := in.addFact(keyOne, "ann", "The violin of the museum is old.")
	event := in.as(keyOne, "POST", "/v3/memories/add/", obj{"messages": say("I play the violin."), "user_id": "ann"}).(obj)["event_id"].(string)
	in.settled(keyOne, event)
	in.addFact(keyOne, "ben", "The drum of the museum is new.")
	send := func(user, method, path string, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("X-Api-Key", keyOne)
		r.Header.Set("X-Remora-User", user)
		w := httptest.NewRecorder()
		in.handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/memories/" + id + "/", "", 404},
		{"DELETE", "/v1/memories/" + id + "/", "", 404},
		{"GET", "/v1/event/" + event + "/", "", 404},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"ann"}}`, 404},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"ann","app_id":"default","agent_id":"default"}}`, 404},
		{"POST", "/v3/memories/search/", `{"query":"violin","filters":{"user_id":"ann"}}`, 404},
		{"POST", "/v3/memories/", `{"filters":{"user_id":"*"}}`, 200},
		{"POST", "/v3/memories/search/", `{"query":"violin","filters":{}}`, 200},
		{"POST", "/v3/memories/add/", `{"messages":"x","user_id":"ann"}`, 404},
		{"DELETE", "/v1/memories/?user_id=ann", "", 404},
		{"DELETE", "/v1/memories/?user_id=*", "", 200},
		{"DELETE", "/v2/entities/user/ann/", "", 404},
		{"GET", "/v1/entities/", "", 200},
		{"GET", "/v1/events/", "", 200},
	} {
		status, body := send("ben", test.method, test.path, test.body)
		if status != test.status || strings.Contains(body, "violin") || strings.Contains(body, `"ann"`) {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, body)
		}
	}
	if status, body := send("ann", "GET", "/v1/memories/"+id+"/", ""); status != 200 {
		t.Errorf("one's own: %d %s", status, body)
	}
}

func TestUnknownPaths(t *testing.T) {
	in := start(t, identity.TenantAuto)
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 404}, {"GET", "/v9/memories/", 404}, {"GET", "/v1//memories", 404}, {"GET", "/v1/memories/a/b/c", 404}, {"GET", "/v1/memories/%zz", 404},
		{"PATCH", "/v1/memories/", 405}, {"GET", "/v3/memories/search/", 405}, {"POST", "/v1/ping/", 405},
		{"POST", "/v1/summary/", 501}, {"GET", "/v2/profiles/settings/", 501}, {"POST", "/v2/profiles/jobs/", 501}, {"GET", "/v2/entities/user/ann/profile/", 501},
		{"GET", "/api/v1/orgs/organizations/a/projects/b/", 501}, {"PATCH", "/api/v1/orgs/organizations/a/projects/b/", 501},
		{"GET", "/api/v1/webhooks/projects/b/", 501}, {"DELETE", "/api/v1/webhooks/7/", 501}, {"POST", "/configure", 501}, {"POST", "/v1/agent-rush/memories/", 501},
	} {
		r := &http.Request{Method: test.method, URL: &url.URL{Path: test.path}, Header: http.Header{"Authorization": {"Bearer " + adminToken}}, Body: http.NoBody}
		w := httptest.NewRecorder()
		in.handler.ServeHTTP(w, r.WithContext(t.Context()))
		if w.Code != test.status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s %s", test.method, test.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if (w.Code == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: Allow is %q", test.method, test.path, w.Header().Get("Allow"))
		}
	}
}
