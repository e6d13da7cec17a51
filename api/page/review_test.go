package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

// What names nothing means all to the Service: nothing of the page may ask for
// that by accident.
func TestReviewNeverMeansAll(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	if _, err := r.service.Add(t.Context(), admin, api.Target{}, api.Draft{Text: "I keep bees"}, "test"); err != nil {
		t.Fatal(err)
	}
	for _, form := range []url.Values{
		{"do": {"forget-source"}}, {"do": {"forget-source"}, "source": {""}}, {"do": {"quarantine-source"}}, {"do": {"forget"}},
		{"do": {"forget-these"}, "request": {"f1"}}, {"do": {""}}, {},
	} {
		res, _ := r.send(t, "/review", form, "Authorization", "Bearer "+adminToken)
		if res.StatusCode != http.StatusSeeOther {
			t.Errorf("%v: status %d", form, res.StatusCode)
		}
		left, err := r.service.List(t.Context(), admin, api.Target{}, api.Filter{}, "", 0)
		if err != nil || len(left.Memories) != 1 {
			t.Fatalf("%v: %d memories are left, %v", form, len(left.Memories), err)
		}
	}
	if res, _ := r.send(t, "/review?tab=sources&do=forget-source&source=", nil, "Authorization", "Bearer "+adminToken); res.StatusCode != http.StatusNotFound {
		t.Errorf("a question without a source: status %d", res.StatusCode)
	}
}

func TestForgetSource(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	for i, source := range []string{"mail", "mail", "chat"} {
		draft := api.Draft{Text: fmt.Sprintf("I keep %d hives of bees behind house %d", i+2, i)}
		if _, err := r.service.Add(t.Context(), admin, api.Target{}, draft, source); err != nil {
			t.Fatal(err)
		}
	}
	count := func(state string) int {
		t.Helper()
		list, err := r.service.List(t.Context(), admin, api.Target{}, api.Filter{States: []string{state}}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Memories)
	}
	for _, step := range []struct {
		do                            string
		current, quarantined, deleted int
	}{{"quarantine-source", 1, 2, 0}, {"forget-source", 1, 0, 2}} {
		if res, _ := r.send(t, "/review", url.Values{"do": {step.do}, "source": {"mail"}}, "Authorization", "Bearer "+adminToken); res.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: status %d", step.do, res.StatusCode)
		}
		got := [3]int{count(api.StateCurrent), count(api.StateQuarantined), count(api.StateDeleted)}
		if want := [3]int{step.current, step.quarantined, step.deleted}; got != want {
			t.Errorf("%s: %v are current, in quarantine and deleted, want %v", step.do, got, want)
		}
	}
}

func TestReviewTabs(t *testing.T) {
	r := newRig(t)
	if _, err := r.service.Add(t.Context(), api.Principal{Admin: true, By: "test"}, api.Target{}, api.Draft{Text: "I keep bees"}, "mail"); err != nil {
		t.Fatal(err)
	}
	for _, tab := range []string{"", "quarantine", "contradictions", "forget", "sources", "<b>"} {
		target := "/review?tab=" + url.QueryEscape(tab)
		if res, body := r.send(t, target, nil, "Authorization", "Bearer "+adminToken); res.StatusCode != 200 || strings.Count(body, `aria-current="page"`) != 2 { // and that of the menu
			t.Errorf("tab %q: status %d, %d are current", tab, res.StatusCode, strings.Count(body, `aria-current="page"`))
		}
		if _, body := r.send(t, target, nil, "Authorization", "Bearer "+adminToken, "Hx-Request", "true", "Hx-Target", "nav#tabs"); strings.Contains(body, "<html") || strings.Contains(body, "hx-get") || !strings.Contains(body, `Sources <span class="chip">1</span>`) {
			t.Errorf("the counts of tab %q: %s", tab, body)
		}
	}
}
