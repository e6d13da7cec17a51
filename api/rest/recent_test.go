package rest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// recent returns the ids of all pages of Recent.
func (r *rig) recent(t testing.TB, query string) (ids []string, partial bool) {
	t.Helper()
	for cursor := ""; ; {
		page := get[api.RecentExchanges](t, r.send(t, "GET", "/v1/exchanges/recent?limit=2&"+query+"&cursor="+cursor, nil))
		partial = partial || page.Partial
		for _, x := range page.Exchanges {
			ids = append(ids, x.ID)
		}
		if cursor = page.Next; cursor == "" {
			return ids, partial
		}
	}
}

// The receipts of several users are merged by time, and a caller gets its own.
func TestRecent(t *testing.T) {
	y := newTenancy(t)
	_, partA := y.tenant(t, keyA)
	_, partB := y.tenant(t, keyB)
	shownB, _ := y.tenant(t, keyB)
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	var byTime []string // the oldest first
	record := func(tenant, user string, more func(*receipt.Receipt)) {
		scope := storage.Scope{Tenant: tenant, App: "default", Project: "default", User: user}
		byTime = append(byTime, y.record(scope, func(x *receipt.Receipt) {
			x.At = storage.TimeOf(began.Add(time.Duration(len(byTime)) * time.Minute))
			if more != nil {
				more(x)
			}
		}))
	}
	record(partA, "ada", func(x *receipt.Receipt) { x.Client, x.Upstream = "codex", "openai" })
	record(partA, "ben", func(x *receipt.Receipt) { x.Client, x.Upstream = "claude", "anthropic" })
	record(partB, "bea", nil)
	record(partA, "ada", func(x *receipt.Receipt) { x.Client = "codex" })
	record(partA, "ben", func(x *receipt.Receipt) { x.Upstream = "openai" })
	key := y.with("Authorization", "Bearer "+keyA)
	key.eventually(t, func() bool { ids, _ := y.recent(t, ""); return len(ids) == 6 }) // one was there
	at := func(minute int) string {
		return url.QueryEscape(began.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339))
	}
	newest := func(order ...int) (ids []string) {
		for _, i := range order {
			ids = append(ids, byTime[i])
		}
		return ids
	}
	bound := y.with("Authorization", "Bearer "+keyA, "X-User-Id", "ben")
	for name, tt := range map[string]struct {
		of    *rig
		query string
		want  []string
	}{
		"the admin":             {y.rig, "", newest(4, 3, 2, 1, 0)},
		"the admin, a tenant":   {y.rig, "tenant=" + url.QueryEscape(shownB), newest(2)},
		"a key":                 {key, "", newest(4, 3, 1, 0)},
		"a key, a user":         {key, "user=ada", newest(3, 0)},
		"all parts named":       {key, "user=ada&app=default&project=default", newest(3, 0)},
		"nobody":                {key, "user=zoe", nil},
		"bound to a user":       {bound, "", newest(4, 1)},
		"a client":              {key, "client=codex", newest(3, 0)},
		"an upstream":           {key, "upstream=openai", newest(4, 0)},
		"a client and upstream": {key, "client=claude&upstream=openai", nil},
		"since":                 {key, "since=" + at(1), newest(4, 3, 1)},
		"until":                 {key, "until=" + at(3), newest(1, 0)},
		"between":               {key, "since=" + at(1) + "&until=" + at(4), newest(3, 1)},
	} {
		got, partial := tt.of.recent(t, tt.query)
		got = slices.DeleteFunc(got, func(id string) bool { return id == y.exchanges })
		if !slices.Equal(got, tt.want) || partial {
			t.Errorf("%s: got %q, partial %t, want %q", name, got, partial, tt.want)
		}
		if tt.query == "" || !strings.Contains(tt.query, "user=ada&app") {
			continue
		}
		var listed []string
		for _, x := range get[api.Exchanges](t, tt.of.send(t, "GET", "/v1/exchanges?user=ada&"+strings.ReplaceAll(tt.query, "user=ada&", ""), nil)).Exchanges {
			if x.ID != y.exchanges {
				listed = append(listed, x.ID)
			}
		}
		if !slices.Equal(listed, tt.want) {
			t.Errorf("%s: the list has %q, want %q", name, listed, tt.want)
		}
	}
	listed := get[api.Exchanges](t, key.send(t, "GET", "/v1/exchanges?user=ada&until="+at(3)+"&since="+at(-1), nil)).Exchanges
	if len(listed) != 1 || listed[0].ID != byTime[0] {
		t.Errorf("a list by time has %+v", listed)
	}
	key.send(t, "GET", "/v1/exchanges/recent?tenant=other", nil).problem(t, 404, "not-found", "")
	for query, field := range map[string]string{
		"cursor=x": "cursor", "limit=501": "limit", "since=yesterday": "since", "until=x": "until", "client=" + strings.Repeat("c", 513): "client",
		"upstream=" + strings.Repeat("u", 513): "upstream",
	} {
		key.send(t, "GET", "/v1/exchanges/recent?"+query, nil).problem(t, 422, "invalid", field)
	}
	for _, path := range []string{"/v1/exchanges?user=ada&since=x", "/v1/exchanges/watch?since=x"} {
		key.send(t, "GET", path, nil).problem(t, 422, "invalid", "since")
	}
}

