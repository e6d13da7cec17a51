package mem0

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/proxy/identity"
)

// entityNames returns type and name of all entities.
func (in *installation) entityNames() (out []string) {
	in.t.Helper()
	for _, e := range results(in.as(adminToken, "GET", "/v1/entities/", nil)) {
		out = append(out, e["type"].(string)+" "+e["name"].(string))
	}
	return out
}

func TestEntities(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	want := []string{"agent mechanic", "app farm", "user (key holder)", "user ann", "user ben smith"}
	if diff := cmp.Diff(want, in.entityNames()); diff != "" {
		t.Errorf("entities (-want +got):\n%s", diff)
	}
	v := in.as(adminToken, "GET", "/v1/entities/?page=2&page_size=2", nil).(obj)
	if v["count"] != 5.0 || v["total_users"] != 3.0 || v["total_agents"] != 1.0 || v["total_apps"] != 1.0 || len(results(v)) != 2 || v["next"] == nil || v["previous"] == nil {
		t.Errorf("a page: %v", v)
	}
	if l := in.as(adminToken, "GET", "/entities", nil).([]any); len(l) != 5 {
		t.Errorf("self-hosted: %v", l)
	}
	if l := in.as(adminToken, "GET", "/v2/entities/user/ann/", nil).([]any); len(l) != 1 || l[0].(obj)["total_memories"] != 4.0 {
		t.Errorf("one: %v", l)
	}
	for _, test := range []struct{ path, left string }{
		{"/v2/entities/run/r1/", "agent mechanic,app farm,user (key holder),user ann,user ben smith"},
		{"/v2/entities/agent/mechanic/", "app farm,user (key holder),user ann,user ben smith"},
		{"/v2/entities/user/ben%20smith/", "app farm,user (key holder),user ann"},
		{"/v1/entities/app/farm/?source=CLI", "user (key holder),user ann"},
		{"/entities/user/ann", "user (key holder)"},
		{"/v2/entities/user/(key%20holder)/", ""},
	} {
		in.as(adminToken, "DELETE", test.path, nil)
		if got := strings.Join(in.entityNames(), ","); got != test.left {
			t.Errorf("after %s: %s, want %s", test.path, got, test.left)
		}
		if a := in.do(adminToken, "DELETE", test.path, nil); a.status != 404 {
			t.Errorf("%s again: %d %s", test.path, a.status, a.body)
		}
	}
	if a := in.do(adminToken, "DELETE", "/v2/entities/planet/earth/", nil); a.status != 422 || a.field() != "type" {
		t.Errorf("no type: %d %s", a.status, a.body)
	}
	if a := in.do(adminToken, "DELETE", "/v2/entities/user/*/", nil); a.status != 422 || a.field() != "name" {
		t.Errorf("everybody: %d %s", a.status, a.body)
	}
}

func TestReset(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	in.as(adminToken, "POST", "/reset", nil)
	if got := strings.Join(in.entityNames(), ","); got != "agent mechanic,app farm,user ann,user ben smith" {
		t.Errorf("left: %s", got)
	}
	in.as(adminToken, "POST", "/reset?user_id=ann", nil)
	in.as(adminToken, "POST", "/reset?user_id=ann", nil) // nothing is left, which is what was asked for
	if got := strings.Join(in.entityNames(), ","); got != "user ben smith" {
		t.Errorf("left: %s", got)
	}
}

func TestExports(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	a := in.do(adminToken, "POST", "/v1/exports/", obj{"schema": obj{"type": "object"}, "filters": obj{"user_id": "ann", "app_id": "farm"}})
	if a.status != 201 {
		t.Fatalf("created: %d %s", a.status, a.body)
	}
	id := in.as(adminToken, "POST", "/v1/exports/", obj{"schema": obj{}, "filters": obj{"user_id": "ann", "run_id": "r1"}}).(obj)["id"]
	if got := word(texts(results(in.as(adminToken, "POST", "/v1/exports/get/", obj{"memory_export_id": id})))); !cmp.Equal(got, []string{"tractor"}) {
		t.Errorf("by id: %v", got)
	}
	if got := word(texts(results(in.as(adminToken, "POST", "/v1/exports/get", obj{"filters": obj{"user_id": "ann", "app_id": "farm"}})))); !cmp.Equal(got, []string{"cows", "plough"}) {
		t.Errorf("by filters: %v", got)
	}
	if got := results(in.as(adminToken, "POST", "/v1/exports/get", obj{"user_id": "zoe"})); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
	// What was erased meanwhile is not in it.
	in.as(adminToken, "DELETE", "/v2/entities/user/ann/", nil)
	if got := results(in.as(adminToken, "POST", "/v1/exports/get/", obj{"memory_export_id": id})); len(got) != 0 {
		t.Errorf("after an erasure: %v", got)
	}
	if a := in.do(adminToken, "POST", "/v1/exports/get/", obj{"memory_export_id": "1234"}); a.status != 404 {
		t.Errorf("unknown: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/v1/exports/", "/v1/exports/get/"} {
		if a := in.do(adminToken, "POST", path, obj{"schema": obj{}}); a.status != 422 || a.field() != "filters" {
			t.Errorf("%s without filters: %d %s", path, a.status, a.body)
		}
	}
}
