package proxy

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
)

// TestStampsDontGoBack: a clock that is put back a little makes nothing older
// than what was said before; one that was an hour ahead is not followed for
// that hour.
func TestStampsDontGoBack(t *testing.T) {
	t.Parallel()
	h := newRig(t).h
	at := time.Now()
	first := h.stamp(at)
	for _, c := range []struct {
		at   time.Time
		same bool
	}{{at.Add(-30 * time.Second), true}, {at.Add(-time.Hour), false}} {
		if got := h.stamp(c.at); (got == first) != c.same || got > first {
			t.Errorf("%s after the first: %d after %d", c.at.Sub(at), got, first)
		}
	}
}

// lines is a log's room.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPathsAreLoggedRedacted: a path that Remora does not know may hold
// anything.
func TestPathsAreLoggedRedacted(t *testing.T) {
	t.Parallel()
	log := &lines{}
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(log, nil))
		d.Redact = func(text string) string { return strings.ReplaceAll(text, "s3cret", "[SECRET]") }
	})
	for _, path := range []string{"/v1/users/s3cret", "/s3cret/v1/chat/completions"} {
		resp, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	for deadline := time.Now().Add(time.Minute); strings.Count(log.String(), "msg=exchange") < 2 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := log.String(); strings.Contains(got, "s3cret") || !strings.Contains(got, "path=/v1/users/[SECRET]") || !strings.Contains(got, "path=/.../v1/chat/completions") {
		t.Errorf("the log says\n%s", got)
	}
}

// What came and what was sent are both logged, and why a request gets no
// memory, once; neither shows what a client sent.
func TestLogTellsWhy(t *testing.T) {
	t.Parallel()
	log := &lines{}
	r := newRig(t, func(c *Config, d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(log, nil))
		c.Upstreams[0].URL += "/v1/x"
	})
	for range 3 {
		r.post(chat("user: q"), "Host", "s3cret.example")
		r.post(chat("user: q"), identity.HeaderUser, "{{S3CRET}}")
	}
	for path, want := range map[string]int{"/.remora/": 404, "/.remora": 404, "/.remora/livez/x": 404, "/.remora/livez": 200} {
		resp, err := http.Get(r.url + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, resp.StatusCode, want)
		}
	}
	for deadline := time.Now().Add(time.Minute); strings.Count(log.String(), "msg=exchange") < 6 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	got := log.String()
	for text, n := range map[string]int{"its Host is not a name of": 1, "in=" + identity.HeaderUser: 1, "sent=/v1/.../v1/chat/completions": 6, "path=/v1/chat/completions": 6, "s3cret": 0, "S3CRET": 0} {
		if strings.Count(got, text) != n {
			t.Errorf("%q is there %d times, want %d:\n%s", text, strings.Count(got, text), n, got)
		}
	}
}
