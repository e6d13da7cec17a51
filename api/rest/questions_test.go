package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/storage"
)

// known fills a user's memory with facts about different things.
func (r *rig) known(t testing.TB, user string) {
	t.Helper()
	for _, text := range []string{
		"My sister's boat is called Marbella.", "I am allergic to peanuts.", "I work as a nurse in a hospital.", "My dog Rex is afraid of thunder.",
		"The billing service runs on PostgreSQL.", "I play the cello in an orchestra.", "Our holiday in Norway was cold and rainy.",
	} {
		r.add(t, "user="+user, text, nil)
	}
}

func TestSearch(t *testing.T) {
	r := newService(t)
	r.known(t, "ada")
	r.add(t, "user=ben", "Ben's boat is called Nautilus.", object{"tags": []string{"boat"}})
	found := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ada", object{"query": "What is the name of the boat?", "topK": 3}))
	if len(found.Results) == 0 || found.Results[0].Memory.Text != "My sister's boat is called Marbella." || len(found.Results[0].Parts) == 0 {
		t.Fatalf("found %+v", found)
	}
	read := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+found.Results[0].Memory.ID, nil))
	read.Uses = nil
	if diff := cmp.Diff(read, found.Results[0].Memory); diff != "" {
		t.Errorf("found is not what is read (-read +found):\n%s", diff)
	}
	for _, body := range []object{
		{"query": "quantum chromodynamics"}, {"query": "boat", "kinds": []string{"resource"}}, {"query": "boat", "tags": []string{"boat"}},
		{"query": "boat", "scope": []string{"resources"}}, {"query": "boat", "scope": []string{"current_chat"}, "conversation": "c"},
		{"query": "the weather tomorrow", "gated": true},
	} {
		got := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ada", body).want(t, 200))
		if len(got.Results) != 0 {
			t.Errorf("%v: found %+v", body, got.Results)
		}
	}
	if got := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ben", object{"query": "boat", "tags": []string{"boat"}, "kinds": []string{"fact"}})); len(got.Results) != 1 {
		t.Errorf("by tag and kind: %+v", got)
	}
	if got := r.send(t, "POST", "/v1/memories/search?user=eva", object{"query": "boat"}).want(t, 200); !strings.Contains(got.body, `"results":[]`) {
		t.Errorf("of a user without memories: %s", got.body)
	}
	// A gated search says what it turned down.
	gated := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ada", object{"query": "my sister and the orchestra of the hospital", "gated": true, "topK": 1}))
	if len(gated.Cut) == 0 || gated.Cut[0].Reason == "" || gated.Cut[0].Memory == nil {
		t.Errorf("turned down: %+v", gated.Cut)
	}
}

// The dry run shows the block that a request would be given, byte for byte.
func TestTryShowsTheBlock(t *testing.T) {
	r := newService(t)
	r.known(t, "ada")
	answer := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "What is my sister's boat called?"}))
	if len(answer.Results.Results) == 0 || answer.Memory != policy.MemoryOn {
		t.Fatalf("answer %+v", answer)
	}
	var shown []fence.Line
	for _, f := range answer.Results.Results {
		m, err := r.store.Memory(t.Context(), localScope("ada"), f.Memory.ID)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, fence.LineOf(&m, nil))
	}
	if want := fence.Render("000000000000", shown, fence.Options{}).Text; answer.Block != want || !strings.Contains(want, "Marbella") {
		t.Errorf("block %q, want %q", answer.Block, want)
	}
	if left := fence.Strip(answer.Block); left != "" {
		t.Errorf("left of the block: %q", left)
	}
	none := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "Tell me about quantum chromodynamics."}))
	if none.Block != "" || len(none.Results.Results) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
	if n := len(r.list(t, "user=ada")); n != 7 {
		t.Errorf("a dry run has stored something: %d memories", n)
	}
}

// As of a day before a fact was superseded, the older one holds, and what was
// said later is not there.
func TestTryAsOf(t *testing.T) {
	r := newService(t)
	for _, f := range []struct{ text, day string }{
		{"I live in Porto.", "2026-01-10"}, {"My dog is called Rex.", "2026-01-11"}, {"I live in Lisbon.", "2026-05-10"}, {"I live in Faro.", "2026-09-10"},
	} {
		r.add(t, "user=ada", f.text, object{"eventTime": f.day})
	}
	for day, want := range map[string]string{
		"2026-01-01": "", "2026-01-10T00:00:00Z": "Porto", "2026-03-01": "Porto", "2026-06-01": "Lisbon", "2026-05-09T23:59:59Z": "Porto", "2026-09-11": "Faro", "": "Faro",
	} {
		answer := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "Where do I live?", "asOf": day}))
		for _, city := range []string{"Porto", "Lisbon", "Faro"} {
			if has := strings.Contains(answer.Block, city); has != (city == want) {
				t.Errorf("as of %q: the block has %s: %v: %s", day, city, has, answer.Block)
			}
		}
		for _, f := range answer.Results.Results {
			if f.Memory.State != api.StateCurrent {
				t.Errorf("as of %q: %s is shown as %s", day, f.Memory.Text, f.Memory.State)
			}
		}
	}
	now := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "Where do I live?"}))
	var hidden []string
	for _, c := range now.Cut {
		if c.Reason == api.StateSuperseded {
			hidden = append(hidden, c.Memory.Text)
		}
	}
	slices.Sort(hidden)
	if !slices.Equal(hidden, []string{"I live in Lisbon.", "I live in Porto."}) {
		t.Errorf("superseded: %q", hidden)
	}
}

