package mem0

import (
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
)

func TestEventsAreBounded(t *testing.T) {
	in := start(t, identity.TenantAuto)
	for n := range maxEvents + 5 {
		in.as(adminToken, "POST", "/v3/memories/add/", obj{"messages": say(fmt.Sprintf("Box %d holds nails.", n%3)), "user_id": "ann", "infer": false})
	}
	v := in.as(adminToken, "GET", "/v1/events/?page_size=2", nil).(obj)
	if v["count"] != float64(maxEvents) || len(results(v)) != 2 || v["next"] == nil {
		t.Errorf("events: %v", v)
	}
	for n := range maxExports + 5 {
		in.as(adminToken, "POST", "/v1/exports/", obj{"filters": obj{"user_id": fmt.Sprint("u", n)}})
	}
	if n := len(in.handler.(*face).exports.all); n != maxExports {
		t.Errorf("%d exports", n)
	}
}

// While nothing can be audited events wait, and no more than are remembered.
func TestEventsWait(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"messages": say("The bell rings at noon."), "user_id": "ann"})
	in.store.Fail(true)
	body := obj{"messages": say("I was born in Faro."), "user_id": "ann"}
	pending := in.as(adminToken, "POST", "/v3/memories/add/", body).(obj)
	x := in.handler.(*face).events
	x.mu.Lock()
	x.open += maxEvents - 1
	x.mu.Unlock()
	if a := in.do(adminToken, "POST", "/v3/memories/add/", body); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("with a full list: %d %s", a.status, a.body)
	}
	x.mu.Lock()
	x.open -= maxEvents - 1
	x.mu.Unlock()
	if a := in.do(adminToken, "POST", "/v3/memories/", obj{"filters": obj{"user_id": "ann"}}); a.status != 503 {
		t.Errorf("without a store: %d %s", a.status, a.body)
	}
	in.store.Fail(false)
	e := in.settled(adminToken, pending["event_id"].(string))
	if e["status"] != statusSucceeded || len(results(e)) != 1 {
		t.Errorf("event: %v", e)
	}
	// What was deleted since is not told of.
	in.as(adminToken, "DELETE", "/v1/memories/"+results(e)[0]["id"].(string)+"/", nil)
	if e := in.as(adminToken, "GET", "/v1/event/"+e["id"].(string)+"/", nil); len(results(e)) != 0 {
		t.Errorf("after the deletion: %v", e)
	}
}

// The key of a tenant reads what the admin did for it.
func TestEventsOfATenant(t *testing.T) {
	alice, bob := api.Target{Tenant: "key:1", User: "alice"}, api.Target{Tenant: "key:1", User: "bob"}
	for _, test := range []struct {
		p     api.Principal
		owner api.Target
		may   bool
	}{
		{api.Principal{Admin: true}, alice, true},
		{api.Principal{Tenant: "key:1"}, alice, true},
		{api.Principal{Tenant: "key:2"}, alice, false},
		{api.Principal{Tenant: "key:1", User: "alice"}, alice, true},
		{api.Principal{Tenant: "key:1", User: "alice"}, bob, false},
		{api.Principal{}, alice, false},
	} {
		if got := mayRead(test.p, test.owner); got != test.may {
			t.Errorf("%+v of %+v: %v", test.p, test.owner, got)
		}
	}
}
