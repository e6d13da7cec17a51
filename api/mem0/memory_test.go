package mem0

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
)

func TestUpdateAndHistory(t *testing.T) {
	in := start(t, identity.TenantAuto)
	id := in.addFact(adminToken, "ann", "The well is four metres deep.")
	path := "/v1/memories/" + id + "/"
	m := in.as(adminToken, "PUT", path, obj{"text": "The well is five metres deep.", "metadata": obj{"by": "ann"}, "source": "CLI", "expiration_date": nil}).(obj)
	if m["memory"] != "The well is five metres deep." || !cmp.Equal(m["metadata"], any(obj{"by": "ann"})) {
		t.Errorf("updated: %v", m)
	}
	if m := in.as(adminToken, "PUT", path, obj{"metadata": obj{"to": "ben"}}).(obj); !cmp.Equal(m["metadata"], any(obj{"to": "ben"})) {
		t.Errorf("metadata is replaced: %v", m)
	}
	if v := in.as(adminToken, "PUT", "/memories/"+id, obj{"text": "The well is six metres deep."}).(obj); v["message"] == nil {
		t.Errorf("self-hosted: %v", v)
	}
	in.as(adminToken, "POST", "/v1/feedback/", obj{"memory_id": id, "feedback": "POSITIVE"}) // changes nothing that they would see
	in.as(adminToken, "DELETE", path, nil)
	if a := in.do(adminToken, "GET", path, nil); a.status != 404 {
		t.Errorf("deleted, but %d", a.status)
	}
	type step struct{ Event, Old, New string }
	var got []step
	for _, e := range in.as(adminToken, "GET", path+"history/", nil).([]any) {
		e := e.(obj)
		old, _ := e["old_memory"].(string)
		now, _ := e["new_memory"].(string)
		got = append(got, step{e["event"].(string), old, now})
		if e["memory_id"] != id || e["user_id"] != "ann" || e["created_at"] == "" || e["id"] == "" {
			t.Errorf("entry: %v", e)
		}
	}
	want := []step{
		{"ADD", "", "The well is four metres deep."},
		{"UPDATE", "The well is four metres deep.", "The well is five metres deep."},
		{"UPDATE", "The well is five metres deep.", "The well is five metres deep."},
		{"UPDATE", "The well is five metres deep.", "The well is six metres deep."},
		{"DELETE", "The well is six metres deep.", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// byText returns the memory of a user that says something.
func (in *installation) byText(user, text string) obj {
	in.t.Helper()
	for _, m := range in.all(adminToken, user) {
		if m["memory"] == text {
			return m
		}
	}
	in.t.Fatalf("no memory says %q: %q", text, texts(in.all(adminToken, user)))
	return nil
}

// What a client deletes or changes must not be found in the passage that it was
// made of.
func TestDeletedWordsAreGone(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"user_id": "ann", "messages": say("I live in Porto. My dog is named Rex. I work as a nurse on the night shift.", "I see.")})
	in.as(adminToken, "DELETE", "/v1/memories/"+in.byText("ann", "I live in Porto.")["id"].(string)+"/", nil)
	in.as(adminToken, "PUT", "/v1/memories/"+in.byText("ann", "My dog is named Rex.")["id"].(string)+"/", obj{"text": "My dog is named Bello."})
	for _, query := range []string{"Where do I live? Porto", "What is my dog named? Rex"} {
		found := results(in.as(adminToken, "POST", "/v3/memories/search/", obj{"query": query, "filters": obj{"user_id": "ann"}}))
		if all := strings.Join(append(texts(found), texts(in.all(adminToken, "ann"))...), "\n"); strings.Contains(all, "Porto") || strings.Contains(all, "Rex") {
			t.Errorf("%s: still there: %s", query, all)
		}
	}
	// Nor does the engine find them for requests.
	p, err := in.service.Authenticate(t.Context(), adminToken, "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := in.service.List(t.Context(), p, api.Target{User: "ann"}, api.Filter{}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Memories {
		if text := page.Memories[i].Text; strings.Contains(text, "Porto") || strings.Contains(text, "Rex") {
			t.Errorf("stored: %s", text)
		}
	}
	if all := strings.Join(texts(in.all(adminToken, "ann")), "\n"); !strings.Contains(all, "Bello") || !strings.Contains(all, "night shift") {
		t.Errorf("something else is gone: %s", all)
	}
}

// Deleting what is left of a passage leaves the facts made of it.
func TestDeletingAPassageKeepsItsFacts(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"user_id": "ben", "messages": say("I live in Porto. The number of the garage is seventeen, I believe.", "I see.")})
	var passage obj
	for _, m := range in.all(adminToken, "ben") {
		if m["memory_type"] == "episode" {
			passage = m
		}
	}
	if passage == nil {
		t.Fatalf("memories: %v", in.all(adminToken, "ben"))
	}
	path := "/v1/memories/" + passage["id"].(string) + "/"
	in.as(adminToken, "DELETE", path, nil)
	if a := in.do(adminToken, "GET", path, nil); a.status != 404 {
		t.Errorf("the passage is still there: %s", a.body)
	}
	if got := texts(in.all(adminToken, "ben")); !slices.Equal(got, []string{"I live in Porto."}) {
		t.Errorf("left: %v", got)
	}
}

