package page

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/remora-proxy/remora/api"
)

// Each button of a memory does what it says, and undo takes it back.
func TestChangesOfOne(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	added, err := r.service.Add(t.Context(), admin, api.Target{}, api.Draft{Text: "I keep bees", Tags: []string{"home"}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	id := added.Memory.ID
	press := func(form url.Values) (status int, m api.Memory) {
		t.Helper()
		res, _ := r.send(t, "/memories/"+id, form, "Authorization", "Bearer "+adminToken)
		if m, err = r.service.Get(t.Context(), admin, api.Target{}, id, true); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, m
	}
	for _, test := range []struct {
		form url.Values
		want func(m api.Memory) bool
	}{
		{url.Values{"do": {"pin"}}, func(m api.Memory) bool { return slices.Contains(m.Tags, "pinned") }},
		{url.Values{"do": {"private"}}, func(m api.Memory) bool { return slices.Contains(m.Tags, "private") }},
		{url.Values{"do": {"tag"}, "tags": {"home, garden"}}, func(m api.Memory) bool { return slices.Equal(m.Tags, []string{"home", "garden"}) }},
		{url.Values{"do": {"quarantine"}}, func(m api.Memory) bool { return m.State == api.StateQuarantined }},
		{url.Values{"do": {"save"}, "text": {"I keep wasps"}, "tags": {"home"}}, func(m api.Memory) bool { return m.Text == "I keep wasps" }},
		{url.Values{"do": {"forget"}}, func(m api.Memory) bool { return m.State == api.StateDeleted }},
	} {
		if status, m := press(test.form); status != http.StatusSeeOther || !test.want(m) {
			t.Errorf("%v: status %d, the memory is %+v", test.form, status, m)
		}
		if status, m := press(url.Values{"do": {"undo"}}); status != http.StatusSeeOther || m.Text != "I keep bees" || m.State != api.StateCurrent || !slices.Equal(m.Tags, []string{"home"}) {
			t.Errorf("%v, taken back: status %d, the memory is %+v", test.form, status, m)
		}
	}
}

// A change that is refused shows what was typed, and changes nothing.
func TestRefusedChanges(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	added, err := r.service.Add(t.Context(), admin, api.Target{}, api.Draft{Text: "I keep bees"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		form   url.Values
		status int
		shown  string
	}{
		"an old version": {url.Values{"do": {"save"}, "text": {"I keep wasps"}, "version": {"1000"}}, http.StatusUnprocessableEntity, "I keep wasps"},
		"too long":       {url.Values{"do": {"save"}, "text": {strings.Repeat("wasps ", 1000)}}, http.StatusUnprocessableEntity, "wasps wasps"},
		"no such button": {url.Values{"do": {"explode"}}, http.StatusUnprocessableEntity, "names nothing that can be done"},
		"no such time":   {url.Values{"do": {"restore"}, "at": {"yesterday"}}, http.StatusUnprocessableEntity, ""},
	} {
		for _, part := range []string{"", "true"} {
			status := test.status
			if part != "" {
				status = http.StatusOK // the part is what is replaced
			}
			res, body := r.send(t, "/memories/"+added.Memory.ID, test.form, "Authorization", "Bearer "+adminToken, "Hx-Request", part)
			if res.StatusCode != status || !strings.Contains(body, test.shown) || strings.Contains(body, "<html") != (part == "") {
				t.Errorf("%s, part %q: status %d, %d bytes", name, part, res.StatusCode, len(body))
			}
		}
		if m, err := r.service.Get(t.Context(), admin, api.Target{}, added.Memory.ID, true); err != nil || m.Text != "I keep bees" || m.Version != added.Memory.Version {
			t.Errorf("%s: the memory is %+v, %v", name, m, err)
		}
	}
	if res, _ := r.send(t, "/memories/f1", url.Values{"do": {"pin"}}, "Authorization", "Bearer "+adminToken); res.StatusCode != http.StatusNotFound {
		t.Errorf("of no memory: status %d", res.StatusCode)
	}
}

// The report of a change of several takes back what it changed, and nothing
// else.
func TestChangesOfSeveral(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	var ids []string
	for _, text := range []string{"I keep bees", "I play the cello", "I collect stamps"} {
		added, err := r.service.Add(t.Context(), admin, api.Target{}, api.Draft{Text: text}, "test")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, added.Memory.ID)
	}
	garden := []string{"garden"}
	if _, err := r.service.Update(t.Context(), admin, api.Target{}, ids[0], 0, api.Patch{Tags: &garden}); err != nil {
		t.Fatal(err)
	}
	value := r.sessions.begin(admin, time.Now())
	cookie := "remora-session-8788=" + value
	press := func(form url.Values) *flash {
		t.Helper()
		if res, _ := r.send(t, "/memories/bulk", form, "Cookie", cookie); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%v: status %d", form, res.StatusCode)
		}
		return r.sessions.find(value, time.Now()).said()
	}
	for _, test := range []struct {
		form url.Values
		want flash
	}{
		{url.Values{"do": {"tag"}, "id": ids, "tags": {"garden"}}, flash{Text: "2 memories changed.", Undo: ids[1:]}},
		{url.Values{"do": {"pin"}, "id": {ids[0], "f1", ids[1]}}, flash{Bad: true, Undo: ids[:1]}},
		{url.Values{"do": {"undo"}, "id": ids[:1]}, flash{Text: "Taken back."}},
		{url.Values{"do": {"forget"}, "id": ids}, flash{Undo: ids}},
		{url.Values{"do": {"pin"}}, flash{Bad: true}},
		{url.Values{"do": {"pin"}, "id": slices.Repeat([]string{"f1"}, api.MaxIDs+1)}, flash{Bad: true}},
	} {
		got := press(test.form)
		if got == nil || test.want.Text != "" && got.Text != test.want.Text || got.Bad != test.want.Bad || !slices.Equal(got.Undo, test.want.Undo) {
			t.Errorf("%s of %d: %+v, want %+v", test.form.Get("do"), len(test.form["id"]), got, test.want)
		}
	}
}

// A part of a view does not take what the next view is to report.
func TestReportsWaitForAView(t *testing.T) {
	r := newRig(t)
	cookie := "remora-session-8788=" + r.sessions.begin(api.Principal{Admin: true, By: "test"}, time.Now())
	if res, _ := r.send(t, "/memories", url.Values{"text": {"I keep bees"}}, "Cookie", cookie); res.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d", res.StatusCode)
	}
	r.send(t, "/health", nil, "Cookie", cookie, "Hx-Request", "true", "Hx-Target", "div#numbers")
	for _, want := range []bool{true, false} {
		if _, body := r.send(t, "/memories", nil, "Cookie", cookie); strings.Contains(body, "Saved.") != want {
			t.Errorf("it is reported: %t, want %t", !want, want)
		}
	}
}