// Of too many users some are left out, and the answer says so.
func TestRecentOfManyUsers(t *testing.T) {
	r := newService(t)
	for i := range 51 {
		r.record(localScope(fmt.Sprint("user", i)), nil)
	}
	r.eventually(t, func() bool { ids, partial := r.recent(t, ""); return len(ids) == 50 && partial })
	if ids, partial := r.recent(t, "user=user7"); len(ids) != 1 || partial {
		t.Errorf("a named user: %q, partial %t", ids, partial)
	}
	b := get[api.Benefit](t, r.send(t, "GET", "/v1/benefit", nil))
	if b.Users != 50 || !b.Partial || b.Totals.Exchanges != 50 {
		t.Errorf("benefit of %d users, partial %t, %d exchanges", b.Users, b.Partial, b.Totals.Exchanges)
	}
}

// A watcher may ask for some exchanges only.
func TestWatchFilters(t *testing.T) {
	r := newService(t)
	stream := r.watch(t, "client=codex&status=injected")
	r.record(localScope("ada"), func(x *receipt.Receipt) { x.Client, x.Status = "claude", "injected" })
	r.record(localScope("ada"), func(x *receipt.Receipt) { x.Client, x.Status = "codex", "empty" })
	want := r.record(localScope("ada"), func(x *receipt.Receipt) { x.Client, x.Status = "codex", "injected" })
	for {
		select {
		case line := <-stream:
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				if id != want {
					t.Errorf("has seen %s, want %s", id, want)
				}
				return
			}
		case <-time.After(20 * time.Second):
			t.Fatal("has seen nothing")
		}
	}
}

