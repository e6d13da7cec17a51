package httpclient

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testUpstream(t *testing.T, url string, paths ...string) *Upstream {
	t.Helper()
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	up, err := openUpstream(UpstreamConfig{Name: "up", URL: url, Paths: paths}, DefaultTransportConfig())
	if err != nil {
		t.Fatal(err)
	}
	return up
}

func TestUpstreamTarget(t *testing.T) {
	tests := []struct{ base, sent, want string }{
		{"https://host", "/v1/chat/completions", "/v1/chat/completions"},
		{"https://host/", "/v1/chat/completions", "/v1/chat/completions"},
		{"https://host/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"https://host/v1/", "/v1/models", "/v1/models"},
		{"https://host/v1", "/v1", "/v1"},
		{"https://host/v1", "/v1x/models", "/v1/v1x/models"},
		{"https://host/v1", "/models", "/v1/models"},
		{"https://host/openai/v1", "/v1/models", "/openai/v1/models"},
		{"https://host/openai/v1", "/openai/v1/models", "/openai/v1/models"},
		{"https://host/api/v1/v1", "/v1/v1/v1/x", "/api/v1/v1/v1/x"},
		{"https://host/a%2Fb", "/c", "/a%2Fb/c"},
		{"https://host", "/a%2Fb/%zz", ""}, // net/http refuses it
		{"https://host", "/a%2Fb%20c;p=1,2/@:&=+$!*'()~", "/a%2Fb%20c;p=1,2/@:&=+$!*'()~"},
		{"https://host", "/%7Euser/%41", "/%7Euser/%41"},
		{"https://host", `/x|y^z"q[1]{2}`, `/x|y^z"q[1]{2}`},
		{"https://host", "//v1//models/", "//v1//models/"},
		{"https://host", "//v1%2Fx//", "//v1%2Fx//"},
		{"https://host/v1", "//v1/models", "/v1//v1/models"},
		{"https://host", "/a/../b/./c", "/a/../b/./c"},
		{"https://host", "/x?", "/x?"},
		{"https://host", "/x?q", "/x?q"},
		{"https://host", "/x?a=1&a=2;b=%20+&&=", "/x?a=1&a=2;b=%20+&&="},
		{"https://host", "/x?a=?/#&%zz", "/x?a=?/#&%zz"},
		{"https://host", "/x?ü", "/x?ü"},
		{"https://host", "/", "/"},
		{"https://host/v1", "/", "/v1/"},
		{"https://host", "http://evil.example/v1/models?x=1", "/v1/models?x=1"},
		{"https://host/v1", "http://evil.example/v1/models?x=1", "/v1/models?x=1"},
	}
	for _, tt := range tests {
		t.Run(tt.base+" "+tt.sent, func(t *testing.T) {
			in, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + tt.sent + " HTTP/1.1\r\nHost: other.example\r\n\r\n")))
			if err != nil {
				if tt.want != "" {
					t.Fatal(err)
				}
				return
			}
			u, ok := testUpstream(t, tt.base).target(in)
			if !ok {
				t.Fatal("no target")
			}
			if got := u.RequestURI(); got != tt.want {
				t.Errorf("target: got %q, want %q", got, tt.want)
			}
			if u.Host != "host" || u.Scheme != "https" {
				t.Errorf("got %s://%s, want https://host", u.Scheme, u.Host)
			}
		})
	}
}

