package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// Keys of two tenants, and one under which nothing is remembered.
const (
	keyA     = "sk-ant-a1b2c3d4e5f6g7h8i9j0"
	keyB     = "sk-ant-z9y8x7w6v5u4t3s2r1q0"
	keyWrong = "sk-ant-m1n2o3p4q5r6s7t8u9v0"
)

// marker is in every text of tenant A.
const marker = "Marbella"

// tenancy is a rig with two tenants.
type tenancy struct {
	*rig
	tenantA                    string // as requests name it
	memory, passage, exchanges string // ids of A's
	replaced, request          string // a superseded fact, and a request to forget
}

// newTenancy gives ada, a user of A, something of everything, and bea of B one
// memory.
func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	r := newRig(t, options{who: byKey()})
	shown, part := r.tenant(t, keyA)
	shownB, _ := r.tenant(t, keyB)
	out := &tenancy{rig: r, tenantA: url.QueryEscape(shown)}
	mine := "tenant=" + out.tenantA + "&user=ada"
	out.memory = r.add(t, mine, "My boat is called "+marker+"; write to ada@example.com.", nil).ID
	r.send(t, "PATCH", "/v1/memories/"+out.memory+"?"+mine, object{"priority": 0.9, "why": marker}).want(t, 200)
	r.send(t, "POST", "/v1/resources?resource_uri="+marker+"&"+mine, "The papers of "+marker+".", "Content-Type", "text/plain").want(t, 201)
	r.send(t, "PUT", "/v1/entries/k?"+mine, object{"value": marker, "ttl": 600}).want(t, 201)
	r.send(t, "POST", "/v1/events/message?tenant="+out.tenantA, object{
		"userId": "ada", "threadId": "t1", "msgId": "m1", "role": "user", "content": "Remember that " + marker + " is in the harbour.",
	}).want(t, 202)
	r.settle(t)
	for _, m := range r.list(t, mine+"&kind=episode") {
		out.passage = m.ID
	}
	out.replaced = r.add(t, mine, "I live near "+marker+".", object{"eventTime": "2026-01-01"}).ID
	r.add(t, mine, "I live near Porto.", nil)
	r.send(t, "POST", "/v1/events/message?tenant="+out.tenantA, object{
		"userId": "ada", "threadId": "t2", "msgId": "m1", "role": "user", "content": "Please forget what I said about the cellar of " + marker + ".",
	}).want(t, 202)
	r.settle(t)
	for _, f := range get[forgetRequests](t, r.send(t, "GET", "/v1/forget-requests?"+mine, nil)).Requests {
		out.request = f.ID
	}
	receipt := &receipt.Receipt{
		At: storage.TimeOf(time.Now()), Scope: storage.Scope{Tenant: part, App: "default", Project: "default", User: "ada"}, Status: "hit",
		Query: "Where is " + marker + "?", Candidates: []receipt.Candidate{{ID: out.memory, Score: 1, Inserted: true}},
	}
	r.receipts.Record(receipt)
	out.exchanges = receipt.ID
	r.eventually(t, func() bool {
		return len(get[api.Exchanges](t, r.send(t, "GET", "/v1/exchanges?"+mine, nil)).Exchanges) == 1
	})
	r.add(t, "tenant="+url.QueryEscape(shownB)+"&user=bea", "I play the trumpet.", nil)
	r.ahead.Store(int64(10 * time.Second)) // the tenants are looked up again
	return out
}

// access is what a route answers to whom: with the ids of A's user to A's key,
// to B's key, and to A's key for another user. Lists are empty for others.
type access struct {
	route, target      string
	body               any
	own, foreign, user int
}

