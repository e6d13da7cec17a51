package page

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
)

func TestLoginLink(t *testing.T) {
	r := newRig(t)
	link, expires := r.LoginLink()
	if left := time.Until(expires); left <= 9*time.Minute || left > linkTTL {
		t.Errorf("valid for %s", left)
	}
	res, body := r.send(t, link, nil)
	cookie := cookieOf(t, res)
	if strings.Contains(body, strings.TrimPrefix(link, "/login?code=")) {
		t.Error("the code is in the answer")
	}
	if res, _ := r.send(t, "/memories", nil, "Cookie", cookie); res.StatusCode != 200 {
		t.Errorf("with the cookie: status %d", res.StatusCode)
	}
	if res, _ := r.send(t, link, nil); len(res.Cookies()) > 0 {
		t.Error("the link works twice")
	}

	late, _ := r.LoginLink()
	r.ahead = linkTTL + time.Second
	if res, _ := r.send(t, late, nil); len(res.Cookies()) > 0 {
		t.Error("the link works after its time")
	}
	r.ahead = 0

	// Of many links the newest work.
	first, _ := r.LoginLink()
	for range maxLinks {
		r.ahead += time.Second
		r.LoginLink()
	}
	if res, _ := r.send(t, first, nil); len(res.Cookies()) > 0 {
		t.Errorf("%d links are valid at a time", maxLinks+1)
	}
	if len(r.sessions.links) > maxLinks {
		t.Errorf("%d links are kept", len(r.sessions.links))
	}
}

func TestLoginByKey(t *testing.T) {
	r := newRig(t)
	res, body := r.send(t, "/login", url.Values{"key": {"wrong-key-canary"}})
	if res.StatusCode != 401 || len(res.Cookies()) > 0 || strings.Contains(body, "canary") {
		t.Errorf("a wrong key: status %d, %d cookies, echoed %t", res.StatusCode, len(res.Cookies()), strings.Contains(body, "canary"))
	}
	res, _ = r.send(t, "/login", url.Values{"key": {adminToken}, "next": {"/people?user=ann"}})
	cookie := cookieOf(t, res)
	if to := res.Header.Get("Location"); to != "/people?user=ann" {
		t.Errorf("leads to %q", to)
	}
	for _, elsewhere := range []string{"https://example.org/", "//example.org/", `/\example.org`, "javascript:alert(1)", "/\texample", ""} {
		res, _ := r.send(t, "/login", url.Values{"key": {adminToken}, "next": {elsewhere}})
		if to := res.Header.Get("Location"); to != "/" {
			t.Errorf("next=%q leads to %q", elsewhere, to)
		}
	}

	// Logging out ends the session, and so does time.
	if res, _ := r.send(t, "/logout", url.Values{}, "Cookie", cookie); res.StatusCode != 303 {
		t.Errorf("logging out: status %d", res.StatusCode)
	}
	if res, _ := r.send(t, "/memories", nil, "Cookie", cookie); res.StatusCode != 303 || !strings.HasPrefix(res.Header.Get("Location"), "/login") {
		t.Errorf("after logging out: status %d", res.StatusCode)
	}
	res, _ = r.send(t, "/login", url.Values{"key": {adminToken}})
	cookie = cookieOf(t, res)
	r.ahead = sessionIdle + time.Second
	if res, _ := r.send(t, "/memories", nil, "Cookie", cookie); res.StatusCode != 303 {
		t.Errorf("after %s: status %d", r.ahead, res.StatusCode)
	}
}

