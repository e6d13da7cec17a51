package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/fence"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// record hands in a receipt of a user, and returns its id.
func (r *rig) record(scope storage.Scope, more func(*receipt.Receipt)) string {
	x := &receipt.Receipt{At: storage.TimeOf(time.Now()), Scope: scope, Status: "hit", Model: "m-1", Conversation: "c1"}
	if more != nil {
		more(x)
	}
	r.receipts.Record(x)
	return x.ID
}

func TestExchanges(t *testing.T) {
	r := newService(t)
	known := r.add(t, "user=ada", "My boat is called Marbella.", nil)
	old := r.add(t, "user=ada", "I live in Porto.", object{"eventTime": "2026-01-01"})
	r.add(t, "user=ada", "I live in Lisbon.", object{"eventTime": "2026-02-01"})
	scope := localScope("ada")
	full := r.record(scope, func(x *receipt.Receipt) {
		x.Query, x.Code, x.Client, x.Upstream, x.Dialect, x.Turn = "Is the boat in Porto, where I live?", 200, "codex", "openai", "chat", "abc"
		line := "- My boat is called Marbella.\n"
		x.Inserted = []receipt.Insertion{{Placement: "user", Message: 1, Offset: 7, Text: line, Spans: []fence.Span{{ID: known.ID, Start: 0, End: len(line)}}}}
		x.Candidates = []receipt.Candidate{
			{ID: known.ID, Kind: "fact", Score: 2, Inserted: true, Parts: []receipt.Part{{Name: "user", Term: "boat", Value: 2}}}, {ID: "gone", Score: 1, Reason: "gate"},
		}
		x.Considered, x.Relevance, x.Gate, x.Vectors = 3, .8, .4, "off"
		x.Usage, x.Times = receipt.Usage{Input: 9, Output: 2, CacheRead: 5, Saved: 4, Added: 8}, receipt.Times{Plan: 10, Recall: 5, FirstByte: 20, Total: 30}
	})
	for i := range 5 {
		r.record(scope, func(x *receipt.Receipt) {
			x.Status, x.Model, x.Conversation = []string{"miss", "off"}[i%2], []string{"m-1", "m-2"}[i%2], "c2"
		})
	}
	count := func(query string) (n int) {
		for cursor := ""; ; {
			page := get[api.Exchanges](t, r.send(t, "GET", "/v1/exchanges?user=ada&limit=2&"+query+"&cursor="+cursor, nil))
			n += len(page.Exchanges)
			if cursor = page.Next; cursor == "" {
				return n
			}
		}
	}
	r.eventually(t, func() bool { return count("") == 6 })
	for query, want := range map[string]int{
		"status=miss": 3, "status=off": 2, "status=hit": 1, "model=m-1": 4, "conversation=c1": 1, "conversation=c2": 5, "memory=" + known.ID: 1, "memory=none": 0,
		"status=miss&model=m-2": 0,
	} {
		if got := count(query); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	x := get[api.Exchange](t, r.send(t, "GET", "/v1/exchanges/"+full+"?user=ada", nil))
	if x.ID != full || x.User != "ada" || x.Time == "" || x.Usage.Input != 9 || len(x.Inserted) != 1 || len(x.Memories) != 1 || x.Memories[0].ID != known.ID {
		t.Errorf("exchange %+v", x)
	}
	if !slices.ContainsFunc(x.Unrecallable, func(u api.Turned) bool { return u.ID == old.ID && u.Reason == api.StateSuperseded }) {
		t.Errorf("never recalled: %+v", x.Unrecallable)
	}
	for _, id := range []string{"none", "uses", strings.Repeat("x", 300), full + "0"} {
		r.send(t, "GET", "/v1/exchanges/"+id+"?user=ada", nil).problem(t, 404, "not-found", "")
	}
	r.send(t, "GET", "/v1/exchanges/"+full+"?user=ben", nil).problem(t, 404, "not-found", "")
	if got := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+known.ID, nil)); got.Uses.Count != 1 {
		t.Errorf("uses %+v", got.Uses)
	}

	off := newRig(t, options{who: local(), noReceipts: true})
	for _, path := range []string{"/v1/exchanges", "/v1/exchanges/x", "/v1/exchanges/watch"} {
		off.send(t, "GET", path, nil).problem(t, 501, "not-implemented", "")
	}
	if got := get[api.Memory](t, off.send(t, "GET", "/v1/memories/"+off.add(t, "", "I sail.", nil).ID, nil)); got.Uses != nil && got.Uses.Count != 0 {
		t.Errorf("uses %+v", got.Uses)
	}
}

