package storagetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

func scanOrder(t *testing.T, o Opened) {
	scope := scopeOf("u")
	put(t, o.Store, scope, simple("e", 5), simple("d", 256), simple("b", 5), simple("a", 1<<40), simple("f", 0),
		simple("c", -7))
	put(t, o.Store, scopeOf("other"), simple("x", 5))
	want := []string{"c", "f", "b", "e", "d", "a"}
	for _, limit := range []int{0, -1, 1, 2, 3, 5, 6, 7, storage.MaxPage + 1} {
		diff(t, fmt.Sprint("limit ", limit), ids(scanAll(t, o.Store, scope, storage.Query{Limit: limit})), want)
	}
	slices.Reverse(want)
	for _, limit := range []int{7, 500, 501, 1000} {
		diff(t, fmt.Sprint("newest, limit ", limit), ids(scanAll(t, o.Store, scope, storage.Query{Limit: limit, Newest: true})), want)
	}
	page, err := o.Store.Scan(t.Context(), scope, storage.Query{Limit: len(want)})
	if err != nil || page.Next != "" {
		t.Errorf("a page with all memories: got next %q, %v, want none", page.Next, err)
	}
	page, err = o.Store.Scan(t.Context(), scopeOf("nobody"), storage.Query{})
	if err != nil || len(page.Memories) != 0 || page.Next != "" {
		t.Errorf("empty scope: got %+v, %v", page, err)
	}
}

func scanTie(t *testing.T, o Opened) {
	scope := scopeOf("u")
	var memories []storage.Memory
	var want []string
	for i := range 500 {
		id := fmt.Sprintf("%03d", i)
		want = append(want, id)
		memories = append(memories, simple(fmt.Sprintf("%03d", (i*37)%500), 42))
	}
	memories = append(memories, simple("first", 41), simple("last", 43))
	want = append(append([]string{"first"}, want...), "last")
	put(t, o.Store, scope, memories...)
	for _, limit := range []int{7, 100, 499, 500, 501, 1000} {
		diff(t, fmt.Sprint("limit ", limit), ids(scanAll(t, o.Store, scope, storage.Query{Limit: limit})), want)
	}
}

func scanFilters(t *testing.T, o Opened) {
	scope := scopeOf("u")
	for i := range 12 {
		m := simple(fmt.Sprintf("m%02d", i), storage.Time(i))
		m.Kind = []storage.Kind{storage.KindEpisode, storage.KindFact, storage.KindResource}[i%3]
		m.Conversation = []string{"one", "two"}[i%2]
		put(t, o.Store, scope, m)
	}
	for _, test := range []struct {
		q    storage.Query
		want []string
	}{
		{storage.Query{Kinds: []storage.Kind{storage.KindFact}}, []string{"m01", "m04", "m07", "m10"}},
		{storage.Query{Kinds: []storage.Kind{storage.KindFact, storage.KindResource}, Conversation: "one"}, []string{"m02", "m04", "m08", "m10"}},
		{storage.Query{Conversation: "two"}, []string{"m01", "m03", "m05", "m07", "m09", "m11"}},
		{storage.Query{Conversation: "two", Newest: true}, []string{"m11", "m09", "m07", "m05", "m03", "m01"}},
		{storage.Query{Conversation: "three"}, nil},
		{storage.Query{Kinds: []storage.Kind{storage.KindEntry}}, nil},
	} {
		for _, limit := range []int{0, 1, 3} {
			test.q.Limit = limit
			diff(t, fmt.Sprintf("%+v", test.q), ids(scanAll(t, o.Store, scope, test.q)), test.want)
		}
	}
}

func scanResumes(t *testing.T, o Opened) {
	scope := scopeOf("u")
	for i := range 6 {
		put(t, o.Store, scope, simple(fmt.Sprint("m", i), storage.Time(i/2)))
	}
	q := storage.Query{Limit: 3}
	page, err := o.Store.Scan(t.Context(), scope, q)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "first page", ids(page.Memories), []string{"m0", "m1", "m2"})
	o = o.Reopen(t)
	// The memory at the cursor is deleted; one is added after it and one
	// before.
	if _, err := o.Store.Delete(t.Context(), scope, "m2"); err != nil {
		t.Fatal(err)
	}
	put(t, o.Store, scope, simple("m9", 9), simple("a", 0))
	q.After = page.Next
	diff(t, "the rest", ids(scanAll(t, o.Store, scope, q)), []string{"m3", "m4", "m5", "m9"})
}

func scanCursors(t *testing.T, o Opened) {
	mine, theirs := scopeOf("mine"), scopeOf("theirs")
	put(t, o.Store, mine, simple("a", 1), simple("b", 2))
	put(t, o.Store, theirs, simple("c", 3), simple("d", 4))
	page, err := o.Store.Scan(t.Context(), theirs, storage.Query{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("Scan: got next %q, %v", page.Next, err)
	}
	_, err = o.Store.Scan(t.Context(), mine, storage.Query{After: page.Next})
	wantErr(t, "cursor of another scope", err, storage.ErrInvalid)
	_, err = o.Store.Scan(t.Context(), theirs, storage.Query{After: page.Next, Conversation: "c"})
	wantErr(t, "cursor of another query", err, storage.ErrInvalid)
	_, err = o.Store.Scan(t.Context(), theirs, storage.Query{After: "not a cursor"})
	wantErr(t, "not a cursor", err, storage.ErrInvalid)
	_, err = o.Local.Records(t.Context(), storage.BucketSpool, mine, page.Next, 0)
	wantErr(t, "cursor of memories for records", err, storage.ErrInvalid)
}
