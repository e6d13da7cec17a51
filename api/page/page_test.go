package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/proxy/identity"
)

// Nobody sees a view without a key, and every answer has the policy that keeps
// text from becoming code.
func TestEveryRouteNeedsAKey(t *testing.T) {
	r := newRig(t)
	for pattern := range routes() {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{$}", "", "{id}", "f1").Replace(path)
		var form url.Values
		if method == http.MethodPost {
			form = url.Values{}
		}
		res, _ := r.send(t, path, form)
		if to := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/login") {
			t.Errorf("%s: status %d, Location %q", pattern, res.StatusCode, to)
		}
		if res.Header.Get("Content-Security-Policy") != securityPolicy {
			t.Errorf("%s: no policy", pattern)
		}
		if res, body := r.send(t, path, form, "Hx-Request", "true"); res.Header.Get("Hx-Redirect") != "/login" || body != "" {
			t.Errorf("%s, as a part: leads to %q, body %q", pattern, res.Header.Get("Hx-Redirect"), body)
		}
	}
}

func TestAssets(t *testing.T) {
	r := newRig(t)
	for name, a := range r.assets {
		for _, accepts := range []string{"", "gzip, br", "gzip;q=0"} {
			res, body := r.send(t, "/assets/"+name, nil, "Accept-Encoding", accepts)
			want := string(a.plain)
			if accepts == "gzip, br" {
				want = string(a.gzip)
			}
			if res.StatusCode != 200 || body != want || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
				t.Errorf("%s with %q: status %d, %d bytes, %v", name, accepts, res.StatusCode, len(body), res.Header)
			}
		}
	}
	for _, name := range []string{"htmx.LICENSE", "nothing.js", "..%2fpage.go"} {
		if res, _ := r.send(t, "/assets/"+name, nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
	}
}

// Where each key is a tenant and nothing is remembered yet, every view has
// something to say.
func TestNobodyYet(t *testing.T) {
	r := newRigOf(t, identity.Config{Tenant: identity.TenantKey, Anonymous: identity.AnonymousOff})
	for _, path := range []string{"/", "/memories", "/review", "/try", "/try?message=What+about+bees", "/people", "/people/export", "/benefit", "/import", "/health"} {
		if res, body := r.send(t, path, nil, "Authorization", "Bearer "+adminToken); res.StatusCode != 200 || !strings.Contains(body, "<h1") {
			t.Errorf("%s: status %d", path, res.StatusCode)
		}
	}
}

// A part of a view that fails is reported next to the view, which stays.
func TestFailedPart(t *testing.T) {
	r := newRig(t)
	header := []string{"Authorization", "Bearer " + adminToken, "Hx-Request", "true"}
	for _, path := range []string{"/memories/nothing", "/exchanges/x1", "/memories/nothing?originals=1"} {
		res, body := r.send(t, path, nil, header...)
		if res.StatusCode < 400 || res.Header.Get("Hx-Retarget") != "#toasts" || !strings.Contains(body, `class="toast bad"`) || strings.Contains(body, "<html") {
			t.Errorf("%.40s: status %d, for %q: %.200s", path, res.StatusCode, res.Header.Get("Hx-Retarget"), body)
		}
	}
}

// FuzzViews asks for views with any parameters, and for changes with any
// fields: nothing fails in Remora, and no markup of the parameters is in an
// answer.
func FuzzViews(f *testing.F) {
	r := newRig(f)
	added, err := r.service.Add(f.Context(), api.Principal{Admin: true, By: "test"}, api.Target{}, api.Draft{Text: "I keep bees"}, "test")
	if err != nil {
		f.Fatal(err)
	}
	paths := []string{"/", "/memories", "/memories/" + added.Memory.ID, "/memories/nothing", "/review", "/try", "/people", "/people/erase", "/benefit", "/import", "/health", "/exchanges/x1"}
	for i := range paths {
		f.Add(uint8(i), "q", `"><script>canary</script>`, false)
		f.Add(uint8(i), "user", "<canary>", false)
		f.Add(uint8(i), "cursor", "x", true)
		f.Add(uint8(i), "tab", "forget", false)
		f.Add(uint8(i), "message", "What about bees? <canary>", false)
		f.Add(uint8(i), "asOf", "2026-13-45<canary>", false)
		f.Add(uint8(i), "age", "-30", true)
	}
	f.Fuzz(func(t *testing.T, path uint8, name, value string, part bool) {
		header := []string{"Authorization", "Bearer " + adminToken}
		if part {
			header = append(header, "Hx-Request", "true", "Hx-Target", "section#results")
		}
		target := paths[int(path)%len(paths)]
		res, body := r.send(t, target+"?"+url.Values{name: {value}}.Encode(), nil, header...)
		if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
			t.Fatalf("%s: status %d", target, res.StatusCode)
		}
		if strings.Contains(body, "<canary>") || strings.Contains(body, "<script>canary") {
			t.Fatalf("%s: markup of %s is in the answer", target, name)
		}
		if strings.HasPrefix(target, "/memories/") || target == "/review" {
			if res, _ := r.send(t, target, url.Values{name: {value}, "do": {value}}, header...); res.StatusCode >= 500 {
				t.Fatalf("%s, changed: status %d", target, res.StatusCode)
			}
		}
	})
}