// TestSaid reads a conversation around one of its exchanges.
func TestSaid(t *testing.T) {
	r := newService(t)
	scope := localScope("ada")
	at := storage.TimeOf(time.Now().AddDate(0, 0, -1))
	var writes []storage.Write
	for turn := range 5 {
		id, chain := fmt.Sprintf("turn%d", turn), fmt.Sprintf("%032x", turn)
		w := storage.Write{Scope: scope, Turn: id}
		for seq, role := range []storage.Role{storage.RoleUser, storage.RoleAssistant} {
			w.Memories = append(w.Memories, storage.Memory{
				ID: storage.TurnMemoryID(id, seq), Conversation: "c1", Kind: storage.KindEpisode, Trust: 1, Source: "proxy",
				Text: fmt.Sprintf("%d%s", turn, role[:1]), EventTime: at + storage.Time(turn*1000+seq),
				Provenance: storage.Provenance{Turn: id, Chain: chain, Role: role, Seq: seq},
			})
		}
		writes = append(writes, w)
	}
	writes[1].Memories[0].DeletedAt = at
	writes[0].Memories[0].Text = "write to ada@example.com"
	other := storage.Write{Scope: scope, Memories: []storage.Memory{
		{ID: "o", Conversation: "c2", Kind: storage.KindEpisode, Text: "other", Trust: 1, EventTime: at},
		{ID: "f", Conversation: "c1", Kind: storage.KindFact, Text: "fact", Trust: 1, EventTime: at},
	}}
	if err := r.store.Put(t.Context(), append(writes, other)); err != nil {
		t.Fatal(err)
	}
	receiptAt := func(after int, chain int, conversation string) string {
		return r.record(scope, func(x *receipt.Receipt) {
			x.At, x.Conversation, x.Turn = storage.TimeOf(time.Now()), conversation, fmt.Sprintf("%032x", chain)
			if after >= 0 {
				x.At = at + storage.Time(after)
			}
		})
	}
	stored, early, unstored, late, alone := receiptAt(2000, 2, "c1"), receiptAt(1500, 3, "c1"), receiptAt(2500, 99, "c1"), receiptAt(-1, 0, "c1"), receiptAt(2000, 2, "")
	r.eventually(t, func() bool {
		return len(get[api.Exchanges](t, r.send(t, "GET", "/v1/exchanges?user=ada", nil)).Exchanges) == 5
	})
	hidden := get[api.Memory](t, r.send(t, "GET", "/v1/memories/"+storage.TurnMemoryID("turn0", 0)+"?user=ada", nil)).Text
	if strings.Contains(hidden, "@") {
		t.Fatalf("not redacted: %q", hidden)
	}
	for name, tt := range map[string]struct {
		id, limit           string
		before, turn, after []string
	}{
		"stored":                 {stored, "", []string{hidden, "0a", "1a"}, []string{"2u", "2a"}, []string{"3u", "3a", "4u", "4a"}},
		"a few":                  {stored, "&limit=2", []string{"0a", "1a"}, []string{"2u", "2a"}, []string{"3u", "3a"}},
		"a step before the end":  {early, "&limit=1", []string{"2a"}, []string{"3u", "3a"}, []string{"4u"}},
		"of which nothing stays": {unstored, "&limit=3", []string{"1a", "2u", "2a"}, nil, []string{"3u", "3a", "4u"}},
		"long after":             {late, "&limit=1", nil, []string{hidden, "0a"}, []string{"1a"}},
		"of no conversation":     {alone, "", nil, nil, nil},
	} {
		said := get[api.Said](t, r.send(t, "GET", "/v1/exchanges/"+tt.id+"/conversation?user=ada"+tt.limit, nil))
		if !slices.Equal(texts(said.Before), tt.before) || !slices.Equal(texts(said.Turn), tt.turn) || !slices.Equal(texts(said.After), tt.after) {
			t.Errorf("%s: %q | %q | %q, want %q | %q | %q", name, texts(said.Before), texts(said.Turn), texts(said.After), tt.before, tt.turn, tt.after)
		}
	}
	r.send(t, "GET", "/v1/exchanges/"+stored+"/conversation?user=ada&limit=101", nil).problem(t, 422, "invalid", "limit")
	r.send(t, "GET", "/v1/exchanges/"+stored+"/conversation?user=ben", nil).problem(t, 404, "not-found", "")
	r.send(t, "GET", "/v1/exchanges/none/conversation?user=ada", nil).problem(t, 404, "not-found", "")
	off := newRig(t, options{who: local(), noReceipts: true})
	for _, path := range []string{"/v1/exchanges/recent", "/v1/exchanges/" + stored + "/conversation", "/v1/benefit"} {
		off.send(t, "GET", path, nil).problem(t, 501, "not-implemented", "")
	}
}
