package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

func TestPeopleInPages(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	const all = 2*peoplePage + 30
	for i := range all {
		name := fmt.Sprintf("person-%03d", i)
		if i%50 == 0 {
			name = fmt.Sprintf("Rare-%03d", i)
		}
		if _, err := r.service.Add(t.Context(), admin, api.Target{User: name}, api.Draft{Text: "I keep bees"}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{"": all, "RARE": 5, "person-22": 10, "nothing": 0} {
		seen := map[string]bool{}
		cursor, pages := "", 0
		for {
			c := &call{Handler: r.Handler, ctx: context.Background(), p: admin}
			v := peopleView{Query: query}
			if err := v.fill(c, cursor); err != nil {
				t.Fatal(err)
			}
			if pages == 0 && (v.Total != want || v.Uncounted) {
				t.Errorf("%q: %d people are counted, want %d", query, v.Total, want)
			}
			for _, u := range v.Rows {
				if seen[u.User] {
					t.Errorf("%q: %s is listed twice", query, u.User)
				}
				seen[u.User] = true
			}
			if pages, cursor = pages+1, v.Next; cursor == "" {
				break
			}
		}
		if len(seen) != want || query == "" && pages < 2 {
			t.Errorf("%q: %d people on %d pages, want %d", query, len(seen), pages, want)
		}
	}
}

func TestErase(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	for _, project := range []string{"one", "two"} {
		if _, err := r.service.Add(t.Context(), admin, api.Target{User: "bob", Project: project}, api.Draft{Text: "I keep bees"}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		t.Helper()
		users, err := r.service.Users(t.Context(), admin, api.Target{}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(users.Users)
	}
	login, _ := r.send(t, "/login", url.Values{"key": {adminToken}})
	cookie := cookieOf(t, login)
	tenant := ""
	if users, err := r.service.Users(t.Context(), admin, api.Target{}, "", 0); err == nil {
		tenant = users.Users[0].Tenant
	}
	ask := "/people/erase?" + url.Values{"user": {"bob"}, "tenant": {tenant}, "project": {"one"}}.Encode()
	if res, body := r.send(t, ask, nil, "Cookie", cookie); res.StatusCode != 200 || !strings.Contains(body, "one") || !strings.Contains(body, "two") {
		t.Errorf("the question: status %d, both projects are named: %t", res.StatusCode, strings.Contains(body, "two"))
	}
	for _, name := range []string{"", "Bob", "bob bob"} {
		if res, _ := r.send(t, ask, url.Values{"name": {name}}, "Cookie", cookie); res.StatusCode != http.StatusUnprocessableEntity || left() != 2 {
			t.Errorf("erased by %q: status %d, %d are left", name, res.StatusCode, left())
		}
	}
	res, _ := r.send(t, ask, url.Values{"name": {" bob "}}, "Cookie", cookie)
	at := res.Header.Get("Location")
	if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/people/erase?receipt=erasure-") || left() != 0 {
		t.Fatalf("status %d, Location %q, %d are left", res.StatusCode, at, left())
	}
	if res, body := r.send(t, at, nil, "Cookie", cookie); res.StatusCode != 200 || !strings.Contains(body, "2 apps and projects") || strings.Contains(body, "<nav") {
		t.Errorf("the receipt: status %d", res.StatusCode)
	}
	other, _ := r.send(t, "/login", url.Values{"key": {adminToken}})
	for _, stranger := range [][]string{{"Cookie", cookieOf(t, other)}, {"Authorization", "Bearer " + adminToken}} {
		if res, _ := r.send(t, at, nil, stranger...); res.StatusCode != http.StatusNotFound {
			t.Errorf("the receipt for another session: status %d", res.StatusCode)
		}
	}
}

func TestReceiptsAreBounded(t *testing.T) {
	var s session
	ann, bob := api.Principal{Admin: true, User: "ann"}, api.Principal{Admin: true, User: "bob"}
	for i := range maxReceipts + 1 {
		s.keep(api.Receipt{ID: fmt.Sprint(i)}, ann)
	}
	last := fmt.Sprint(maxReceipts)
	if _, ok := s.receipt("0", ann); ok || len(s.receipts) != maxReceipts {
		t.Errorf("%d receipts are kept", len(s.receipts))
	}
	if _, ok := s.receipt(last, ann); !ok {
		t.Error("the last receipt is gone")
	}
	if _, ok := s.receipt(last, bob); ok {
		t.Error("Bob sees a receipt of Ann's in the same browser")
	}
}

// A user of the same name in another tenant is somebody else: what is asked is
// what is erased.
func TestEraseInOneTenant(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	for _, whose := range []api.Target{{User: "bob", Project: "here"}, {User: "bob", Tenant: "elsewhere", Project: "there"}} {
		if _, err := r.service.Add(t.Context(), admin, whose, api.Draft{Text: "I keep bees"}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	key := []string{"Authorization", "Bearer " + adminToken}
	res, body := r.send(t, "/people/erase?user=bob", nil, key...)
	if res.StatusCode != http.StatusOK || !strings.Contains(body, ">here<") || strings.Contains(body, ">there<") {
		t.Errorf("status %d, the other tenant's project is named: %t", res.StatusCode, strings.Contains(body, ">there<"))
	}
	if res, _ := r.send(t, "/people/erase?user=bob", url.Values{"name": {"bob"}}, key...); res.StatusCode != http.StatusOK {
		t.Fatalf("erasing: status %d", res.StatusCode)
	}
	if left, err := r.service.Users(t.Context(), admin, api.Target{}, "", 0); err != nil || len(left.Users) != 1 || left.Users[0].Project != "there" {
		t.Errorf("left are %+v, %v", left.Users, err)
	}
	if res, _ := r.send(t, "/people/erase", nil, key...); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("without a user: status %d", res.StatusCode)
	}
}

func TestExportOfPeople(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	for _, user := range []string{"bob", "zoë/../\"x"} {
		if _, err := r.service.Add(t.Context(), admin, api.Target{User: user}, api.Draft{Text: "I keep bees, says " + user}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ user, format, attachment, mediaType string }{
		{"bob", "", `filename=remora-bob-`, "application/jsonl"},
		{"bob", "mem0", `.json`, "application/json"},
		{"bob", "markdown", `.md`, "text/markdown; charset=utf-8"},
		{"zoë/../\"x", "remora", `filename*=utf-8''remora-zo%C3%AB-..--x-`, "application/jsonl"},
		{"ann", "remora", `filename=remora-ann-`, "application/jsonl"}, // nothing is remembered of her
	} {
		target := "/people/export?" + url.Values{"user": {test.user}, "format": {test.format}}.Encode()
		res, body := r.send(t, target, nil, "Authorization", "Bearer "+adminToken)
		disposition := res.Header.Get("Content-Disposition")
		if res.StatusCode != 200 || !strings.HasPrefix(disposition, "attachment; ") || !strings.Contains(disposition, test.attachment) || res.Header.Get("Content-Type") != test.mediaType {
			t.Errorf("%+v: status %d, %q, %q", test, res.StatusCode, disposition, res.Header.Get("Content-Type"))
		}
		if test.user == "bob" != strings.Contains(body, "says bob") {
			t.Errorf("%+v: bob's memories are in it: %t", test, test.user != "bob")
		}
	}
	if res, _ := r.send(t, "/people/export?user=bob&format=x", nil, "Authorization", "Bearer "+adminToken); res.StatusCode != 422 || res.Header.Get("Content-Disposition") != "" {
		t.Errorf("no such format: status %d, %v", res.StatusCode, res.Header)
	}
}

func TestCountsOf(t *testing.T) {
	got := fmt.Sprint(countsOf(map[string]int{"fact": 1, "episode": 2, "other": 3, "curated": 0}, kindPlurals))
	if want := "[{other 3} {passages of conversations 2} {fact 1}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
