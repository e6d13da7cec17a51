package page

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// serverEvent is an event as a browser reads it.
type serverEvent struct{ ID, Event, Data string }

// readEvents reads a stream as the standard says: a line ends with CR, LF or
// both; an event ends with an empty line.
func readEvents(stream string) (out []serverEvent) {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream), "\n")
	var e serverEvent
	var data []string
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if len(data) > 0 {
				e.Data = strings.Join(data, "\n")
				out = append(out, e)
			}
			e, data = serverEvent{}, nil
		case name == "id":
			e.ID = value
		case name == "event":
			e.Event = value
		case name == "data":
			data = append(data, value)
		}
	}
	return out
}

func TestWriteEvent(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"one line", "<li>a</li>", "<li>a</li>"},
		{"several lines", "<li>\n  a\n</li>", "<li>\n  a\n</li>"},
		{"an empty line between", "a\n\nb", "a\n\nb"},
		{"all ends of lines", "a\rb\r\nc\nd", "a\nb\nc\nd"},
		{"a field of its own", "a\nevent: other\nid: 7\n\ndata: b", "a\nevent: other\nid: 7\n\ndata: b"},
		{"spaces at the beginning", "  a\n b", "  a\n b"},
		{"a colon", ": a", ": a"},
		{"ends with a line", "a\n", "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			writeEvent(&b, "exchange", "x1", tt.data)
			writeEvent(&b, "exchange", "x2", "next")
			want := []serverEvent{{"x1", "exchange", tt.want}, {"x2", "exchange", "next"}}
			if diff := cmp.Diff(want, readEvents(b.String())); diff != "" {
				t.Errorf("(-want +got):\n%s\nof %q", diff, b.String())
			}
		})
	}
	var b bytes.Buffer
	writeEvent(&b, "a\nb", "x\r\nid: y\x00", "z")
	if diff := cmp.Diff([]serverEvent{{"xid: y", "ab", "z"}}, readEvents(b.String())); diff != "" {
		t.Errorf("names with ends of lines (-want +got):\n%s", diff)
	}
}

func TestLiveTarget(t *testing.T) {
	ada, bob := api.User{Tenant: "local", App: "default", Project: "default", User: "ada"}, api.User{Tenant: "k1", App: "cli", Project: "default", User: "bob"}
	for _, tt := range []struct {
		name   string
		asked  api.Target
		people []api.User
		more   bool
		want   api.Target
	}{
		{name: "everybody", people: []api.User{ada, bob}},
		{name: "as another view names her", asked: targetOf(ada), people: []api.User{ada}, want: api.Target{User: "ada"}},
		{name: "one of several tenants", asked: targetOf(ada), people: []api.User{ada, bob}, want: api.Target{Tenant: "local", User: "ada"}},
		{name: "more people than are known", asked: targetOf(ada), people: []api.User{ada}, more: true, want: api.Target{Tenant: "local", User: "ada"}},
		{name: "an app", asked: targetOf(bob), people: []api.User{bob}, want: api.Target{App: "cli", User: "bob"}},
		{name: "a project alone", asked: api.Target{Project: "p"}, people: []api.User{ada}, want: api.Target{Project: "p"}},
	} {
		if got := liveTarget(tt.asked, tt.people, tt.more); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// What a browser has missed is known by when exchanges ended.
func TestEndOf(t *testing.T) {
	x := api.Exchange{Receipt: receipt.Receipt{ID: "x0000000003e8" + "0001aabbccddeeff", At: 1000, Times: receipt.Times{Total: 2_500_000}}}
	if got := endOf(&x); got != 3500 {
		t.Errorf("the end: got %d, want 3500", got)
	}
	for id, want := range map[string]int64{x.ID: 1000, "": 0, "x12": 0, "xzzzzzzzzzzzz0001": 0} {
		if got := startOf(id); got != want {
			t.Errorf("the start of %q: got %d, want %d", id, got, want)
		}
	}
}

// watched opens the stream and returns the ids of its events as they come.
func watched(t *testing.T, server, query, last string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/live/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("status %d, %s", res.StatusCode, got)
	}
	ids := make(chan string, 100)
	go func() {
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				ids <- id
			}
		}
	}()
	return ids
}

// TestStreamAfter opens the stream after an exchange that the browser has seen:
// what was over later is sent, also if it had begun before.
func TestStreamAfter(t *testing.T) {
	r := newRig(t)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	began := time.Now().Add(-10 * time.Minute)
	record := func(user string, after, took time.Duration) string {
		x := &receipt.Receipt{
			At: storage.TimeOf(began.Add(after)), Scope: storage.Scope{Tenant: "local", App: "default", Project: "default", User: user},
			Status: "empty", Query: "a\nb", Times: receipt.Times{Total: took.Microseconds()},
		}
		r.service.Receipts.Record(x)
		return x.ID
	}
	old := record("ada", -2*time.Minute, time.Second)
	long := record("ada", -time.Minute, 3*time.Minute)
	seen := record("ada", 0, 0)
	later := record("bob", time.Minute, time.Second)
	kept(t, r, 4)
	everybody := watched(t, server.URL, "", seen)
	ada := watched(t, server.URL, "?user=ada", seen)
	fresh := watched(t, server.URL, "?since=99999999999999", "")
	now := record("ada", 2*time.Minute, time.Second)
	for name, tt := range map[string]struct {
		ids  <-chan string
		want []string
	}{
		"everybody":                 {everybody, []string{long, seen, later, now}},
		"one user":                  {ada, []string{long, seen, now}},
		"a list that was just read": {fresh, []string{now}},
	} {
		var got []string
		for len(got) == 0 || got[len(got)-1] != now {
			got = append(got, <-tt.ids)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q (not %q)", name, got, tt.want, old)
		}
	}
}

// kept returns once so many exchanges are listed.
func kept(t *testing.T, r *rig, n int) {
	t.Helper()
	for {
		page, err := r.service.Recent(t.Context(), api.Principal{Admin: true}, api.Target{}, api.ExchangeFilter{}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Exchanges) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLiveSays looks for what the list says when it is not all there is.
func TestLiveSays(t *testing.T) {
	r := newRig(t)
	key := []string{"Authorization", "Bearer " + adminToken}
	says := func(target, want string) {
		t.Helper()
		if res, body := r.send(t, target, nil, key...); res.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d without %q", target, res.StatusCode, want)
		}
	}
	says("/", "OPENAI_BASE_URL=http://127.0.0.1:8787/v1")
	says("/?user=ada", "No exchange matches yet")
	says("/?cursor=x", "cursor")
	const users = 51
	for i := range users {
		scope := storage.Scope{Tenant: "local", App: "default", Project: "default", User: "user" + strconv.Itoa(i)}
		r.service.Receipts.Record(&receipt.Receipt{At: storage.TimeOf(time.Now()), Scope: scope, Status: "empty"})
	}
	kept(t, r, users-1)
	says("/", "There are more than 50 users")
	says("/?user=user7", "a question that is not kept")

	r.service.Receipts = nil
	says("/", "api.receipts")
	if res, _ := r.send(t, "/live/events", nil, key...); res.StatusCode != http.StatusNotImplemented {
		t.Errorf("the stream: status %d", res.StatusCode)
	}
}