// routes returns all routes with A's ids, those that change least first.
func (y *tenancy) routes() []access {
	memory, passage := "/v1/memories/"+y.memory, "/v1/memories/"+y.passage
	return []access{
		{"GET /v1/memories", "/v1/memories", nil, 200, 200, 200},
		{"GET /v1/memories/{id}", memory, nil, 200, 404, 404},
		{"GET /v1/memories/{id}/history", memory + "/history", nil, 200, 404, 404},
		{"GET /v1/memories/{id}/originals", memory + "/originals", nil, 200, 404, 404},
		{"GET /v1/sources", "/v1/sources", nil, 200, 200, 200},
		{"GET /v1/contradictions", "/v1/contradictions", nil, 200, 200, 200},
		{"GET /v1/forget-requests", "/v1/forget-requests", nil, 200, 200, 200},
		{"POST /v1/memories/search", "/v1/memories/search", object{"query": marker + " boat harbour"}, 200, 200, 200},
		{"POST /v1/recall", "/v1/recall", object{"message": "Where is the boat " + marker + "?"}, 200, 200, 200},
		{"POST /v1/context", "/v1/context", object{"namespace": "default"}, 200, 200, 200},
		{"GET /v1/resources", "/v1/resources", nil, 200, 200, 200},
		{"GET /v1/entries", "/v1/entries", nil, 200, 200, 200},
		{"GET /v1/entries/{key...}", "/v1/entries/k", nil, 200, 404, 404},
		{"GET /v1/audits", "/v1/audits", nil, 200, 200, 200},
		{"GET /v1/export", "/v1/export", nil, 200, 200, 200},
		{"GET /v1/users", "/v1/users", nil, 200, 200, 200},
		{"GET /v1/exchanges", "/v1/exchanges", nil, 200, 200, 200},
		{"GET /v1/exchanges/{id}", "/v1/exchanges/" + y.exchanges, nil, 200, 404, 404},
		{"GET /v1/exchanges/recent", "/v1/exchanges/recent", nil, 200, 200, 200},
		{"GET /v1/exchanges/{id}/conversation", "/v1/exchanges/" + y.exchanges + "/conversation", nil, 200, 404, 404},
		{"GET /v1/benefit", "/v1/benefit", nil, 200, 200, 200},
		{"GET /v1/metrics", "/v1/metrics", nil, 403, 403, 403},
		{"GET /v1/settings", "/v1/settings", nil, 403, 403, 403},
		{"POST /v1/login-links", "/v1/login-links", nil, 403, 403, 403},
		{"POST /v1/memories/{id}/prefer", "/v1/memories/" + y.replaced + "/prefer", nil, 200, 404, 404},
		{"POST /v1/forget-requests/{id}", "/v1/forget-requests/" + y.request, object{"forget": false}, 200, 404, 404},
		{"POST /v1/memories/merge", "/v1/memories/merge", object{"ids": []string{y.replaced, y.memory}}, 200, 404, 404},
		{"POST /v1/memories/{id}/undo", memory + "/undo", nil, 200, 404, 404},
		{"PATCH /v1/memories/{id}", memory, object{"priority": 0.7}, 200, 404, 404},
		{"POST /v1/memories/{id}/unwanted", memory + "/unwanted", object{"question": "Which boat is in the harbour?"}, 200, 404, 404},
		{"DELETE /v1/memories/{id}/unwanted", memory + "/unwanted", nil, 200, 404, 404},
		{"POST /v1/memories/{id}/feedback", memory + "/feedback", object{"helped": true}, 200, 404, 404},
		{"POST /v1/memories/{id}/undo", memory + "/undo", nil, 200, 404, 404},
		{"DELETE /v1/memories/{id}", memory, nil, 200, 404, 404},
		{"POST /v1/memories/delete", "/v1/memories/delete", object{"ids": []string{y.passage}}, 200, 404, 404},
		{"POST /v1/memories/{id}/undo", passage + "/undo", nil, 200, 404, 404},
		{"DELETE /v1/resources", "/v1/resources?resource_uri=" + marker, nil, 200, 404, 404},
		{"DELETE /v1/entries/{key...}", "/v1/entries/k", nil, 204, 404, 404},
		{"DELETE /v1/conversations/{id...}", "/v1/conversations/t1", nil, 200, 404, 404},
		{"DELETE /v1/users/{id}", "/v1/users/ada", nil, 200, 404, 404},
		{"POST /v1/memories", "/v1/memories", object{"text": "I sail."}, 201, 201, 201},
		{"POST /v1/resources", "/v1/resources?resource_uri=x", object{"text": "I sail."}, 415, 415, 415},
		{"PUT /v1/entries/{key...}", "/v1/entries/mine", object{"value": 1, "ttl": 60}, 201, 201, 201},
		{"POST /v1/events/message", "/v1/events/message", object{"threadId": "t", "msgId": "m", "role": "user", "content": "I sail."}, 202, 202, 202},
		{"POST /v1/import", "/v1/import?format=mem0", `{"results":[{"id":"1","memory":"Plays the cello"}]}`, 200, 200, 200},
	}
}