// What a form sends back as it was shown stays as it is, though browsers end
// lines in their own way and tags have commas between them. There is nothing to
// undo then: that would take back an earlier change.
func TestNothingIsChanged(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	const text = "I keep bees\nand two goats"
	added, err := r.service.Add(t.Context(), admin, api.Target{}, api.Draft{Text: text, Tags: []string{"home, garden", "pinned"}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	id := added.Memory.ID
	shown := url.Values{"do": {"save"}, "text": {"I keep bees\r\nand two goats\r\n"}, "tags": {"home, garden, pinned"}}
	for _, form := range []url.Values{shown, {"do": {"pin"}}, {"do": {"public"}}, {"do": {"release"}}, {"do": {"tag"}, "tags": {"pinned"}}} {
		form.Set("id", id)
		for _, target := range []string{"/memories/" + id, "/memories/bulk"} {
			login, _ := r.send(t, "/login", url.Values{"key": {adminToken}})
			cookie := cookieOf(t, login)
			if res, _ := r.send(t, target, form, "Cookie", cookie); res.StatusCode != http.StatusSeeOther {
				t.Errorf("%s of %v: status %d", target, form, res.StatusCode)
			}
			if _, body := r.send(t, "/memories", nil, "Cookie", cookie); strings.Contains(body, `value="undo"`) {
				t.Errorf("%s of %v offers to undo what is older", target, form)
			}
		}
	}
	m, err := r.service.Get(t.Context(), admin, api.Target{}, id, true)
	if err != nil || m.Text != text || m.Version != added.Memory.Version {
		t.Errorf("the memory is %+v, %v", m, err)
	}
	shown.Set("text", "I keep bees\r\nand three goats")
	if res, _ := r.send(t, "/memories/"+id, shown, "Authorization", "Bearer "+adminToken); res.StatusCode != http.StatusSeeOther {
		t.Errorf("saving: status %d", res.StatusCode)
	}
	m, err = r.service.Get(t.Context(), admin, api.Target{}, id, true)
	if err != nil || m.Text != "I keep bees\nand three goats" || !slices.Equal(m.Tags, []string{"home, garden", "pinned"}) {
		t.Errorf("the edited memory is %+v, %v", m, err)
	}
}

// Ids of imported memories may look like anything: links lead to the memory, and
// a part that is swapped in goes to its row.
func TestStrangeIDs(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	const id = `../people/erase?user=bob#"],body`
	export := fstest.MapFS{"own.jsonl": {Data: []byte(`{"id": ` + strconv.Quote(id) + `, "kind": "fact", "text": "I keep bees", "state": "current", "priority": 0.5}` + "\n")}}
	if _, err := r.service.Import(t.Context(), admin, api.Target{User: "bob"}, export, api.ImportOptions{Format: "remora"}, nil); err != nil {
		t.Fatal(err)
	}
	const path = `/memories/..%2Fpeople%2Ferase%3Fuser=bob%23%22%5D%2Cbody`
	key := []string{"Authorization", "Bearer " + adminToken}
	for _, view := range []string{"/memories?user=bob", "/memories?user=bob&id=" + url.QueryEscape(id), path + "?user=bob"} {
		res, body := r.send(t, view, nil, key...)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, `="`+path+`?`) || strings.Contains(body, `="/memories/../`) {
			t.Errorf("%s: status %d, its link is there: %t", view, res.StatusCode, strings.Contains(body, `="`+path+`?`))
		}
	}
	_, body := r.send(t, path+"?user=bob", url.Values{"do": {"pin"}}, append(key, "Hx-Request", "true", "Hx-Current-Url", "http://127.0.0.1:8788/memories")...)
	if want := `[data-id="` + strings.ReplaceAll(id, `"`, `\"`) + `"]`; !strings.Contains(html.UnescapeString(body), want) {
		t.Errorf("no part is for %s", want)
	}
}