// watch opens the stream and returns its lines, until the test ends.
func (r *rig) watch(t *testing.T, query string) <-chan string {
	t.Helper()
	server := httptest.NewServer(r.handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	local := r.newRequest(t, "GET", "/v1/exchanges/watch?"+query, nil)
	req, err := http.NewRequestWithContext(ctx, "GET", server.URL+local.URL.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = local.Header
	began := time.Now()
	resp, err := http.DefaultClient.Do(req) // returns as soon as the stream has begun
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stream began after %s", took)
	}
	r.checkContract(t, local, nil, answer{"GET /v1/exchanges/watch", resp.StatusCode, resp.Header, ""})
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q", resp.StatusCode, got)
	}
	out := make(chan string, 100)
	go func() {
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			out <- s.Text()
		}
		close(out)
	}()
	if first := <-out; !strings.HasPrefix(first, ":") {
		t.Fatalf("the stream begins with %q", first)
	}
	return out
}

// A watcher sees the exchanges of its own tenant, user and project as they come,
// and no others.
func TestWatch(t *testing.T) {
	y := newTenancy(t)
	_, partA := y.tenant(t, keyA)
	_, partB := y.tenant(t, keyB)
	scope := func(tenant, user string) storage.Scope {
		return storage.Scope{Tenant: tenant, App: "default", Project: "default", User: user}
	}
	key := y.with("Authorization", "Bearer "+keyA)
	streams := map[string]<-chan string{
		"the key": key.watch(t, ""), "the key, of ada": key.watch(t, "user=ada"), "bound to ada": y.with("Authorization", "Bearer "+keyA, "X-User-Id", "ada").watch(t, ""),
		"the admin": y.watch(t, ""), "the admin, of a tenant": y.watch(t, "tenant="+y.tenantA), "the other key": y.with("Authorization", "Bearer "+keyB).watch(t, ""),
	}
	ada, ben, bea := y.record(scope(partA, "ada"), nil), y.record(scope(partA, "ben"), nil), y.record(scope(partB, "bea"), nil)
	for who, want := range map[string][]string{
		"the key": {ada, ben}, "the key, of ada": {ada}, "bound to ada": {ada}, "the admin": {ada, ben, bea}, "the admin, of a tenant": {ada, ben}, "the other key": {bea},
	} {
		var got []string
		name := ""
		for len(got) < len(want) {
			select {
			case line := <-streams[who]:
				if v, ok := strings.CutPrefix(line, "event: "); ok {
					name = v
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					var x api.Exchange
					if err := json.Unmarshal([]byte(data), &x); err != nil || name != "exchange" || x.Status != "hit" {
						t.Errorf("%s: event %s: %v: %s", who, name, err, data)
					}
					got = append(got, x.ID)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: has seen %q of %q", who, got, want)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: has seen %q, want %q", who, got, want)
		}
		select {
		case line := <-streams[who]:
			if line != "" {
				t.Errorf("%s: has seen more: %q", who, line)
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	key.send(t, "GET", "/v1/exchanges/watch?tenant=other", nil).problem(t, 404, "not-found", "")
	y.with("Authorization", "Bearer "+keyWrong).send(t, "GET", "/v1/exchanges/watch", nil).problem(t, 401, "unauthorized", "")
}

// There are only so many watchers.
func TestWatchersAreLimited(t *testing.T) {
	r := newService(t)
	for range receipt.MaxWatchers {
		_, stop, err := r.receipts.Watch()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	r.send(t, "GET", "/v1/exchanges/watch", nil).problem(t, 429, "too-many", "")
}