// withQuery adds to a target.
func withQuery(target, query string) string {
	if strings.Contains(target, "?") {
		return target + "&" + query
	}
	return target + "?" + query
}

func (y *tenancy) ask(t *testing.T, r *rig, c access, query string) answer {
	t.Helper()
	method, _, _ := strings.Cut(c.route, " ")
	return r.send(t, method, withQuery(c.target, query), c.body)
}

func TestAccess(t *testing.T) {
	y := newTenancy(t)
	covered := map[string]bool{"GET /v1/exchanges/watch": true} // watch_test.go
	export := func() string {
		return y.send(t, "GET", "/v1/export?user=ada&tenant="+y.tenantA, nil).want(t, 200).body +
			y.send(t, "GET", "/v1/entries?user=ada&tenant="+y.tenantA, nil).want(t, 200).body
	}
	before := export()
	if !strings.Contains(before, marker) {
		t.Fatal("nothing to hide")
	}
	// Somebody without a right gets nothing and changes nothing.
	for who, caller := range map[string]*rig{
		"no key": y.with("Authorization", ""), "wrong key": y.with("Authorization", "Bearer "+keyWrong), "dummy key": y.with("Authorization", "Bearer sk-dummy"),
		"other scheme": y.with("Authorization", "Basic "+keyA), "empty key": y.with("Authorization", "Bearer "),
		"wrong X-Api-Key": y.with("Authorization", "", "X-Api-Key", keyWrong),
	} {
		for _, c := range y.routes() {
			a := y.ask(t, caller, c, "user=ada&tenant="+y.tenantA)
			a.what = who + ": " + a.what
			a.problem(t, http.StatusUnauthorized, "unauthorized", "")
			if a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: WWW-Authenticate %q", a.what, a.header.Get("WWW-Authenticate"))
			}
		}
	}
	foreign := y.with("Authorization", "Bearer "+keyB)
	another := y.with("Authorization", "Bearer "+keyA, "X-User-Id", "ben")
	for _, c := range y.routes() {
		covered[c.route] = true
		// Another tenant's name is no tenant.
		want := 404
		if c.foreign == 403 {
			want = 403
		}
		if a := y.ask(t, foreign, c, "user=ada&tenant="+y.tenantA); a.status != want || strings.Contains(a.body, marker) {
			t.Errorf("another key, naming the tenant: %s: %d %s", a.what, a.status, a.body)
		}
		// Without it, the ids lead nowhere.
		a := y.ask(t, foreign, c, "user=ada")
		if a.status != c.foreign || strings.Contains(a.body, marker) {
			t.Errorf("another key: %s: %d, want %d: %s", a.what, a.status, c.foreign, a.body)
		}
		if a = y.ask(t, foreign, c, "user=bea"); strings.Contains(a.body, marker) {
			t.Errorf("another key, for its own user: %s: %s", a.what, a.body)
		}
		// A key that is bound to another user reaches neither the user nor the ids.
		if a = y.ask(t, another, c, "user=ada"); a.status != want || strings.Contains(a.body, marker) {
			t.Errorf("another user, naming ada: %s: %d %s", a.what, a.status, a.body)
		}
		if c.route != "DELETE /v1/users/{id}" {
			a = y.ask(t, another, c, "")
			if a.status != c.user || strings.Contains(a.body, marker) {
				t.Errorf("another user: %s: %d, want %d: %s", a.what, a.status, c.user, a.body)
			}
		}
	}
	if after := export(); after != before {
		t.Errorf("others have changed ada's memory:\n%s\n%s", before, after)
	}
	for pattern := range routes() {
		if !covered[pattern] {
			t.Errorf("no row for %s", pattern)
		}
	}
}

