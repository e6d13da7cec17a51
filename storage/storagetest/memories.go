package storagetest

import (
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

func putAndReadBack(t *testing.T, o Opened) {
	scope := scopeOf("u")
	want := Full("id", 1234)
	put(t, o.Store, scope, want)
	want.Scope, want.Version = scope, 1
	diff(t, "Memory", read(t, o.Store, scope, "id"), want)
	diff(t, "Scan", scanAll(t, o.Store, scope, storage.Query{}), []storage.Memory{want})

	// Empty lists and maps are read back as nil.
	bare := storage.Memory{
		ID: "bare", Entities: []string{}, Redactions: map[string]string{},
		EventTime: -5, Scope: scope,
	}
	before := storage.TimeOf(time.Now())
	put(t, o.Store, scope, bare)
	got := read(t, o.Store, scope, "bare")
	if got.CreatedAt < before || got.UpdatedAt < before {
		t.Errorf("times left to the store: got created %d, updated %d, want at least %d", got.CreatedAt, got.UpdatedAt, before)
	}
	got.CreatedAt, got.UpdatedAt = 0, 0
	bare.Entities, bare.Redactions, bare.Version = nil, nil, 1
	diff(t, "bare memory", got, bare)

	if _, err := o.Store.Memory(t.Context(), scope, "nobody"); true {
		wantErr(t, "unknown id", err, storage.ErrNotFound)
	}
	putWrites(t, o.Store) // nothing to write is no error
}

func replacement(t *testing.T, o Opened) {
	scope := scopeOf("u")
	first := Full("id", 1000)
	put(t, o.Store, scope, first)

	same := Full("id", 1000)
	same.CreatedAt, same.UpdatedAt, same.Version = 9, 9, 77
	put(t, o.Store, scope, same)
	first.Scope, first.Version = scope, 1
	diff(t, "after an identical write", read(t, o.Store, scope, "id"), first)

	second := Full("id", 500) // also moves it in time
	second.Text, second.CreatedAt, second.UpdatedAt = "changed", 9, 3333
	put(t, o.Store, scope, second)
	second.Scope, second.Version, second.CreatedAt = scope, 2, first.CreatedAt
	diff(t, "after a change", read(t, o.Store, scope, "id"), second)
	diff(t, "scan after a change", scanAll(t, o.Store, scope, storage.Query{}), []storage.Memory{second})

	// Within one call, the later write wins.
	third, fourth := second, second
	third.Text, fourth.Text = "third", "fourth"
	putWrites(t, o.Store,
		storage.Write{Scope: scope, Memories: []storage.Memory{third}},
		storage.Write{Scope: scope, Memories: []storage.Memory{fourth}})
	fourth.Version = 4
	diff(t, "after two changes in one call", read(t, o.Store, scope, "id"), fourth)
}

func atomicWrite(t *testing.T, o Opened) {
	scope := scopeOf("u")
	bad := storage.Write{Scope: scope, Memories: []storage.Memory{simple("a", 1), simple("", 2)}}
	wantErr(t, "Put", o.Store.Put(t.Context(), []storage.Write{bad}), storage.ErrInvalid)
	if got := scanAll(t, o.Store, scope, storage.Query{}); len(got) != 0 {
		t.Errorf("a refused write left %q", ids(got))
	}
	// Nothing of a refused write may be committed with the next one.
	put(t, o.Store, scope, simple("b", 3))
	diff(t, "ids", ids(scanAll(t, o.Store, scope, storage.Query{})), []string{"b"})
}

func invalidArguments(t *testing.T, o Opened) {
	ctx, scope := t.Context(), scopeOf("u")
	long := strings.Repeat("x", storage.MaxID+1)
	other := simple("a", 1)
	other.Scope = scopeOf("other")
	for name, w := range map[string]storage.Write{
		"empty tenant":       {Scope: storage.Scope{App: "a", Project: "p", User: "u"}},
		"long user":          {Scope: scopeOf(strings.Repeat("u", storage.MaxScopePart+1))},
		"empty id":           {Scope: scope, Memories: []storage.Memory{{}}},
		"long id":            {Scope: scope, Memories: []storage.Memory{simple(long, 1)}},
		"id twice":           {Scope: scope, Memories: []storage.Memory{simple("a", 1), simple("b", 1), simple("a", 2)}},
		"other scope":        {Scope: scope, Memories: []storage.Memory{other}},
		"long turn":          {Scope: scope, Turn: long},
		"ids not the turn's": {Scope: scope, Turn: "t", Memories: []storage.Memory{simple("t.1", 1)}},
	} {
		wantErr(t, "Put: "+name, o.Store.Put(ctx, []storage.Write{w}), storage.ErrInvalid)
	}
	for name, r := range map[string]storage.Record{
		"unknown bucket": {Bucket: "nonsense", Scope: scope, Key: "k"},
		"no bucket":      {Scope: scope, Key: "k"},
		"no scope":       {Bucket: storage.BucketSpool, Key: "k"},
		"no key":         {Bucket: storage.BucketSpool, Scope: scope},
		"long key":       {Bucket: storage.BucketSpool, Scope: scope, Key: long},
	} {
		wantErr(t, "PutRecords: "+name, o.Local.PutRecords(ctx, []storage.Record{r}), storage.ErrInvalid)
		wantErr(t, "DeleteRecords: "+name, o.Local.DeleteRecords(ctx, []storage.RecordRef{r.Ref()}), storage.ErrInvalid)
	}
	none := storage.Scope{}
	_, err := o.Store.Memory(ctx, none, "id")
	wantErr(t, "Memory without scope", err, storage.ErrInvalid)
	_, err = o.Store.Scan(ctx, none, storage.Query{})
	wantErr(t, "Scan without scope", err, storage.ErrInvalid)
	_, err = o.Store.Delete(ctx, none, "id")
	wantErr(t, "Delete without scope", err, storage.ErrInvalid)
	_, err = o.Store.Erase(ctx, none)
	wantErr(t, "Erase without scope", err, storage.ErrInvalid)
	_, err = o.Local.Records(ctx, storage.BucketSpool, none, "", 0)
	wantErr(t, "Records without scope", err, storage.ErrInvalid)
	_, err = o.Local.Records(ctx, "nonsense", scope, "", 0)
	wantErr(t, "Records of unknown bucket", err, storage.ErrInvalid)
	_, err = o.Local.AllRecords(ctx, "nonsense", "", 0)
	wantErr(t, "AllRecords of unknown bucket", err, storage.ErrInvalid)
}

func limits(t *testing.T, o Opened) {
	scope := scopeOf(strings.Repeat("u", storage.MaxScopePart))
	// A turn of the maximum size, then replaced and shrunk.
	most := storage.MaxWriteMemories
	for turnOf(scope, "turn", most, "xxxxxx").Size() > o.maxWrite() {
		most--
	}
	for _, n := range []int{most, most, 1} {
		w := turnOf(scope, "turn", n, strings.Repeat("x", n%7))
		putWrites(t, o.Store, w)
		if got := len(scanAll(t, o.Store, scope, storage.Query{})); got != n {
			t.Errorf("after a turn of %d passages: got %d memories", n, got)
		}
	}
	many := turnOf(scope, "turn", storage.MaxWriteMemories+1, "x")
	wantErr(t, "too many memories", o.Store.Put(t.Context(), []storage.Write{many}), storage.ErrInvalid)

	// The largest write, as one memory.
	large := storage.Write{Scope: scope, Memories: []storage.Memory{simple(strings.Repeat("i", storage.MaxID), 1)}}
	large.Memories[0].Text = ""
	large.Memories[0].Text = strings.Repeat("y", o.maxWrite()-large.Size())
	putWrites(t, o.Store, large)
	if got := read(t, o.Store, scope, large.Memories[0].ID); got.Text != large.Memories[0].Text {
		t.Errorf("largest memory: got %d bytes of text, want %d", len(got.Text), len(large.Memories[0].Text))
	}
	large.Memories[0].Text += "y"
	wantErr(t, "too large", o.Store.Put(t.Context(), []storage.Write{large}), storage.ErrInvalid)

	// Many large writes in one call need more than one transaction anywhere.
	var writes []storage.Write
	for i := range 8 {
		w := storage.Write{Scope: scopeOf("many"), Memories: []storage.Memory{simple(string(rune('a'+i)), 1)}}
		w.Memories[0].Text = strings.Repeat("z", o.maxWrite()*2/3)
		writes = append(writes, w)
	}
	putWrites(t, o.Store, writes...)
	diff(t, "ids", ids(scanAll(t, o.Store, scopeOf("many"), storage.Query{})), strings.Split("abcdefgh", ""))
}

func deleteMemories(t *testing.T, o Opened) {
	scope := scopeOf("u")
	put(t, o.Store, scope, simple("a", 1), simple("b", 2), simple("c", 3))
	n, err := o.Store.Delete(t.Context(), scope, "a", "c", "a", "unknown", "", strings.Repeat("x", storage.MaxID+1))
	if err != nil || n != 2 {
		t.Errorf("Delete: got %d, %v, want 2", n, err)
	}
	diff(t, "left", ids(scanAll(t, o.Store, scope, storage.Query{})), []string{"b"})
	_, err = o.Store.Memory(t.Context(), scope, "a")
	wantErr(t, "Memory after Delete", err, storage.ErrNotFound)
	if n, err := o.Store.Delete(t.Context(), scopeOf("nobody"), "b"); err != nil || n != 0 {
		t.Errorf("Delete in an unknown scope: got %d, %v, want 0", n, err)
	}
	put(t, o.Store, scope, simple("a", 9))
	if got := read(t, o.Store, scope, "a").Version; got != 1 {
		t.Errorf("version after deletion and a new beginning: got %d, want 1", got)
	}
}

func expiry(t *testing.T, o Opened) {
	scope := scopeOf("u")
	soon := storage.TimeOf(time.Now().Add(30 * time.Millisecond))
	brief, past, lasting := simple("brief", 1), simple("past", 2), simple("lasting", 3)
	brief.ExpiresAt, past.ExpiresAt, lasting.ExpiresAt = soon, 1, soon+3_600_000
	put(t, o.Store, scope, brief, past, lasting)
	err := o.Local.PutRecords(t.Context(), []storage.Record{
		{Bucket: storage.BucketSpool, Scope: scope, Key: "brief", ExpiresAt: soon},
		{Bucket: storage.BucketSpool, Scope: scope, Key: "lasting", ExpiresAt: soon + 3_600_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	for storage.TimeOf(time.Now()) <= soon {
		time.Sleep(5 * time.Millisecond)
	}
	for _, id := range []string{"brief", "past"} {
		_, err := o.Store.Memory(t.Context(), scope, id)
		wantErr(t, "expired memory "+id, err, storage.ErrNotFound)
	}
	diff(t, "scan", ids(scanAll(t, o.Store, scope, storage.Query{})), []string{"lasting"})
	diff(t, "records", keys(recordsOf(t, o.Local, storage.BucketSpool, scope, 0)), []string{"lasting"})
	diff(t, "all records", keys(allRecordsOf(t, o.Local, storage.BucketSpool, 0)), []string{"lasting"})
	if n, err := o.Store.Delete(t.Context(), scope, "brief"); err != nil || n != 0 {
		t.Errorf("Delete of an expired memory: got %d, %v, want 0", n, err)
	}
	brief.ExpiresAt, brief.EventTime = 0, 7
	put(t, o.Store, scope, brief)
	if got := read(t, o.Store, scope, "brief").Version; got != 1 {
		t.Errorf("version of an id whose memory had expired: got %d, want 1", got)
	}
	diff(t, "scan", ids(scanAll(t, o.Store, scope, storage.Query{})), []string{"lasting", "brief"})
}

func copies(t *testing.T, o Opened) {
	scope := scopeOf("u")
	spoil := func(m storage.Memory) {
		m.Entities[0], m.Tags[0] = "spoilt", "spoilt"
		m.Redactions["h1"] = "spoilt"
	}
	given := Full("id", 1)
	put(t, o.Store, scope, given)
	spoil(given)
	spoil(read(t, o.Store, scope, "id"))
	spoil(scanAll(t, o.Store, scope, storage.Query{})[0])
	want := Full("id", 1)
	want.Scope, want.Version = scope, 1
	diff(t, "memory after callers changed their copies", read(t, o.Store, scope, "id"), want)

	value := []byte("value")
	if err := o.Local.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketIndex, Scope: scope, Key: "k", Value: value}}); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	recordsOf(t, o.Local, storage.BucketIndex, scope, 0)[0].Value[1] = 'X'
	allRecordsOf(t, o.Local, storage.BucketIndex, 0)[0].Value[2] = 'X'
	if got := string(recordsOf(t, o.Local, storage.BucketIndex, scope, 0)[0].Value); got != "value" {
		t.Errorf("record after callers changed their copies: got %q", got)
	}
}
