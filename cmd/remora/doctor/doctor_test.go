package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

func TestWrite(t *testing.T) {
	findings := []Finding{
		{Subject: "a", Status: OK, Text: "fine"},
		{Subject: "b", Status: Warning, Text: "hm", Fix: "Do <this>."},
	}
	var b strings.Builder
	Write(&b, findings)
	if want := "ok       a: fine\nwarning  b: hm\n         -> Do <this>.\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
	for _, test := range []struct {
		findings []Finding
		want     string
	}{
		{findings, `{"ok":true,"findings":[{"subject":"a","status":"ok","text":"fine"},{"subject":"b","status":"warning","text":"hm","fix":"Do <this>."}]}`},
		{[]Finding{{Subject: "a", Status: Failed, Text: "no"}}, `{"ok":false,"findings":[{"subject":"a","status":"failed","text":"no"}]}`},
		{nil, `{"ok":true,"findings":[]}`},
	} {
		var b bytes.Buffer
		if err := WriteJSON(&b, test.findings); err != nil || strings.TrimSpace(b.String()) != test.want || !json.Valid(b.Bytes()) {
			t.Errorf("got %s, %v", b.String(), err)
		}
	}
}

func TestClock(t *testing.T) {
	for _, test := range []struct {
		name  string
		skews []Skew
		want  Status
		text  string
	}{
		{"nobody told", nil, OK, "not compared"},
		{"the same", []Skew{{"a", 300 * time.Millisecond}}, OK, "agrees with upstream a to 1s"},
		{"some minutes", []Skew{{"a", 10 * time.Minute}}, Warning, "10m0s behind upstream a"},
		{"a day", []Skew{{"a", -24 * time.Hour}}, Failed, "24h0m0s ahead of upstream a"},
		{"one upstream is wrong", []Skew{{"a", 24 * time.Hour}, {"b", -time.Second}}, OK, "agrees with upstream b"},
	} {
		if f := Clock(test.skews); f.Status != test.want || !strings.Contains(f.Text, test.text) || (f.Fix == "") != (f.Status == OK) {
			t.Errorf("%s: got %+v", test.name, f)
		}
	}
}

func TestDisk(t *testing.T) {
	for _, test := range []struct {
		free uint64
		err  error
		want Status
	}{{1000, nil, OK}, {150, nil, Warning}, {99, nil, Failed}, {0, errors.New("no"), Warning}} {
		if f := Disk("/d", test.free, test.err, 100); f.Status != test.want {
			t.Errorf("%d free, %v: got %+v", test.free, test.err, f)
		}
	}
}

// Each way in which an upstream can't be reached has its own advice, and no key
// is sent.
func TestUpstreams(t *testing.T) {
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if name != "User-Agent" && name != "Connection" {
				t.Errorf("header %s is sent", name)
			}
		}
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer late.Close()
	private := httptest.NewTLSServer(http.NotFoundHandler())
	defer private.Close()
	private.Config.ErrorLog = nil
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	found, clocks := Upstreams(t.Context(), []httpclient.UpstreamConfig{
		{Name: "late", URL: late.URL}, {Name: "private", URL: private.URL}, {Name: "closed", URL: "http://" + closed.Addr().String()},
		{Name: "plain", URL: strings.Replace(late.URL, "http:", "https:", 1)},
	}, httpclient.TransportConfig{})
	for i, want := range []struct {
		status    Status
		text, fix string
	}{
		{OK, "reachable, answers 401 over HTTP/1.1", ""},
		{Failed, "certificate", "caFile"},
		{Failed, "refused", "Nothing listens there"},
		{Failed, "", "speaks no TLS"},
	} {
		if f := found[i]; f.Status != want.status || !strings.Contains(f.Text, want.text) || !strings.Contains(f.Fix, want.fix) || (want.fix == "") != (f.Fix == "") {
			t.Errorf("got %+v, want %+v", f, want)
		}
	}
	if len(clocks) != 1 || clocks[0].Upstream != "late" || clocks[0].By.Round(time.Minute) != time.Hour {
		t.Errorf("clocks %+v", clocks)
	}
	if fix := upstreamFix(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "llm.invalid"}}); !strings.Contains(fix, "DNS") {
		t.Errorf("a name that does not resolve: %s", fix)
	}
	if fix := upstreamFix(context.DeadlineExceeded); !strings.Contains(fix, "in time") {
		t.Errorf("no answer: %s", fix)
	}
}

