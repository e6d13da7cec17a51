package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// TestOpen checks what is printed and opened, and that a server can't send the
// browser to another one.
func TestOpen(t *testing.T) {
	const code, expires = "/login?code=0123", "2026-11-26T10:00:00.000Z"
	for name, test := range map[string]struct {
		base, answered string
		json           bool
		want           string // in the output
		fails          string
	}{
		"of this machine":   {Local, "http://127.0.0.1:8788" + code, false, "http://127.0.0.1:8788/login?code=0123\n", ""},
		"of a server":       {"https://remora.example", "http://10.0.0.1:8788" + code, false, "https://remora.example/login?code=0123\n", ""},
		"below a path":      {"https://example.com/remora", "http://10.0.0.1:8788" + code, false, "https://example.com/remora/login?code=0123\n", ""},
		"as JSON":           {Local, "http://127.0.0.1:8788" + code, true, `{"url":"http://127.0.0.1:8788/login?code=0123","expiresAt":"2026-11-26T10:00:00.000Z"}` + "\n", ""},
		"of another server": {"https://remora.example", "https://evil.example" + code, false, "https://remora.example/login?code=0123\n", ""},
		"another scheme":    {Local, "file:///etc/passwd", false, "", "no link"},
		"an option":         {Local, "--version", false, "", "no link"},
		"nothing":           {Local, "", false, "", "no page to open"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pipeTo(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/login-links") || r.URL.RawQuery != "" {
					t.Errorf("%s %s", r.Method, r.URL.Path)
				}
				if test.answered == "" {
					request.Problem(api.ErrOff).Write(w)
					return
				}
				request.Write(w, http.StatusCreated, api.LoginLink{URL: test.answered, ExpiresAt: expires})
			})
			var out, errs bytes.Buffer
			var opened []string
			s := &Session{Client: New(p, test.base, "", api.Target{User: "ann"}), Console: NewConsole(nil, &out, &errs, func(string) string { return "" }), JSON: test.json}
			v := &Open{Browse: func(_ context.Context, url string) error {
				opened = append(opened, url)
				return errors.New("no browser")
			}}
			err := v.Run(t.Context(), s)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || len(opened) > 0 || out.Len() > 0 {
					t.Errorf("got %v, opened %q, printed %q", err, opened, out.String())
				}
				return
			}
			if err != nil || out.String() != test.want {
				t.Errorf("got %v, %q, want %q", err, out.String(), test.want)
			}
			if test.json != (len(opened) == 0) || len(opened) > 0 && opened[0]+"\n" != test.want {
				t.Errorf("opened %q", opened)
			}
			if !test.json && errs.String() != "valid once, until 2026-11-26 10:00 UTC\nno browser can be started here: open the link in one\n" {
				t.Errorf("said %q", errs.String())
			}
		})
	}
}
