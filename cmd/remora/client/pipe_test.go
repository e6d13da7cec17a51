package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/api"
)

// pipeTo returns a pipe to a handler in this process.
func pipeTo(h http.HandlerFunc) Pipe {
	return Pipe{Call: func(ctx context.Context, args []byte, out io.Writer) error {
		return Answer(ctx, h, "the token", args, out)
	}}
}

func TestPipeCarriesRequestsAndAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(path, []byte("of the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pipeTo(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("a body of %d bytes, announced as %d, %v", len(body), r.ContentLength, err)
		}
		w.Header().Set("Etag", r.Header.Get("If-Match"))
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // is ignored
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.Host, r.URL.String(), r.Header.Get("Authorization"), string(body)}, " "))
	})
	file, err := openUpload(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body io.Reader
		want string
	}{
		"nothing": {nil, ""},
		"bytes":   {bytes.NewReader([]byte("of bytes")), "of bytes"},
		"a file":  {file, "of the file"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, Local+"/v1/x%2Fy?q=1", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("If-Match", `"v3"`)
			res, err := p.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if want := "POST localhost http://localhost/v1/x%2Fy?q=1 Bearer the token " + tt.want; err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			if res.StatusCode != http.StatusTeapot || res.Header.Get("Etag") != `"v3"` {
				t.Errorf("got status %d and header %v", res.StatusCode, res.Header)
			}
		})
	}
	if _, err := file.file.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is left open: %v", err)
	}
}

// A stream arrives as it is written, and ends when its reader closes it.
func TestPipeStreams(t *testing.T) {
	ended := make(chan struct{})
	p := pipeTo(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		_, _ = io.WriteString(w, "first\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("flush: %v", err)
		}
		<-r.Context().Done()
	})
	c := New(p, Local, "", api.Target{})
	res, err := c.open(t.Context(), ask{method: http.MethodGet, path: "/v1/exchanges/watch"})
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("first\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	default:
		t.Error("the handler still runs after the answer was closed")
	}
}

// What is cut short is no whole answer, and what can't be reached none at all.
func TestPipeFailures(t *testing.T) {
	cut := pipeTo(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"half`)
		panic(http.ErrAbortHandler)
	})
	gone := errors.New("the connection ended")
	dead := Pipe{Call: func(context.Context, []byte, io.Writer) error { return gone }}
	silent := Pipe{Call: func(context.Context, []byte, io.Writer) error { return nil }}
	for name, tt := range map[string]struct {
		p    Pipe
		want string
	}{
		"cut":    {cut, "the answer broke off: the answer was cut short"},
		"dead":   {dead, "can't reach the control plane: the connection ended"},
		"silent": {silent, "can't reach the control plane: there was no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(tt.p, Local, "", api.Target{}).call(t.Context(), ask{method: http.MethodPost, path: "/v1/context"}, nil)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