func TestDeleteLinked(t *testing.T) {
	in := start(t, identity.TenantAuto)
	in.add(adminToken, obj{"user_id": "eva", "messages": say("Remember that I live in Porto.", "I see.")})
	time.Sleep(2 * time.Millisecond)
	in.add(adminToken, obj{"user_id": "eva", "messages": say("Remember that I live in Lisbon now.", "I see.")})
	m := in.byText("eva", "I live in Lisbon now.")
	v := in.as(adminToken, "DELETE", "/v1/memories/"+m["id"].(string)+"/?delete_linked=true", nil).(obj)
	if v["cascade_count"] != 1.0 {
		t.Errorf("answer: %v", v)
	}
	if all := in.all(adminToken, "eva"); len(all) != 0 {
		t.Errorf("left: %v", texts(all))
	}
}

func TestDeleteAll(t *testing.T) {
	in := start(t, identity.TenantAuto)
	furnish(in, adminToken)
	left := func() []string {
		return word(texts(results(in.as(adminToken, "POST", "/v3/memories/", obj{"filters": obj{"user_id": "*"}}))))
	}
	if a := in.do(adminToken, "DELETE", "/v1/memories/", nil); a.status != 422 || a.field() != "user_id" {
		t.Errorf("of nobody: %d %s", a.status, a.body)
	}
	for _, test := range []struct{ path, left string }{
		{"/v1/memories/?user_id=ann&run_id=r1", "cows geese hens plough roof"},
		{"/v1/memories/?user_id=ann&agent_id=mechanic&source=CLI", "cows geese hens roof"},
		{"/memories?user_id=ann", "geese hens"},
		{"/api/v1/memories", "hens"},
		{"/v1/memories/?user_id=*&agent_id=*&app_id=*&run_id=*", ""},
	} {
		in.as(adminToken, "DELETE", test.path, nil)
		if got := strings.Join(left(), " "); got != test.left {
			t.Errorf("after %s: %q, want %q", test.path, got, test.left)
		}
	}
	// What is still on its way is deleted, too.
	in.as(adminToken, "POST", "/v3/memories/add/", obj{"user_id": "ann", "messages": say("I was born in Faro.")})
	in.as(adminToken, "DELETE", "/v1/memories/?user_id=ann", nil)
	time.Sleep(50 * time.Millisecond)
	if got := left(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestBatch(t *testing.T) {
	in := start(t, identity.TenantAuto)
	a, b := in.addFact(adminToken, "ann", "The gate is green."), in.addFact(adminToken, "ben", "The fence is high.")
	update := obj{"memories": []obj{{"memory_id": a, "text": "The gate is grey."}, {"memory_id": b, "text": "The fence is low."}}}
	in.as(adminToken, "PUT", "/v1/batch/", update)
	if got := append(texts(in.all(adminToken, "ann")), texts(in.all(adminToken, "ben"))...); !slices.Equal(got, []string{"The gate is grey.", "The fence is low."}) {
		t.Errorf("updated: %v", got)
	}
	// One that is not there, and nothing is done.
	if r := in.do(adminToken, "DELETE", "/v1/batch/", obj{"memories": []obj{{"memory_id": a}, {"memory_id": "nowhere"}}}); r.status != 404 {
		t.Errorf("with an unknown id: %d %s", r.status, r.body)
	}
	if r := in.do(adminToken, "PUT", "/v1/batch/", obj{"memories": []obj{{"memory_id": a, "text": "x"}, {"memory_id": b}}}); r.status != 422 || r.field() != "memories[1]" {
		t.Errorf("with an empty change: %d %s", r.status, r.body)
	}
	if got := texts(in.all(adminToken, "ann")); !slices.Equal(got, []string{"The gate is grey."}) {
		t.Errorf("a batch is done in part: %v", got)
	}
	in.as(adminToken, "DELETE", "/v1/batch/", obj{"memories": []obj{{"memory_id": a}, {"memory_id": b}, {"memory_id": a}}})
	if got := append(in.all(adminToken, "ann"), in.all(adminToken, "ben")...); len(got) != 0 {
		t.Errorf("left: %v", texts(got))
	}
}

func TestFeedback(t *testing.T) {
	in := start(t, identity.TenantAuto)
	id := in.addFact(adminToken, "ann", "The mill has two wheels.")
	p, err := in.service.Authenticate(t.Context(), adminToken, "")
	if err != nil {
		t.Fatal(err)
	}
	priority := func() float64 {
		m, err := in.service.Get(t.Context(), p, api.Target{User: "ann"}, id, false)
		if err != nil {
			t.Fatal(err)
		}
		return m.Priority
	}
	first := priority()
	rate := func(feedback any) float64 {
		in.as(adminToken, "POST", "/v1/feedback/", obj{"memory_id": id, "feedback": feedback, "feedback_reason": "because"})
		return priority()
	}
	up := rate("POSITIVE")
	down := rate("NEGATIVE")
	far := rate("VERY_NEGATIVE")
	if same := rate(nil); !(up > first && down < up && far <= down/4+1e-9 && same == far) {
		t.Errorf("priorities %v, %v, %v, %v, %v", first, up, down, far, same)
	}
	if a := in.do(adminToken, "POST", "/v1/feedback/", obj{"memory_id": id, "feedback": "SPLENDID"}); a.status != 422 || a.field() != "feedback" {
		t.Errorf("unknown feedback: %d %s", a.status, a.body)
	}
}