// What is in front of Remora names the user: the session is that user's then,
// everybody who has logged in.
func TestNamedUser(t *testing.T) {
	r := newRig(t)
	admin := api.Principal{Admin: true, By: "test"}
	for user, text := range map[string]string{"ann": "I keep bees in Marseille", "zoltan": "I sail from Rotterdam"} {
		if _, err := r.service.Add(t.Context(), admin, api.Target{User: user}, api.Draft{Text: text}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	res, _ := r.send(t, "/login", url.Values{"key": {adminToken}})
	cookie := cookieOf(t, res)
	see := func(target string, header ...string) string {
		_, body := r.send(t, target, nil, append(header, "Cookie", cookie)...)
		return body
	}
	if body := see("/memories?user=zoltan"); !strings.Contains(body, "Rotterdam") {
		t.Error("the admin does not see what is Zoltan's")
	}
	if body := see("/memories", "X-Remora-User", "ann"); !strings.Contains(body, "Marseille") || strings.Contains(body, "Rotterdam") || strings.Contains(body, "zoltan") {
		t.Error("Ann does not see what is hers, or sees what is Zoltan's")
	}
	if res, body := r.send(t, "/memories?user=zoltan", nil, "Cookie", cookie, "X-Remora-User", "ann"); res.StatusCode != 404 || strings.Contains(body, "Rotterdam") {
		t.Errorf("Ann asks for Zoltan: status %d", res.StatusCode)
	}
	// A session that began as Ann's can't become Zoltan's.
	res, _ = r.send(t, "/login", url.Values{"key": {adminToken}}, "X-Remora-User", "ann")
	cookie = cookieOf(t, res)
	if body := see("/memories"); !strings.Contains(body, "Marseille") || strings.Contains(body, "Rotterdam") {
		t.Error("without the header the session is not Ann's any more")
	}
	if res, _ := r.send(t, "/memories", nil, "Cookie", cookie, "X-Remora-User", "zoltan"); res.StatusCode != 303 {
		t.Errorf("Zoltan with Ann's session: status %d", res.StatusCode)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := newRig(t)
	first := r.sessions.begin(api.Principal{Admin: true}, time.Now())
	for i := range MaxSessions {
		r.sessions.begin(api.Principal{Admin: true}, time.Now().Add(time.Duration(i+1)*time.Second))
	}
	if n := len(r.sessions.open); n != MaxSessions {
		t.Errorf("%d sessions", n)
	}
	if r.sessions.find(first, time.Now()) != nil {
		t.Error("the session that was used longest ago is still open")
	}
}

// A session that a proxy has named a user for sees no settings and no numbers of
// the whole installation.
func TestNamedUserSeesNoSettings(t *testing.T) {
	r := newRig(t)
	p := api.Principal{Admin: true, User: "ann", By: "test"}
	if _, err := r.service.Settings(t.Context(), p); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("Settings: %v", err)
	}
	if _, err := r.service.Metrics(t.Context(), p); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("Metrics: %v", err)
	}
	if res, body := r.send(t, "/health", nil, "Authorization", "Bearer "+adminToken, "X-Remora-User", "ann"); res.StatusCode != 200 || strings.Contains(body, "Settings in force") {
		t.Errorf("health: status %d, with settings %t", res.StatusCode, strings.Contains(body, "Settings in force"))
	}
}

// Somebody who logs in often ends sessions of their own, not those of others.
func TestSessionsOfOthersStay(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	admin := r.sessions.begin(api.Principal{Admin: true, By: "admin"}, now)
	other := r.sessions.begin(api.Principal{Tenant: "other", By: "key"}, now)
	own := r.sessions.begin(api.Principal{Tenant: "busy", By: "key"}, now)
	for i := range 2 * MaxSessions {
		r.sessions.begin(api.Principal{Tenant: "busy", User: strconv.Itoa(i), By: "key"}, now.Add(time.Duration(i+1)*time.Second))
	}
	if n := len(r.sessions.open); n != MaxSessions {
		t.Errorf("%d sessions", n)
	}
	for name, value := range map[string]string{"the admin": admin, "another tenant": other} {
		if r.sessions.find(value, now) == nil {
			t.Errorf("the session of %s has ended", name)
		}
	}
	if r.sessions.find(own, now) != nil {
		t.Error("the oldest session of the tenant is still open")
	}
}

func TestTheme(t *testing.T) {
	r := newRig(t)
	for chosen, want := range map[string]string{"dark": "dark", "auto": "auto", "": "auto", strings.Repeat("x", 9000): "auto"} {
		res, _ := r.send(t, "/theme", url.Values{"theme": {chosen}, "return": {"/health"}}, "Authorization", "Bearer "+adminToken)
		if cookies := res.Cookies(); len(cookies) != 1 || cookies[0].Value != want || res.Header.Get("Location") != "/health" {
			t.Errorf("%.10q: cookies %.100v, leads to %q", chosen, cookies, res.Header.Get("Location"))
		}
	}
}
