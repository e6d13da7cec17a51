package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// A memory that is unwanted for a kind of question is recalled for others, and
// what was said can be taken back.
func TestUnwanted(t *testing.T) {
	r := newService(t)
	boat := r.add(t, "user=ada", "My boat in Porto is called Marbella.", object{"tags": []string{"boats"}})
	r.add(t, "user=ada", "I play the trumpet in Porto.", nil)
	path := "/v1/memories/" + boat.ID + "/unwanted?user=ada"
	given := func(message string) (found bool, reason string) {
		t.Helper()
		a := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": message}))
		for _, c := range a.Cut {
			if c.ID == boat.ID {
				reason = c.Reason
			}
		}
		return strings.Contains(a.Block, "Marbella"), reason
	}
	want := func(when string, message string, found bool) {
		t.Helper()
		got, reason := given(message)
		if got != found || (reason == "unwanted") == found {
			t.Errorf("%s, %q: found %t, reason %q", when, message, got, reason)
		}
	}
	const example, paraphrase, other = "Where can I rent a boat in Porto?", "in porto, what are good places for renting boats?", "What is my boat called?"
	want("before", example, true)
	m := get[api.Memory](t, r.send(t, "POST", path, object{"question": example, "why": "not mine to rent"}))
	if m.Unwanted != 1 || !slices.Equal(m.Tags, []string{"boats"}) || m.Version != boat.Version+1 {
		t.Errorf("the memory is %+v", m)
	}
	for _, asked := range []string{example, paraphrase} {
		want("unwanted", asked, false)
	}
	want("unwanted", other, true)
	stored, err := r.store.Memory(t.Context(), localScope("ada"), boat.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range stored.Tags {
		if len(tag) > api.MaxTag || strings.Contains(tag, "porto") || strings.Contains(tag, "rent") {
			t.Errorf("the tag %q", tag)
		}
	}
	if again := get[api.Memory](t, r.send(t, "POST", path, object{"question": "rent a boat, in Porto"})); again.Version != m.Version || again.Unwanted != 1 {
		t.Errorf("the same example again makes version %d, %d examples", again.Version, again.Unwanted)
	}
	h := get[api.History](t, r.send(t, "GET", "/v1/memories/"+boat.ID+"/history?user=ada", nil))
	if len(h.Changes) != 2 || h.Changes[0].Op != "edit" || h.Changes[0].By != "admin" || h.Changes[0].Why != "not mine to rent" || h.Changes[0].Before.Unwanted != 0 {
		t.Errorf("history %+v", h.Changes)
	}
	found := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ada", object{"query": example}))
	if !slices.ContainsFunc(found.Results, func(f api.Found) bool { return f.Memory.ID == boat.ID }) {
		t.Error("a search by hand does not find it")
	}
	patched := get[api.Memory](t, r.send(t, "PATCH", "/v1/memories/"+boat.ID+"?user=ada", object{"tags": []string{"ships"}}))
	if patched.Unwanted != 1 || !slices.Equal(patched.Tags, []string{"ships"}) {
		t.Errorf("other tags leave %+v", patched)
	}
	want("with other tags", example, false)
	r.send(t, "POST", "/v1/memories/"+boat.ID+"/undo?user=ada", nil).want(t, 200) // of the tags
	if m := get[api.Memory](t, r.send(t, "DELETE", path+"&why=again", nil)); m.Unwanted != 0 || !slices.Equal(m.Tags, []string{"boats"}) {
		t.Errorf("wanted again: %+v", m)
	}
	want("wanted again", example, true)
	if again := get[api.Memory](t, r.send(t, "DELETE", path, nil)); again.Unwanted != 0 {
		t.Errorf("wanted again, twice: %+v", again)
	}
	undone := get[map[string][]api.Memory](t, r.send(t, "POST", "/v1/memories/"+boat.ID+"/undo?user=ada", nil))["memories"]
	if len(undone) != 1 || undone[0].Unwanted != 1 {
		t.Errorf("undone: %+v", undone)
	}
	want("undone", paraphrase, false)
}

// The example may be what was asked in an exchange.
func TestUnwantedInAnExchange(t *testing.T) {
	r := newService(t)
	boat := r.add(t, "user=ada", "My boat in Porto is called Marbella.", nil)
	asked := r.record(localScope("ada"), func(x *receipt.Receipt) { x.Query = "Where can I rent a boat in Porto?" })
	silent := r.record(localScope("ada"), nil)
	foreign := r.record(localScope("ben"), func(x *receipt.Receipt) { x.Query = "Where is the boat?" })
	r.eventually(t, func() bool { ids, _ := r.recent(t, ""); return len(ids) == 3 })
	path := "/v1/memories/" + boat.ID + "/unwanted?user=ada"
	if m := get[api.Memory](t, r.send(t, "POST", path, object{"exchange": asked})); m.Unwanted != 1 {
		t.Errorf("got %+v", m)
	}
	a := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "rent a boat in Porto"}))
	if strings.Contains(a.Block, "Marbella") {
		t.Errorf("the block is %q", a.Block)
	}
	shown := get[api.Exchange](t, r.send(t, "GET", "/v1/exchanges/"+asked+"?user=ada", nil))
	if shown.ID != asked {
		t.Errorf("got %+v", shown)
	}
	r.send(t, "POST", path, object{"exchange": silent}).problem(t, 422, "invalid", "exchange")
	for _, id := range []string{foreign, "none", asked + "0"} {
		r.send(t, "POST", path, object{"exchange": id}).problem(t, 404, "not-found", "")
	}
	off := newRig(t, options{who: local(), noReceipts: true})
	m := off.add(t, "user=ada", "I sail.", nil)
	off.send(t, "POST", "/v1/memories/"+m.ID+"/unwanted?user=ada", object{"exchange": asked}).problem(t, 501, "not-implemented", "")
}

// TestUnwantedLimits checks what is refused.
func TestUnwantedLimits(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I sail.", nil)
	path := "/v1/memories/" + m.ID + "/unwanted?user=ada"
	for _, tt := range []struct {
		body  object
		field string
	}{
		{object{}, "question"}, {object{"question": ""}, "question"}, {object{"question": "boat", "exchange": "x"}, "question"},
		{object{"question": "is it?"}, "question"}, {object{"question": strings.Repeat("boat ", 14_000)}, "question"},
		{object{"question": "boat", "why": strings.Repeat("w", 513)}, "why"},
	} {
		r.send(t, "POST", path, tt.body).problem(t, 422, "invalid", tt.field)
	}
	r.send(t, "DELETE", path+"&why="+strings.Repeat("w", 513), nil).problem(t, 422, "invalid", "why")
	for n := range 8 {
		if got := get[api.Memory](t, r.send(t, "POST", path, object{"question": fmt.Sprintf("harbour number%d", n)})); got.Unwanted != n+1 {
			t.Errorf("after %d examples: %d", n+1, got.Unwanted)
		}
	}
	r.send(t, "POST", path, object{"question": "one more harbour"}).problem(t, 422, "invalid", "question")
	r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I row.", "tags": []string{storage.UnwantedTag + "000000"}}).problem(t, 422, "invalid", "tags")
	r.send(t, "DELETE", "/v1/memories/"+m.ID+"?user=ada", nil).want(t, 200)
	for _, method := range []string{"POST", "DELETE"} {
		var body any
		if method == "POST" {
			body = object{"question": "harbour"}
		}
		r.send(t, method, path, body).problem(t, 404, "not-found", "")
		r.send(t, method, "/v1/memories/none/unwanted?user=ada", body).problem(t, 404, "not-found", "")
	}
}