// The key's own user, and the admin who names the tenant, reach everything.
func TestAccessOfOwners(t *testing.T) {
	for who, query := range map[string]string{"key": "user=ada", "X-Api-Key": "user=ada", "token": "user=ada", "bound": "", "admin": "user=ada&tenant="} {
		y := newTenancy(t)
		caller := map[string]*rig{
			"key": y.with("Authorization", "Bearer "+keyA), "X-Api-Key": y.with("Authorization", "", "X-Api-Key", keyA),
			"token": y.with("Authorization", "Token "+keyA), "bound": y.with("Authorization", "Bearer "+keyA, "X-User-Id", "ada"), "admin": y.rig,
		}[who]
		if who == "admin" {
			query += y.tenantA
		}
		for _, c := range y.routes() {
			want := c.own
			switch {
			case who != "admin":
			case c.route == "POST /v1/login-links":
				want = 201
			case c.own == 403: // what only the admin may do
				want = 200
			}
			a := y.ask(t, caller, c, query)
			if a.status != want {
				t.Errorf("%s: %s: %d, want %d: %s", who, a.what, a.status, want, a.body)
			}
			if c.own == 200 && c.foreign == 200 && !strings.Contains(c.route, "audits") && !strings.Contains(c.route, "users") && !strings.Contains(c.route, "sources") && !strings.Contains(c.route, "benefit") && !strings.Contains(c.route, "import") && !strings.Contains(a.body, marker) {
				t.Errorf("%s: %s does not have what ada is entitled to: %s", who, a.what, a.body)
			}
		}
	}
}

// Where each key has a memory of its own, the admin names the tenant, and a key
// names the user.
func TestWhatMustBeNamed(t *testing.T) {
	y := newTenancy(t)
	y.send(t, "GET", "/v1/memories?user=ada", nil).problem(t, 422, "invalid", "tenant")
	key := y.with("Authorization", "Bearer "+keyA)
	key.send(t, "GET", "/v1/memories", nil).problem(t, 422, "invalid", "user")
	key.send(t, "GET", "/v1/memories/"+y.memory, nil).want(t, 200) // an id says whose
	y.send(t, "GET", "/v1/memories/"+y.memory, nil).want(t, 200)
	y.send(t, "GET", "/v1/memories/"+y.memory+"?user=ben", nil).problem(t, 404, "not-found", "")
	users := get[api.Users](t, y.send(t, "GET", "/v1/users", nil))
	if len(users.Users) != 2 {
		t.Errorf("the admin sees %+v", users)
	}
	if users = get[api.Users](t, key.send(t, "GET", "/v1/users", nil)); len(users.Users) != 1 || users.Users[0].User != "ada" {
		t.Errorf("a key sees %+v", users)
	}
	if n := strings.Count(y.send(t, "GET", "/v1/export", nil).want(t, 200).body, "\n"); n < 4 {
		t.Errorf("the admin exports %d memories of all tenants", n)
	}
	// A key becomes one as soon as something is remembered under it.
	late := y.with("Authorization", "Bearer "+keyWrong)
	late.send(t, "GET", "/v1/memories?user=eva", nil).problem(t, 401, "unauthorized", "")
	shown, _ := y.tenant(t, keyWrong)
	y.add(t, "user=eva&tenant="+url.QueryEscape(shown), "I sail.", nil)
	y.ahead.Add(int64(10 * time.Second))
	if got := late.list(t, "user=eva"); len(got) != 1 {
		t.Errorf("eva has %q", texts(got))
	}
}

// On one person's machine keys open nothing: all share one memory, which the
// admin token opens.
func TestKeysOpenNothingOnOnePersonsMachine(t *testing.T) {
	r := newService(t)
	r.add(t, "", "I sail.", nil)
	for _, key := range []string{keyA, "", adminToken[:5], adminToken + "x"} {
		r.with("Authorization", "Bearer "+key).send(t, "GET", "/v1/memories", nil).problem(t, 401, "unauthorized", "")
	}
	if got := r.list(t, ""); len(got) != 1 || got[0].User != "(key holder)" {
		t.Errorf("listed %+v", got)
	}
	if got := r.list(t, "user="+url.QueryEscape("(key holder)")); len(got) != 1 {
		t.Errorf("by name: %+v", got)
	}
}