// The policy decides what a dry run shows for an upstream.
func TestTryUnderPolicy(t *testing.T) {
	rules := []policy.Rule{
		{Upstream: "off", Memory: policy.MemoryOff},
		{Upstream: "read", Memory: policy.MemoryRead},
		{Upstream: "named", Allow: policy.Allow{Tags: []string{policy.AnyTag, storage.PrivateTag}}},
		{Upstream: "work", Allow: policy.Allow{Tags: []string{"work"}}},
		{Upstream: "documents", Allow: policy.Allow{Kinds: []string{"resource"}}},
	}
	if err := policy.Validate(rules); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{who: local(), rules: rules})
	r.add(t, "user=ada", "My boat Marbella is kept in the old harbour.", object{"tags": []string{"private"}})
	r.add(t, "user=ada", "The boat project Marbella has its review in the office.", object{"tags": []string{"work"}})
	for upstream, want := range map[string]struct {
		memory        string
		private, work bool
	}{
		"": {"on", false, true}, "off": {"off", false, false}, "read": {"read", false, true}, "named": {"on", true, true}, "work": {"on", false, true},
		"documents": {"on", false, false},
	} {
		answer := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "What about the boat Marbella?", "upstream": upstream, "model": "m"}))
		if private, work := strings.Contains(answer.Block, "harbour"), strings.Contains(answer.Block, "office"); private != want.private || work != want.work || answer.Memory != want.memory {
			t.Errorf("upstream %q: memory %s, private %v, work %v, want %+v", upstream, answer.Memory, private, work, want)
		}
	}
	// Taking the tag away lets it go everywhere.
	m := r.list(t, "user=ada&tag=private")[0]
	r.send(t, "PATCH", "/v1/memories/"+m.ID, object{"tags": []string{}}).want(t, 200)
	answer := get[api.Answer](t, r.send(t, "POST", "/v1/recall?user=ada", object{"message": "What about the boat Marbella?"}))
	if !strings.Contains(answer.Block, "harbour") {
		t.Errorf("block %q", answer.Block)
	}
}

// The tag private spreads to all that was said in the same turn.
func TestPrivateSpreads(t *testing.T) {
	r := newService(t)
	r.say(t, "ada", "t1", 1, "Remember that I am allergic to peanuts.")
	r.settle(t)
	facts := r.list(t, "user=ada&kind=fact")
	if len(facts) != 1 {
		t.Fatalf("facts %q", texts(facts))
	}
	for _, tags := range [][]string{{"private"}, {}} {
		r.send(t, "PATCH", "/v1/memories/"+facts[0].ID, object{"tags": tags}).want(t, 200)
		if got, want := len(r.list(t, "user=ada&tag=private")), 2*len(tags); got != want {
			t.Errorf("%q: %d memories are private, want %d", tags, got, want)
		}
	}
}

func TestContextWithEntries(t *testing.T) {
	r := newService(t)
	r.known(t, "ada")
	for i := range 3 {
		r.send(t, "PUT", fmt.Sprintf("/v1/entries/k%d?user=ada&namespace=cart", i), object{"value": object{"n": i}, "ttl": 60}).want(t, 201)
	}
	for range 2 { // tags of the caller, or those in which the engine notes that it was said again, are no kinds
		r.add(t, "user=ada", "I live in Lisbon.", object{"tags": []string{"home"}})
		r.add(t, "user=ada", "I play the cello in an orchestra.", nil)
	}
	c := get[api.Context](t, r.send(t, "POST", "/v1/context?user=ada", object{"facts": 2, "namespace": "cart"}))
	if len(c.Facts) != 2 || len(c.Entries) != 3 || len(c.Known) != 0 || !strings.Contains(c.Text, `- k2: {"n":2}`) {
		t.Errorf("context %+v", c)
	}
	empty := get[api.Context](t, r.send(t, "POST", "/v1/context?user=eva", nil))
	if empty.Text != "" || len(empty.Facts) != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}
