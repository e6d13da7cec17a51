package httpclient

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestAppendFields(t *testing.T) {
	framing := map[string]bool{"Host": true, "User-Agent": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true}
	many := http.Header{}
	for i := range 60 {
		many[fmt.Sprintf("X-%d", i*7%60)] = []string{strings.Repeat("v", i)}
	}
	few := http.Header{}
	for i := range 18 {
		few[fmt.Sprintf("X-%d", i*7%18)] = []string{"v"}
	}
	for _, h := range []http.Header{
		{}, few, many,
		{"B": {"2", "1"}, "A": {""}, "C": nil, "Host": {"x"}, "User-Agent": {"x"}, "Content-Length": {"1"}, "Transfer-Encoding": {"x"}, "Trailer": {"x"}},
		{"A": {" a\t", "a\r\nB: c", "\n", "\u00a0x\u00a0", "\x00"}, "": {"x"}, "A b": {"x"}, "A:": {"x"}, "\xc3\xa9": {"x"}, "a\x7f": {"x"}, "!#$%&'*+-.^_`|~09azAZ": {"x"}},
	} {
		var want bytes.Buffer
		_ = h.WriteSubset(&want, framing)
		room := make([]headField, 24)
		if got := string(appendFields([]byte("GET "), h, room)); got != "GET "+want.String() {
			t.Errorf("got %q, want GET %q", got, want.String())
		}
		for _, f := range room {
			if f.name != "" || f.values != nil {
				t.Errorf("%q stays in the room", f.name)
			}
		}
	}
}

// Each byte by itself: http.Header leaves out the fields that have no token for
// a name.
func TestIsToken(t *testing.T) {
	for c := range 256 {
		name := string([]byte{byte(c)})
		var b strings.Builder
		_ = http.Header{name: {"x"}}.Write(&b)
		if got, want := isToken(name), b.Len() > 0; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
	if isToken("") {
		t.Error("nothing is a token")
	}
}
