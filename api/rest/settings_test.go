package rest

import (
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
)

// TestSettings checks what the admin is told of the settings. TestAccess checks
// that nobody else is.
func TestSettings(t *testing.T) {
	got := get[struct{ Settings []api.Setting }](t, newService(t).send(t, "GET", "/v1/settings", nil))
	if len(got.Settings) != 1 || got.Settings[0].Key != "recall.topK" || got.Settings[0].From != "config.json:12" || !got.Settings[0].Changed {
		t.Errorf("%+v", got)
	}
}

func TestLoginLinks(t *testing.T) {
	r := newService(t)
	a := r.send(t, "POST", "/v1/login-links", nil)
	if a.status != 201 || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, %v", a.status, a.header)
	}
	if link := get[api.LoginLink](t, a); link.URL != "http://127.0.0.1:8788/login?code=x" || link.ExpiresAt != "2026-11-26T10:00:00.000Z" {
		t.Errorf("%+v", link)
	}
	none := newRig(t, options{who: local(), loginLink: func() (string, time.Time) { return "", time.Time{} }})
	if a := none.send(t, "POST", "/v1/login-links", nil); a.status != 501 {
		t.Errorf("without a page: %d %s", a.status, a.body)
	}
}