func TestTargetWithSpaces(t *testing.T) {
	in, err := http.NewRequest(http.MethodGet, "http://door/", nil)
	if err != nil {
		t.Fatal(err)
	}
	in.RequestURI = "/a b?c d HTTP/1.1" // as HTTP/2 can carry it
	in.URL.Path, in.URL.RawQuery = "/a b", "c d HTTP/1.1"
	u, ok := testUpstream(t, "http://host").target(in)
	if got, want := u.RequestURI(), "/a%20b?c%20d%20HTTP/1.1"; !ok || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTargetWithoutPath(t *testing.T) {
	in, err := http.ReadRequest(bufio.NewReader(strings.NewReader("CONNECT host:443 HTTP/1.1\r\nHost: host\r\n\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := testUpstream(t, "http://host").target(in); ok {
		t.Errorf("got target %v, want none", u)
	}
}

func TestRoute(t *testing.T) {
	r, err := OpenRouter([]UpstreamConfig{
		{Name: "rest", URL: "http://rest", Paths: []string{"/"}},
		{Name: "anthropic", URL: "http://a", Paths: []string{"/v1/messages"}},
		{Name: "batches", URL: "http://b", Paths: []string{"/v1/messages/batches/"}},
	}, DefaultTransportConfig())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/v1/messages":               "anthropic",
		"/v1/messages/":              "anthropic",
		"/v1/messages/count_tokens":  "anthropic",
		"/v1/messagesx":              "rest",
		"/v1/message":                "rest",
		"/v1/messages%2Fcount":       "rest",
		"/v1/messages/batches":       "batches",
		"/v1/messages/batches/1":     "batches",
		"/v1/messages/batchesx":      "anthropic",
		"/":                          "rest",
		"/v1/chat/completions":       "rest",
		"/other/v1/messages":         "rest",
		"//v1/messages":              "rest",
		"/V1/messages":               "rest",
		"/v1/messages/../completion": "anthropic",
	} {
		if got := r.Route(requestFor(path, nil)); got == nil || got.Name != want {
			t.Errorf("route(%q): got %v, want %s", path, got, want)
		}
	}
	only, err := OpenRouter([]UpstreamConfig{{Name: "a", URL: "http://a", Paths: []string{"/v1"}}}, DefaultTransportConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got := only.Route(requestFor("/v2", nil)); got != nil {
		t.Errorf("route(/v2): got %v, want none", got)
	}
}

// Paths that several APIs have go to whom the client speaks to.
func TestRouteByHeader(t *testing.T) {
	r, err := OpenRouter(DefaultUpstreams(), DefaultTransportConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path   string
		header http.Header
		want   string
	}{
		{"/v1/models", nil, "openai"},
		{"/v1/models", http.Header{"Anthropic-Version": {"2023-06-01"}}, "anthropic"},
		{"/v1/messages", nil, "anthropic"},
		{"/v1/files", http.Header{"X-Api-Key": {"k"}}, "openai"},
	} {
		if got := r.Route(requestFor(tt.path, tt.header)); got == nil || got.Name != tt.want {
			t.Errorf("route(%s, %v): got %v, want %s", tt.path, tt.header, got, tt.want)
		}
	}
	// A path of its own wins over a header.
	r, err = OpenRouter(append(DefaultUpstreams(), UpstreamConfig{Name: "own", URL: "http://own", Paths: []string{"/v1/models"}}), DefaultTransportConfig())
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Route(requestFor("/v1/models/m", http.Header{"Anthropic-Version": {"x"}})); got == nil || got.Name != "own" {
		t.Errorf("got %v, want own", got)
	}
	err = ValidateUpstreams([]UpstreamConfig{
		{Name: "a", URL: "http://a", Paths: []string{"/"}, Headers: []string{"X-A", "x-remora-user", "a b"}},
		{Name: "b", URL: "http://b", Paths: []string{"/b"}, Headers: []string{"x-a"}},
	})
	if n := len(unjoin(err)); n != 3 {
		t.Errorf("%d problems, want 3: %v", n, err)
	}
}

func TestValidateUpstreams(t *testing.T) {
	if err := ValidateUpstreams(DefaultUpstreams()); err != nil {
		t.Errorf("defaults: %v", err)
	}
	err := ValidateUpstreams([]UpstreamConfig{
		{Name: "", URL: "ftp://x", Paths: nil},
		{Name: "a", URL: "https://user:sk-secret@host", Paths: []string{"v1", "/a?b"}},
		{Name: "a", URL: "https://host/?key=sk-secret", Paths: []string{"/", "/x"}},
		{Name: "b", URL: "https://:443/", Paths: []string{"/x/"}},
		{Name: "c", URL: "http://a,http://b", Paths: []string{"/y/"}},
	})
	want := []string{
		`upstreams[0].name: must not be empty`,
		`upstreams[0].url: must begin with http:// or https://`,
		`upstreams[0].paths: must name at least one prefix; "/" takes every path`,
		`upstreams[1].url: must not hold a user or password`,
		`upstreams[1].paths[0]: must begin with / and hold no ?, # or space`,
		`upstreams[1].paths[1]: must begin with / and hold no ?, # or space`,
		`upstreams[2].url: must not hold a query or fragment`,
		`upstreams[2].name: is that of upstreams[1]`,
		`upstreams[3].url: must name a host`,
		`upstreams[3].paths[0]: is taken by upstreams[2]`,
		`upstreams[4].url: must be one URL: several are upstreams of their own`,
	}
	var got []string
	for _, e := range unjoin(err) {
		got = append(got, e.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if strings.Contains(err.Error(), "sk-secret") {
		t.Error("the error quotes the URL")
	}
	if got := unjoin(ValidateUpstreams(nil)); len(got) != 1 {
		t.Errorf("no upstreams: got %v, want one problem", got)
	}
}

// requestFor returns a request as a server has it.
func requestFor(target string, h http.Header) *http.Request {
	return &http.Request{RequestURI: target, URL: &url.URL{}, Header: h}
}