func TestAddress(t *testing.T) {
	remora := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == listener.LivePath || r.URL.Path == "/livez" {
			listener.Live(w)
		}
	}))
	defer remora.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }))
	defer other.Close()
	for _, test := range []struct {
		address string
		want    Status
		text    string
	}{
		{"127.0.0.1:0", OK, "free"},
		{strings.TrimPrefix(remora.URL, "http://"), OK, "in use by a Remora"},
		{strings.TrimPrefix(other.URL, "http://"), Failed, "not by a Remora"},
		{"192.0.2.1:1", Failed, "listen"},
	} {
		for _, live := range []func(context.Context, string) error{AskLive, AskControl} {
			f := Address(t.Context(), "listen", test.address, live)
			if f.Status != test.want || !strings.Contains(f.Text, test.text) || (f.Fix == "") != (f.Status == OK) {
				t.Errorf("%s: got %+v", test.address, f)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	const base = "http://127.0.0.1:8787"
	for _, test := range []struct {
		name      string
		vars      map[string]string
		programs  []string
		files     map[string]string
		forward   string
		loops     bool
		want, not []string // "status subject: text", parts of them
	}{
		{name: "nothing"},
		{name: "leads to Remora", vars: map[string]string{"ANTHROPIC_BASE_URL": base + "/", "OPENAI_BASE_URL": base + "/v1"},
			want: []string{"ok ANTHROPIC_BASE_URL: leads to Remora", "ok OPENAI_BASE_URL: leads to Remora"}},
		{name: "leads elsewhere", vars: map[string]string{"OPENAI_BASE_URL": "https://me:hush@llm.example/v1"},
			want: []string{"warning OPENAI_BASE_URL: leads to llm.example, not to Remora"}, not: []string{"hush"}},
		{name: "another path", vars: map[string]string{"OPENAI_BASE_URL": "http://localhost:8787"}, want: []string{"warning OPENAI_BASE_URL: leads to Remora with another path"}},
		{name: "no URL", vars: map[string]string{"OPENAI_API_BASE": "hush"}, want: []string{"warning OPENAI_API_BASE: is not a URL"}, not: []string{"hush"}},
		{name: "missing", programs: []string{"claude"}, want: []string{"warning ANTHROPIC_BASE_URL: not set here, and Claude Code is installed"}, not: []string{"OPENAI"}},
		{name: "a file that is missing", programs: []string{"codex"}, want: []string{"warning Codex: installed, and ~/.codex/config.toml does not name " + base}},
		{name: "a file with another address", programs: []string{"codex"}, files: map[string]string{"/home/ann/.codex/config.toml": `x = "hush"`},
			want: []string{"warning Codex: "}, not: []string{"hush"}},
		{name: "a file", programs: []string{"codex", "opencode"},
			files: map[string]string{"/home/ann/.codex/config.toml": `openai_base_url = "` + base + `/v1"`, "opencode.json": `{"baseURL":"http://localhost:8787/v1"}`},
			want:  []string{"ok Codex: /home/ann/.codex/config.toml leads to Remora", "ok OpenCode: opencode.json leads to Remora"}},
		{name: "a key in a table", programs: []string{"codex"},
			files: map[string]string{"/home/ann/.codex/config.toml": "# " + base + "\n[projects.x]\nopenai_base_url = \"" + base + "/v1\""},
			want:  []string{"warning Codex: /home/ann/.codex/config.toml names " + base + " only where Codex does not read it"}},
		{name: "the reverse listener as a proxy", vars: map[string]string{"HTTPS_PROXY": "http://127.0.0.1:8787"}, want: []string{"failed HTTPS_PROXY: "}},
		{name: "a proxy", vars: map[string]string{"HTTPS_PROXY": "http://me:hush@proxy.example:3128"},
			want: []string{"warning HTTPS_PROXY: leads to proxy.example:3128, and agents may"}, not: []string{"hush"}},
		{name: "a proxy with an exception", vars: map[string]string{"HTTPS_PROXY": "proxy.example:3128", "no_proxy": "a, 127.0.0.1"},
			want: []string{"ok HTTPS_PROXY: leads to proxy.example:3128"}},
		{name: "the forward listener", forward: "127.0.0.1:8789", programs: []string{"claude"},
			vars: map[string]string{"HTTPS_PROXY": "http://localhost:8789", "NODE_EXTRA_CA_CERTS": "/ca.pem"}, files: map[string]string{"/ca.pem": "AUTHORITY\n"},
			want: []string{"ok HTTPS_PROXY: leads to Remora's forward", "ok NODE_EXTRA_CA_CERTS: has the"}, not: []string{"warning", "failed"}},
		{name: "a loop", forward: "127.0.0.1:8789", loops: true, vars: map[string]string{"https_proxy": "http://127.0.0.1:8789"},
			want: []string{"failed https_proxy: leads to Remora's forward listener, and Remora uses it"}},
		{name: "nobody trusts the authority", forward: "127.0.0.1:8789", vars: map[string]string{"HTTPS_PROXY": "http://127.0.0.1:8789"},
			files: map[string]string{"/ca.pem": "AUTHORITY\n"}, want: []string{"warning certificate authority: agents go through"}},
		{name: "another authority", forward: "127.0.0.1:8789", files: map[string]string{"/ca.pem": "AUTHORITY\n", "/other.pem": "OTHER\n"},
			vars: map[string]string{"HTTPS_PROXY": "http://127.0.0.1:8789", "SSL_CERT_FILE": "/other.pem"}, want: []string{"warning SSL_CERT_FILE: names a file without"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := Environment{
				Getenv: func(name string) string { return test.vars[name] },
				Look: func(program string) (string, error) {
					if slices.Contains(test.programs, program) {
						return "/bin/" + program, nil
					}
					return "", os.ErrNotExist
				},
				Read: func(path string) ([]byte, error) {
					if text, ok := test.files[path]; ok {
						return []byte(text), nil
					}
					return nil, os.ErrNotExist
				},
				Home: "/home/ann", Base: base, Forward: test.forward, CACert: "/ca.pem", ProxyFromEnvironment: test.loops,
			}.Findings()
			var all strings.Builder
			for _, f := range found {
				all.WriteString(string(f.Status) + " " + f.Subject + ": " + f.Text + " -> " + f.Fix + "\n")
				if (f.Fix == "") != (f.Status == OK) {
					t.Errorf("a fix where there is nothing to do, or none: %+v", f)
				}
			}
			for _, want := range test.want {
				if !strings.Contains(all.String(), want) {
					t.Errorf("%q is missing in\n%s", want, all.String())
				}
			}
			for _, not := range test.not {
				if strings.Contains(all.String(), not) {
					t.Errorf("%q is in\n%s", not, all.String())
				}
			}
			if len(test.want) == 0 && len(found) > 0 {
				t.Errorf("found\n%s", all.String())
			}
		})
	}
}
