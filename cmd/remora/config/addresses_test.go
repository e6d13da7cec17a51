package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReaches: where requests would come back to Remora, and where they only
// seem to.
func TestReaches(t *testing.T) {
	for _, test := range []struct {
		url, listen string
		want        bool
	}{
		{"http://127.0.0.1:8787", "127.0.0.1:8787", true},
		{"http://127.0.0.1:8787/v1", "0.0.0.0:8787", true},
		{"http://localhost:8787", "127.0.0.1:8787", true},
		{"http://LOCALHOST:8787", "[::1]:8787", true},
		{"http://[::1]:8787", ":8787", true},
		{"http://0.0.0.0:8787", "127.0.0.1:8787", true},
		{"http://127.0.0.1:8787", "localhost:8787", true},
		{"http://127.0.0.1", "127.0.0.1:80", true},
		{"https://localhost", ":443", true},
		{"http://192.0.2.1:8787", "192.0.2.1:8787", true},
		{"http://[::1]:8787", "[::]:8787", true},
		{"http://127.0.0.1:11434", "127.0.0.1:8787", false},
		{"http://localhost:8787", "127.0.0.2:8787", false},
		{"http://0.0.0.0:8787", "127.0.0.2:8787", false},
		{"http://127.0.0.2:8787", "localhost:8787", false},
		{"http://[::1]:8787", "0.0.0.0:8787", false},
		{"http://127.0.0.2:8787", "127.0.0.1:8787", false},
		{"http://[::1]:8787", "127.0.0.1:8787", false},
		{"http://127.0.0.1:8787", "192.0.2.1:8787", false},
		{"http://llm.internal:8787", "0.0.0.0:8787", false},
		{"http://127.0.0.1:0", "127.0.0.1:0", false},
		{"http://", "127.0.0.1:80", false},
		{"http://127.0.0.1", "", false},
	} {
		if got := reaches(hostPort(test.url), test.listen); got != test.want {
			t.Errorf("%s, listening on %s: got %v", test.url, test.listen, got)
		}
	}
}

// TestOwnAddresses: a listener on another's address, and an upstream that is
// a listener, are reported by their keys.
func TestOwnAddresses(t *testing.T) {
	for _, test := range []struct {
		flags Overrides
		want  string // "" = nothing is wrong
	}{
		{Overrides{}, ""},
		{Overrides{Forward: "127.0.0.1:8788"}, ""},
		{Overrides{Forward: "127.0.0.1:8787"}, "forward.listen: must not be the address of listen (127.0.0.1:8787) (--forward)"},
		{Overrides{Forward: "localhost:9000", Listen: "[::]:9000"}, "forward.listen: must not be the address of listen ([::]:9000) (--forward)"},
		{Overrides{Upstream: "http://127.0.0.1:8787/v1"}, "upstreams[0].url: must not be Remora's own address, listen (127.0.0.1:8787)"},
		{Overrides{Upstream: "http://localhost:8789", Forward: "127.0.0.1:8789"}, "upstreams[0].url: must not be Remora's own address, forward.listen (127.0.0.1:8789)"},
	} {
		_, err := Load(test.flags, environment(), testPlace())
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: got %v, want %q", test.flags, err, test.want)
		}
	}
}

// TestAuthoritiesOfUpstreams: a file that is not there is told of by its key to
// who reaches for upstreams, and keeps nobody from forgetting.
func TestAuthoritiesOfUpstreams(t *testing.T) {
	file := writeFile(t, `{"upstreams": [{"name": "u", "url": "https://llm.internal", "paths": ["/"],
"caFile": "`+filepath.ToSlash(filepath.Join(t.TempDir(), "none.pem"))+`"}]}`)
	_, err := Load(Overrides{File: file, Serves: true}, environment(), testPlace())
	if err == nil || !strings.Contains(err.Error(), "upstreams[0].caFile: ") || !strings.Contains(err.Error(), "none.pem") || !strings.Contains(err.Error(), "config.json:") {
		t.Errorf("got %v, want the key, the file and the line", err)
	}
	if _, err := Load(Overrides{File: file}, environment(), testPlace()); err != nil {
		t.Error(err)
	}
}
