package httpclient

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCleanRequest(t *testing.T) {
	tests := []struct {
		name     string
		in, want http.Header
	}{
		{
			name: "end to end headers stay, repeated, empty and odd ones too",
			in: http.Header{
				"Authorization": {"Bearer k"}, "Accept-Encoding": {"br, gzip;q=0.5"}, "X-Empty": {""}, "X-Many": {"a", "b, c", "a"},
				"User-Agent": {"agent/1"}, "X-Forwarded-For": {"203.0.113.7"}, "Forwarded": {"for=a"}, "Via": {"1.1 x"}, "Cookie": {"a=b"},
				"Expect": {"100-continue"}, "Content-Length": {"3"},
			},
			want: http.Header{
				"Authorization": {"Bearer k"}, "Accept-Encoding": {"br, gzip;q=0.5"}, "X-Empty": {""}, "X-Many": {"a", "b, c", "a"},
				"User-Agent": {"agent/1"}, "X-Forwarded-For": {"203.0.113.7"}, "Forwarded": {"for=a"}, "Via": {"1.1 x"}, "Cookie": {"a=b"},
				"Expect": {"100-continue"}, "Content-Length": {"3"},
			},
		},
		{
			name: "no user agent is invented",
			in:   http.Header{"Accept": {"*/*"}},
			want: http.Header{"Accept": {"*/*"}, "User-Agent": nil},
		},
		{
			name: "hop by hop",
			in: http.Header{
				"Connection": {"keep-alive"}, "Keep-Alive": {"timeout=5"}, "Proxy-Connection": {"keep-alive"},
				"Proxy-Authenticate": {"Basic"}, "Proxy-Authorization": {"Basic x"}, "Te": {"gzip"}, "Transfer-Encoding": {"chunked"},
				"Upgrade": {"h2c"}, "Http2-Settings": {"AAMAAABkAAQAAP__"}, "User-Agent": {"a"},
			},
			want: http.Header{"User-Agent": {"a"}},
		},
		{
			name: "what Connection names, in any case and several lists",
			in: http.Header{
				"Connection": {"close, x-One", " X-TWO ,, x-three"}, "X-One": {"1"}, "X-Two": {"2"}, "X-Three": {"3"}, "X-Four": {"4"}, "User-Agent": {"a"},
			},
			want: http.Header{"X-Four": {"4"}, "User-Agent": {"a"}},
		},
		{
			name: "TE keeps trailers alone, though Connection names it",
			in:   http.Header{"Connection": {"TE"}, "Te": {"gzip;q=0.5, Trailers"}, "User-Agent": {"a"}},
			want: http.Header{"Te": {"trailers"}, "User-Agent": {"a"}},
		},
		{
			name: "control headers, in any case",
			in: http.Header{
				"X-Remora-User": {"u"}, "x-remora-memory": {"off"}, "X-REMORA-Anything": {"1"}, "X-Remora": {"stays"}, "User-Agent": {"a"},
			},
			want: http.Header{"X-Remora": {"stays"}, "User-Agent": {"a"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cleanRequest(tt.in)
			if diff := cmp.Diff(tt.want, tt.in); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			cleanRequest(tt.in)
			if diff := cmp.Diff(tt.want, tt.in); diff != "" {
				t.Errorf("cleaned twice (-want +got)\n%s", diff)
			}
		})
	}
}

func TestCopyResponse(t *testing.T) {
	src := http.Header{
		"Content-Type": {"text/event-stream"}, "Date": {"Thu, 01 Jan 2026 00:00:00 GMT"}, "Set-Cookie": {"a=1", "b=2"}, "X-Empty": {""},
		"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Keep-Alive": {"timeout=5"}, "Upgrade": {"h2c"}, "Proxy-Authenticate": {"Basic"},
		"Transfer-Encoding": {"chunked"}, "X-Remora-Status": {"injected"}, "Server": {"up"}, "Content-Encoding": {"gzip"},
	}
	got := http.Header{"X-Remora-Status": {"empty"}}
	CopyResponse(got, src)
	want := http.Header{
		"Content-Type": {"text/event-stream"}, "Date": {"Thu, 01 Jan 2026 00:00:00 GMT"}, "Set-Cookie": {"a=1", "b=2"}, "X-Empty": {""},
		"X-Remora-Status": {"empty"}, "Server": {"up"}, "Content-Encoding": {"gzip"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
