package storagetest

import (
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// craftedScopes guards against scopes that collide: shifted boundaries,
// separators, swapped parts.
func craftedScopes(t *testing.T, o Opened) {
	scopes := []storage.Scope{
		{Tenant: "a", App: "b", Project: "c", User: "d"},
		{Tenant: "b", App: "a", Project: "c", User: "d"},
		{Tenant: "a", App: "b", Project: "d", User: "c"},
		{Tenant: "ab", App: "b", Project: "c", User: "d"},
		{Tenant: "a", App: "bb", Project: "c", User: "d"},
		{Tenant: "a", App: "b", Project: "c", User: "dd"},
		{Tenant: "a/b", App: "c", Project: "d", User: "e"},
		{Tenant: "a", App: "b/c", Project: "d", User: "e"},
		{Tenant: "a\x00b", App: "c", Project: "d", User: "e"},
		{Tenant: "a", App: "b\x00c", Project: "d", User: "e"},
		{Tenant: "a", App: "b", Project: "c", User: "d\x00"},
		{Tenant: "a", App: "b", Project: "c", User: "\x00d"},
		{Tenant: "a", App: "b", Project: "c", User: "D"},
		{Tenant: "a", App: "b", Project: "c", User: "d "},
		{Tenant: "a", App: "b", Project: "c", User: "*"},
		{Tenant: "a", App: "b", Project: "c", User: "../d"},
		{Tenant: "a", App: "b", Project: "c", User: "\xff"},
	}
	for i, s := range scopes {
		m := simple("same id", 1)
		m.Text = string(rune('A' + i))
		put(t, o.Store, s, m)
		err := o.Local.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketLedger, Scope: s, Key: "same key", Value: []byte(m.Text)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(i int) {
		t.Helper()
		s, want := scopes[i], string(rune('A'+i))
		got := scanAll(t, o.Store, s, storage.Query{})
		if len(got) != 1 || got[0].Text != want || got[0].Scope != s || got[0].Version != 1 {
			t.Errorf("scope %q: got %+v, want one memory of text %q", s, got, want)
		}
		r := recordsOf(t, o.Local, storage.BucketLedger, s, 0)
		if len(r) != 1 || string(r[0].Value) != want || r[0].Scope != s {
			t.Errorf("scope %q: got records %+v, want one of value %q", s, r, want)
		}
	}
	for i := range scopes {
		check(i)
	}
	// An operation in one scope affects no other.
	if _, err := o.Store.Erase(t.Context(), scopes[0]); err != nil {
		t.Fatal(err)
	}
	if n, err := o.Store.Delete(t.Context(), scopes[1], "same id"); err != nil || n != 1 {
		t.Errorf("Delete: got %d, %v", n, err)
	}
	for i := range scopes[2:] {
		check(i + 2)
	}
}

func foreignIDs(t *testing.T, o Opened) {
	mine, theirs := scopeOf("mine"), scopeOf("theirs")
	put(t, o.Store, theirs, simple("secret", 1))
	putWrites(t, o.Store, turnOf(theirs, "turn", 2, "theirs"))
	for _, id := range []string{
		"secret", "turn.0", "", "theirs/secret", "theirs\x00secret", "../theirs/secret", "secret\x00", "%73ecret", "*", "se",
	} {
		_, err := o.Store.Memory(t.Context(), mine, id)
		wantErr(t, "Memory "+id, err, storage.ErrNotFound)
		if n, err := o.Store.Delete(t.Context(), mine, id); err != nil || n != 0 {
			t.Errorf("Delete %q: got %d, %v, want 0", id, n, err)
		}
	}
	putWrites(t, o.Store, storage.Write{Scope: mine, Turn: "turn"}) // a turn replaced by nothing, in the wrong scope
	if err := o.Local.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketAudit, Scope: theirs, Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	if err := o.Local.DeleteRecords(t.Context(), []storage.RecordRef{{Bucket: storage.BucketAudit, Scope: mine, Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	diff(t, "theirs", ids(scanAll(t, o.Store, theirs, storage.Query{})), []string{"secret", "turn.0", "turn.1"})
	diff(t, "their records", keys(recordsOf(t, o.Local, storage.BucketAudit, theirs, 0)), []string{"k"})
}

func erase(t *testing.T, o Opened) {
	gone, kept := scopeOf("gone"), scopeOf("kept")
	for _, s := range []storage.Scope{gone, kept} {
		put(t, o.Store, s, Full("a", 1), Full("b", 2), Full("deleted before", 3))
		putWrites(t, o.Store, turnOf(s, "turn", 3, "said"))
		if _, err := o.Store.Delete(t.Context(), s, "deleted before"); err != nil {
			t.Fatal(err)
		}
		err := o.Local.PutRecords(t.Context(), []storage.Record{
			{Bucket: storage.BucketSpool, Scope: s, Key: "1", Value: []byte("v")},
			{Bucket: storage.BucketSpool, Scope: s, Key: "2", Value: make([]byte, 1<<20)},
			{Bucket: storage.BucketSummary, Scope: s, Key: "3"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	receipt, err := o.Store.Erase(t.Context(), gone)
	if err != nil {
		t.Fatal(err)
	}
	if receipt.At == 0 {
		t.Error("receipt without a time")
	}
	receipt.At = 0
	diff(t, "receipt", receipt, storage.Receipt{
		Scopes: 1, Memories: 5, Records: map[storage.Bucket]int{storage.BucketSpool: 2, storage.BucketSummary: 1},
	})
	check := func() {
		t.Helper()
		if got := scanAll(t, o.Store, gone, storage.Query{}); len(got) != 0 {
			t.Errorf("memories after erasure: %q", ids(got))
		}
		_, err := o.Store.Memory(t.Context(), gone, "a")
		wantErr(t, "Memory after erasure", err, storage.ErrNotFound)
		for _, b := range storage.Buckets() {
			if got := recordsOf(t, o.Local, b, gone, 0); len(got) != 0 {
				t.Errorf("records of %s after erasure: %q", b, keys(got))
			}
		}
		if got := len(scanAll(t, o.Store, kept, storage.Query{})); got != 5 {
			t.Errorf("neighbour: got %d memories, want 5", got)
		}
		diff(t, "neighbour's records", keys(recordsOf(t, o.Local, storage.BucketSpool, kept, 0)), []string{"1", "2"})
		diff(t, "all records", keys(allRecordsOf(t, o.Local, storage.BucketSpool, 0)), []string{"1", "2"})
	}
	check()
	o = o.Reopen(t)
	check()

	// A second erasure has an empty receipt, and the scope starts again:
	// versions too, and turns are forgotten.
	receipt, err = o.Store.Erase(t.Context(), gone)
	if err != nil || receipt.Memories != 0 || len(receipt.Records) != 0 || receipt.At == 0 {
		t.Errorf("second erasure: got %+v, %v", receipt, err)
	}
	put(t, o.Store, gone, simple("turn.2", 1))
	putWrites(t, o.Store, turnOf(gone, "turn", 1, "new"))
	got := scanAll(t, o.Store, gone, storage.Query{})
	diff(t, "after erasure", ids(got), []string{"turn.2", "turn.0"})
	if len(got) == 2 && got[1].Version != 1 {
		t.Errorf("version after erasure: got %d, want 1", got[1].Version)
	}
	o = o.Reopen(t)
	diff(t, "after erasure, reopened", ids(scanAll(t, o.Store, gone, storage.Query{})), []string{"turn.2", "turn.0"})
}
