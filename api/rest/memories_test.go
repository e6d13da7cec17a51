package rest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
)

// The answer to a save equals a later read, and what a client says of scope and
// source counts for nothing.
func TestSaveEqualsALaterRead(t *testing.T) {
	r := newService(t)
	a := r.send(t, "POST", "/v1/memories?user=ada", object{
		"text": "I moved to Lisbon in March.", "tags": []string{"home", "home"}, "conversation": "c1", "priority": 0.8, "eventTime": "2026-03-04",
	}).want(t, http.StatusCreated)
	saved := get[api.Added](t, a)
	if saved.Event != "added" || saved.Memory.User != "ada" || saved.Memory.Source != "api" || saved.Memory.Tenant != "local" ||
		!slices.Equal(saved.Memory.Tags, []string{"home"}) || saved.Memory.EventTime != "2026-03-04T00:00:00.000Z" {
		t.Errorf("saved %+v", saved)
	}
	read := r.send(t, "GET", "/v1/memories/"+saved.Memory.ID, nil).want(t, http.StatusOK)
	got := get[api.Memory](t, read)
	if got.Uses == nil || got.Uses.Count != 0 {
		t.Errorf("uses %+v", got.Uses)
	}
	got.Uses = nil
	if diff := cmp.Diff(saved.Memory, got); diff != "" {
		t.Errorf("read is not what was saved (-saved +read):\n%s", diff)
	}
	if diff := cmp.Diff([]api.Memory{got}, r.list(t, "user=ada")); diff != "" {
		t.Errorf("listed is not what was read:\n%s", diff)
	}
	if etag := read.header.Get("ETag"); etag != `"v1"` {
		t.Errorf("ETag %s", etag)
	}
	for _, field := range []string{"source", "user", "tenant", "scope", "id", "trust"} {
		r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I like tea.", field: "mine"}).problem(t, 422, "invalid", field)
	}

	again := get[api.Added](t, r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I moved to Lisbon in March."}).want(t, http.StatusOK))
	if again.Event != "known" || again.Memory.ID != saved.Memory.ID {
		t.Errorf("saved again: %+v", again)
	}
	newer := get[api.Added](t, r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I moved to Porto in March.", "eventTime": "2026-05-01"}))
	if newer.Event != "superseded" && newer.Event != "added" {
		t.Errorf("event %q", newer.Event)
	}
}

// A user's memories are that user's only, also on one person's machine.
func TestUsersAreApart(t *testing.T) {
	r := newService(t)
	mine := r.add(t, "user=ada", "I play the cello.", nil)
	other := r.add(t, "user=ben", "I play the trumpet.", nil)
	ada := r.with("X-User-Id", "ada")
	if got := texts(ada.list(t, "")); !slices.Equal(got, []string{mine.Text}) {
		t.Errorf("ada's list has %q", got)
	}
	ada.send(t, "GET", "/v1/memories/"+other.ID, nil).problem(t, 404, "not-found", "")
	ada.send(t, "GET", "/v1/memories?user=ben", nil).problem(t, 404, "not-found", "")
	ada.send(t, "GET", "/v1/memories?user=ada", nil).want(t, 200)
	r.with("X-Remora-User", "ben").send(t, "DELETE", "/v1/memories/"+mine.ID, nil).problem(t, 404, "not-found", "")
	r.send(t, "GET", "/v1/memories/"+mine.ID+"?user=ben", nil).problem(t, 404, "not-found", "")
	// The admin need not name the user of an id.
	r.send(t, "GET", "/v1/memories/"+mine.ID, nil).want(t, 200)
}

func TestPatch(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I play the cello.", object{"tags": []string{"music"}})
	path := "/v1/memories/" + m.ID

	r.send(t, "PATCH", path, object{"priority": 0.9}, "If-Match", `"v9"`).problem(t, 412, "changed", "")
	a := r.send(t, "PATCH", path, object{"text": "I play the viola.", "priority": 0.9, "tags": []string{"strings"}, "why": "a slip"}, "If-Match", `"v1"`)
	got := get[api.Memory](t, a.want(t, 200))
	if got.Text != "I play the viola." || got.Priority != 0.9 || !slices.Equal(got.Tags, []string{"strings"}) || got.Version != 2 {
		t.Errorf("changed to %+v", got)
	}
	if etag := a.header.Get("ETag"); etag != `"v2"` {
		t.Errorf("ETag %s", etag)
	}
	r.send(t, "PATCH", path, object{"priority": 0.1}, "If-Match", `"v1"`).problem(t, 412, "changed", "")
	r.send(t, "PATCH", path, object{"priority": 0.7}, "If-Match", "*").want(t, 200)
	for _, bad := range []string{"v2", `W/"v2"`, `"v0"`, `"v2" `, `"2"`, `"v2", "v3"`} {
		if strings.TrimSpace(bad) == `"v2"` {
			continue // the same without white space
		}
		r.send(t, "PATCH", path, object{"priority": 0.1}, "If-Match", bad).problem(t, 422, "invalid", "If-Match")
	}

	got = get[api.Memory](t, r.send(t, "PATCH", path, object{"state": "quarantined"}))
	if got.State != api.StateQuarantined || got.Trust != 0 {
		t.Errorf("quarantined: %+v", got)
	}
	if left := r.list(t, "user=ada"); len(left) != 0 {
		t.Errorf("a memory in quarantine is listed as current: %+v", left)
	}
	got = get[api.Memory](t, r.send(t, "PATCH", path, object{"state": "current"}))
	if got.State != api.StateCurrent || got.Trust != 1 {
		t.Errorf("released: %+v", got)
	}

	helped := get[api.Memory](t, r.send(t, "POST", path+"/feedback", object{"helped": true}))
	if helped.Priority <= got.Priority {
		t.Errorf("priority %v after it helped, %v before", helped.Priority, got.Priority)
	}
	idle := get[api.Memory](t, r.send(t, "POST", path+"/feedback", object{"helped": false, "why": "beside the point"}))
	if idle.Priority != helped.Priority/2 {
		t.Errorf("priority %v after it did not help, %v before", idle.Priority, helped.Priority)
	}

	h := get[api.History](t, r.send(t, "GET", path+"/history", nil))
	var ops []string
	for _, c := range h.Changes {
		ops = append(ops, c.Op)
	}
	if want := []string{"edit", "edit", "edit", "edit", "edit", "edit", "created"}; !slices.Equal(ops, want) {
		t.Errorf("history %q, want %q", ops, want)
	}
	if first := h.Changes[len(h.Changes)-2]; first.Why != "a slip" || first.By != "admin" || first.Before.Text != "I play the cello." {
		t.Errorf("the first change is %+v", first)
	}
	restored := get[struct{ Memories []api.Memory }](t, r.send(t, "POST", path+"/undo", nil))
	if len(restored.Memories) != 1 || restored.Memories[0].Priority != helped.Priority {
		t.Errorf("restored %+v", restored)
	}
}

func TestDeleteAndUndo(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I play the cello.", nil)
	kept := r.add(t, "user=ada", "My dog is called Rex.", nil)
	path := "/v1/memories/" + m.ID

	r.send(t, "POST", path+"/undo", nil).problem(t, 404, "not-found", "")
	r.send(t, "DELETE", path, nil, "If-Match", `"v7"`).problem(t, 412, "changed", "")
	for round, how := range []func() answer{
		func() answer { return r.send(t, "DELETE", path+"?why=wrong", nil) },
		func() answer {
			return r.send(t, "POST", "/v1/memories/delete", object{"ids": []string{m.ID}, "why": "wrong"})
		},
		func() answer { return r.send(t, "PATCH", path, object{"deleted": true, "why": "wrong"}) },
		func() answer {
			etag := r.send(t, "GET", path, nil).header.Get("ETag")
			return r.send(t, "DELETE", path+"?why=wrong", nil, "If-Match", etag)
		},
	} {
		a := how().want(t, 200)
		if a.what[:5] == "PATCH" {
			if got := get[api.Memory](t, a); got.State != api.StateDeleted || got.DeletedAt == "" {
				t.Errorf("patched to %+v", got)
			}
		} else if got := get[api.Removed](t, a); !slices.Equal(got.Deleted, []string{m.ID}) || got.UndoUntil == "" {
			t.Errorf("round %d: deleted %+v", round, got)
		}
		r.send(t, "GET", path, nil).problem(t, 404, "not-found", "")
		r.send(t, "DELETE", path, nil).problem(t, 404, "not-found", "")
		r.send(t, "PATCH", path, object{"priority": 0.1}).problem(t, 404, "not-found", "")
		r.send(t, "PATCH", path, object{"deleted": false}).problem(t, 422, "invalid", "deleted")
		r.send(t, "POST", "/v1/memories/delete", object{"ids": []string{kept.ID, m.ID}}).problem(t, 404, "not-found", "")
		if got := get[api.Memory](t, r.send(t, "GET", path+"?deleted=true", nil)); got.State != api.StateDeleted {
			t.Errorf("deleted: %+v", got)
		}
		if got := texts(r.list(t, "user=ada")); !slices.Equal(got, []string{kept.Text}) {
			t.Errorf("round %d: listed %q", round, got)
		}
		if got := texts(r.list(t, "user=ada&state=deleted")); !slices.Equal(got, []string{m.Text}) {
			t.Errorf("round %d: listed as deleted %q", round, got)
		}
		back := get[struct{ Memories []api.Memory }](t, r.send(t, "POST", path+"/undo", object{"why": "it was right"}))
		if len(back.Memories) != 1 || back.Memories[0].ID != m.ID || back.Memories[0].State != api.StateCurrent {
			t.Errorf("round %d: brought back %+v", round, back)
		}
		r.send(t, "GET", path, nil).want(t, 200)
	}
	r.send(t, "POST", "/v1/memories/delete", object{"ids": []string{m.ID, "no-such-id"}}).problem(t, 404, "not-found", "")
	r.send(t, "GET", path, nil).want(t, 200)
}

// Deleting what was said deletes what was made of it, and one undo brings back
// both.
func TestDeleteCascades(t *testing.T) {
	r := newService(t)
	for i, text := range []string{"Remember that my sister Ines lives in Porto.", "Please remember that I am allergic to peanuts."} {
		r.say(t, "ada", "t1", i, text)
	}
	r.settle(t)
	facts := r.list(t, "user=ada&kind=fact")
	i := slices.IndexFunc(facts, func(m api.Memory) bool { return strings.Contains(m.Text, "peanuts") })
	if i < 0 {
		t.Fatalf("no fact about peanuts among %q", texts(facts))
	}
	fact := facts[i]
	var passage api.Memory
	for _, m := range r.list(t, "user=ada&kind=episode&q=peanuts") {
		passage = m
	}
	if passage.ID == "" || passage.Turn != fact.Turn {
		t.Fatalf("the passage is %+v, the fact %+v", passage, fact)
	}
	gone := get[api.Removed](t, r.send(t, "DELETE", "/v1/memories/"+passage.ID, nil))
	if !slices.Contains(gone.Deleted, passage.ID) || !slices.Contains(gone.Deleted, fact.ID) || len(gone.Deleted) != 2 {
		t.Errorf("deleted %q, want %s and %s", gone.Deleted, passage.ID, fact.ID)
	}
	r.send(t, "GET", "/v1/memories/"+fact.ID, nil).problem(t, 404, "not-found", "")
	found := get[api.Results](t, r.send(t, "POST", "/v1/memories/search?user=ada", object{"query": "allergic to peanuts"}))
	for _, f := range found.Results {
		if strings.Contains(f.Memory.Text, "peanuts") {
			t.Errorf("what was deleted is found: %+v", f)
		}
	}
	back := get[struct{ Memories []api.Memory }](t, r.send(t, "POST", "/v1/memories/"+fact.ID+"/undo", nil))
	if len(back.Memories) != 2 {
		t.Errorf("brought back %+v", back)
	}
	r.send(t, "GET", "/v1/memories/"+passage.ID, nil).want(t, 200)
}

func TestOriginals(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "My mail address is ada@example.com.", nil)
	if strings.Contains(m.Text, "ada@example.com") || m.Redacted != 1 {
		t.Errorf("not redacted: %+v", m)
	}
	got := get[struct{ Originals []api.Original }](t, r.send(t, "GET", "/v1/memories/"+m.ID+"/originals", nil))
	want := []api.Original{{Placeholder: "[EMAIL]", Original: "ada@example.com", Type: "email"}}
	if diff := cmp.Diff(want, got.Originals); diff != "" {
		t.Errorf("originals (-want +got):\n%s", diff)
	}
	plain := r.add(t, "user=ada", "I play the cello.", nil)
	if none := r.send(t, "GET", "/v1/memories/"+plain.ID+"/originals", nil).body; none != `{"originals":[]}`+"\n" {
		t.Errorf("originals of nothing: %s", none)
	}
}

func TestIdempotencyKey(t *testing.T) {
	r := newService(t)
	body := object{"text": "I play the cello."}
	first := r.send(t, "POST", "/v1/memories?user=ada", body, "Idempotency-Key", "k1").want(t, 201)
	again := r.send(t, "POST", "/v1/memories?user=ada", body, "Idempotency-Key", "k1").want(t, 201)
	if again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" || again.body != first.body {
		t.Errorf("replayed %q %s, the first was %s", again.header.Get("Idempotent-Replayed"), again.body, first.body)
	}
	r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I play the viola."}, "Idempotency-Key", "k1").problem(t, 422, "invalid", "Idempotency-Key")
	// The same key is another one for another user, app or project.
	for _, target := range []string{"user=ben", "user=ada&app=x", "user=ada&project=x"} {
		a := r.send(t, "POST", "/v1/memories?"+target, body, "Idempotency-Key", "k1").want(t, 201)
		if a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: got the answer of another target", target)
		}
	}
	a := r.send(t, "POST", "/v1/memories?user=ada", body, "Idempotency-Key", "k1", "X-Remora-Project", "boat").want(t, 201)
	if got := get[api.Added](t, a); got.Memory.Project != "boat" {
		t.Errorf("saved in project %q", got.Memory.Project)
	}
	r.send(t, "POST", "/v1/memories?user=ada", body, "Idempotency-Key", strings.Repeat("k", 129)).problem(t, 422, "invalid", "Idempotency-Key")
	// What failed is not kept.
	r.send(t, "POST", "/v1/memories?user=ada", object{"text": ""}, "Idempotency-Key", "k2").problem(t, 422, "invalid", "text")
	r.send(t, "POST", "/v1/memories?user=ada", object{"text": "I sail."}, "Idempotency-Key", "k2").want(t, 201)

	r.store.Delay(20 * time.Millisecond)
	var all sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		all.Go(func() {
			answers[i] = r.send(t, "POST", "/v1/memories?user=cleo", object{"text": "I paint boats."}, "Idempotency-Key", "k3")
		})
	}
	all.Wait()
	r.store.Delay(0)
	replayed := 0
	for _, a := range answers {
		if a.status != 201 || a.body != answers[0].body {
			t.Errorf("one of several at a time: %d %s", a.status, a.body)
		}
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != len(answers)-1 {
		t.Errorf("%d of %d were answered like the first", replayed, len(answers))
	}
}

// A statement that is dated before it was forgotten is not added, and the answer
// says so.
func TestForgottenStatements(t *testing.T) {
	r := newService(t)
	body := object{"text": "I moved to Lisbon in March.", "eventTime": "2026-03-04"}
	m := get[api.Added](t, r.send(t, "POST", "/v1/memories?user=ada", body).want(t, http.StatusCreated)).Memory
	r.send(t, "DELETE", "/v1/memories/"+m.ID, nil).want(t, 200)
	again := get[api.Added](t, r.send(t, "POST", "/v1/memories?user=ada", body).want(t, http.StatusOK))
	if again.Event != "forgotten" || again.Memory.ID != "" || len(r.list(t, "user=ada")) != 0 {
		t.Errorf("dated before it was forgotten: %+v", again)
	}
	delete(body, "eventTime")
	again = get[api.Added](t, r.send(t, "POST", "/v1/memories?user=ada", body).want(t, http.StatusCreated))
	if again.Event != "added" || len(r.list(t, "user=ada")) != 1 {
		t.Errorf("said again: %+v", again)
	}
}
