package rest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

// A page in a browser can reach a listener on loopback under a name of its own,
// and send requests from its own site. Neither is served.
func TestGuard(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I sail.", nil)
	guarded := func(o GuardOptions) http.Handler { return Guard(r.rest, o) }
	onLoopback, open := guarded(GuardOptions{Loopback: true, Hosts: []string{"remora.example"}}), guarded(GuardOptions{})
	for _, c := range []struct {
		name    string
		handler http.Handler
		method  string
		host    string
		header  []string
		status  int
	}{
		{"by name", onLoopback, "GET", "localhost:8788", nil, 200},
		{"by a name below localhost", onLoopback, "GET", "Remora.localhost", nil, 200},
		{"by address", onLoopback, "GET", "127.0.0.1:8788", nil, 200},
		{"by another address of loopback", onLoopback, "GET", "127.9.9.9", nil, 200},
		{"by address 6", onLoopback, "GET", "[::1]:8788", nil, 200},
		{"by a configured name", onLoopback, "GET", "REMORA.example:8788", nil, 200},
		{"by a name that leads here", onLoopback, "GET", "evil.example", nil, 403},
		{"by a name that ends alike", onLoopback, "GET", "evil-localhost", nil, 403},
		{"by an address of the network", onLoopback, "GET", "192.168.1.5", nil, 403},
		{"without a name", onLoopback, "GET", "", nil, 403},
		{"off loopback by any name", open, "GET", "remora.internal", nil, 200},
		{"from another site", onLoopback, "POST", "localhost", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"from another origin", onLoopback, "POST", "localhost", []string{"Origin", "https://evil.example"}, 403},
		{"from another port", onLoopback, "POST", "localhost:8788", []string{"Origin", "http://localhost:3000"}, 403},
		{"from its own page", onLoopback, "POST", "localhost:8788", []string{"Origin", "http://localhost:8788", "Sec-Fetch-Site", "same-origin"}, 200},
		{"off loopback from another site", open, "POST", "remora.internal", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"read from another site", onLoopback, "GET", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"an image of another site", onLoopback, "GET", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a link on another site", onLoopback, "GET", "localhost", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"read off loopback from another site", open, "GET", "remora.internal", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 200},
	} {
		target, body := "/v1/memories/"+m.ID, any(nil)
		if c.method == "POST" {
			target, body = "/v1/memories/search?user=ada", object{"query": "sail"}
		}
		req := r.newRequest(t, c.method, target, body, c.header...)
		req.Host = c.host
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, req)
		a := answer{c.name, w.Code, w.Header(), w.Body.String()}
		if c.status == 403 {
			a.problem(t, 403, "host-forbidden", "")
		} else {
			a.want(t, c.status)
		}
		for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s %q", c.name, name, got)
			}
		}
	}
}

func TestRequestIDs(t *testing.T) {
	r := newService(t)
	for given, kept := range map[string]bool{
		"abcd-1234_XYZ": true, "short": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "has a blank": false, "line\x01break": false, "": false,
		"quote\"quote": false,
	} {
		got := r.send(t, "GET", "/v1/users", nil, "X-Request-Id", given).want(t, 200).header.Get("X-Request-Id")
		if kept && got != given || !kept && (got == given || len(got) != 24) {
			t.Errorf("given %q, got %q", given, got)
		}
	}
}

// A panic is an error of Remora's own. Its value may be content: neither the
// answer nor the log has it.
func TestPanics(t *testing.T) {
	log := &lines{}
	h := Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(canary) }), GuardOptions{Log: slog.New(slog.NewTextHandler(log, nil))})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	answer{"GET /", w.Code, w.Header(), w.Body.String()}.problem(t, 500, "internal", "")
	if strings.Contains(w.Body.String(), canary) || strings.Contains(log.String(), canary) {
		t.Errorf("the value is in the answer or in the log: %s %s", w.Body, log)
	}
	if !strings.Contains(log.String(), "request="+w.Header().Get("X-Request-Id")) || !strings.Contains(log.String(), "guard_test.go") {
		t.Errorf("the log does not say where: %s", log)
	}
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("a handler that aborts does not abort")
		}
	}()
	Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), GuardOptions{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
}

func TestUnknownPathsAndMethods(t *testing.T) {
	r := newService(t)
	for _, path := range []string{"/", "/v1", "/v1/nothing", "/v1/memories/x/nothing", "/v2/memories", "/v1/users/", "/openapi.json", "/v1/memories/"} {
		r.send(t, "GET", path, nil).problem(t, 404, "not-found", "")
	}
	for path, allow := range map[string]string{"/v1/memories": "GET, HEAD, POST", "/v1/metrics": "GET, HEAD", "/v1/memories/x": "DELETE, GET, HEAD, PATCH", "/v1/recall": "POST"} {
		a := r.send(t, "PUT", path, nil)
		a.problem(t, 405, "method", "")
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q, want %q", path, got, allow)
		}
	}
}

// The contract and its page are served without a key.
func TestContractIsServed(t *testing.T) {
	r := newService(t).with("Authorization", "")
	a := r.send(t, "GET", "/openapi.yaml", nil).want(t, 200)
	if a.body != string(api.Contract) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("%s", a.header)
	}
	a = r.send(t, "GET", "/reference", nil).want(t, 200)
	policy := a.header.Get("Content-Security-Policy")
	if a.body != string(api.Reference) || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
		t.Errorf("%s", a.header)
	}
}

// While the store can't serve, everything that needs it is 503 and says when to
// try again.
func TestUnavailable(t *testing.T) {
	r := newService(t)
	m := r.add(t, "user=ada", "I sail.", nil)
	r.store.Fail(true)
	defer r.store.Fail(false)
	for _, c := range []struct {
		method, target string
		body           any
	}{
		{"GET", "/v1/memories?user=ada", nil}, {"GET", "/v1/memories/" + m.ID, nil}, {"POST", "/v1/memories?user=ada", object{"text": "I paint."}},
		{"GET", "/v1/entries/k?user=ada", nil}, {"PUT", "/v1/entries/k?user=ada", object{"value": 1, "ttl": 1}}, {"GET", "/v1/users", nil},
		{"GET", "/v1/resources?user=ada", nil}, {"GET", "/v1/export", nil}, {"GET", "/v1/metrics", nil}, {"GET", "/v1/exchanges?user=ada", nil},
		{"GET", "/v1/audits?user=ada", nil}, {"DELETE", "/v1/users/ada", nil},
	} {
		a := r.send(t, c.method, c.target, c.body)
		a.problem(t, 503, "unavailable", "")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: Retry-After %q", a.what, a.header.Get("Retry-After"))
		}
	}
}
