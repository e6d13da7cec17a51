package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// digester skips the test if the store is no Digester.
func digester(t *testing.T, o Opened) storage.Digester {
	t.Helper()
	d, ok := o.Store.(storage.Digester)
	if !ok {
		t.Skip("the store keeps no digests")
	}
	return d
}

func digestOf(memories ...storage.Memory) (d storage.Digest) {
	for i := range memories {
		d.Add(&memories[i])
	}
	return d
}

// wantDigest compares the stored digest with the wanted one, and with a scan.
func wantDigest(t *testing.T, what string, o Opened, scope storage.Scope, want storage.Digest) {
	t.Helper()
	got, err := digester(t, o).Digest(t.Context(), scope)
	if err != nil {
		t.Fatalf("%s: Digest: %v", what, err)
	}
	if got != want {
		t.Errorf("%s: digest: got %+v, want %+v", what, got, want)
	}
	v, err := storage.Verify(t.Context(), o.Store, scope)
	if err != nil || !v.Whole() || v.Memories+v.Expired != want.Memories {
		t.Errorf("%s: Verify: got %+v, %v, want %d intact memories", what, v, err, want.Memories)
	}
}

func digests(t *testing.T, o Opened) {
	digester(t, o)
	scope, other := scopeOf("u"), scopeOf("other")
	step := func(what string, want ...storage.Memory) {
		t.Helper()
		wantDigest(t, what, o, scope, digestOf(want...))
	}
	step("unknown scope")

	a, b := Full("a", 5), simple("b", 5)
	put(t, o.Store, scope, a, b)
	put(t, o.Store, other, Full("a", 5))
	step("put", a, b)
	put(t, o.Store, scope, a, b)
	step("put again", a, b)
	a.Text, a.EventTime = "changed", 3
	put(t, o.Store, scope, a)
	step("changed", a, b)
	a.Redactions = nil
	put(t, o.Store, scope, a)
	step("changed in fields that do not count", a, b)

	turn := turnOf(scope, "turn", 4, "said")
	putWrites(t, o.Store, turn)
	step("turn", append(turn.Memories, a, b)...)
	putWrites(t, o.Store, turn)
	step("turn replayed", append(turn.Memories, a, b)...)
	turn = turnOf(scope, "turn", 2, "replaced")
	putWrites(t, o.Store, turnOf(scope, "turn", 3, "between"), turn) // several writes of one commit
	step("turn replaced", append(turn.Memories, a, b)...)
	if _, err := o.Store.Delete(t.Context(), scope, "turn.0", "b", "unknown", "b"); err != nil {
		t.Fatal(err)
	}
	step("deleted", turn.Memories[1], a)
	putWrites(t, o.Store, storage.Write{Scope: scope, Turn: "turn"})
	step("turn emptied", a)
	o = o.Reopen(t)
	step("reopened", a)

	// Many commits of one call.
	var many []storage.Memory
	var writes []storage.Write
	for i := range 30 {
		m := simple(fmt.Sprint("many", i), storage.Time(i))
		m.Text = fmt.Sprintf("%0100000d", i)
		many = append(many, m)
		writes = append(writes, storage.Write{Scope: scope, Memories: many[i:]})
	}
	putWrites(t, o.Store, writes...)
	step("many commits", append(many, a)...)

	if _, err := o.Store.Erase(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	step("erased")
	wantDigest(t, "the neighbour", o, other, digestOf(Full("a", 5)))
	o = o.Reopen(t)
	step("erased, reopened")
	put(t, o.Store, scope, b)
	step("put after erasure", b)
	_, err := digester(t, o).Digest(t.Context(), storage.Scope{})
	wantErr(t, "Digest of no scope", err, storage.ErrInvalid)
}

// digestOfExpired guards that expired memories count until they are removed,
// and that scans report them on any page.
func digestOfExpired(t *testing.T, o Opened) {
	digester(t, o)
	scope := scopeOf("u")
	var all []storage.Memory
	for i := range 40 {
		m := simple(fmt.Sprintf("m%02d", i), storage.Time(i/4)) // four to a time
		if i%3 > 0 || i/8 == 2 {
			m.ExpiresAt = 1
		}
		all = append(all, m)
	}
	put(t, o.Store, scope, all...)
	wantDigest(t, "with expired ones", o, scope, digestOf(all...))
	for limit := 1; limit < 15; limit++ {
		read := digestOf()
		for q := (storage.Query{Limit: limit}); ; {
			page, err := o.Store.Scan(t.Context(), scope, q)
			if err != nil {
				t.Fatal(err)
			}
			read = read.Plus(digestOf(page.Memories...)).Plus(page.Expired)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if want := digestOf(all...); read != want {
			t.Errorf("pages of %d: got %+v, want %+v", limit, read, want)
		}
	}
	// One expired memory is put again, one is deleted.
	all[1].ExpiresAt, all[1].Text = 0, "again"
	put(t, o.Store, scope, all[1])
	wantDigest(t, "put again", o, scope, digestOf(all...))
	if _, err := o.Store.Delete(t.Context(), scope, all[2].ID); err != nil {
		t.Fatal(err)
	}
	all = slices.Delete(all, 2, 3)
	wantDigest(t, "deleted", o, scope, digestOf(all...))
	o = o.Reopen(t)
	wantDigest(t, "reopened", o, scope, digestOf(all...))
}

// digestWhileExpiring guards that the digest does not change at the moment of
// expiry.
func digestWhileExpiring(t *testing.T, o Opened) {
	digester(t, o)
	scope := scopeOf("u")
	soon := storage.TimeOf(time.Now().Add(40 * time.Millisecond))
	m := simple("brief", 1)
	m.ExpiresAt = soon
	put(t, o.Store, scope, m, simple("lasting", 2))
	want := digestOf(m, simple("lasting", 2))
	wantDigest(t, "before", o, scope, want)
	for storage.TimeOf(time.Now()) <= soon {
		time.Sleep(5 * time.Millisecond)
	}
	wantDigest(t, "after", o, scope, want)
}

func scopes(t *testing.T, o Opened) {
	l, ok := o.Store.(storage.ScopeLister)
	if !ok {
		t.Skip("the store lists no scopes")
	}
	list := func(limit int) []storage.Scope {
		t.Helper()
		var all []storage.Scope
		for after := ""; ; {
			page, err := l.Scopes(t.Context(), after, limit)
			if err != nil || page.Damaged != 0 {
				t.Fatalf("Scopes: %d damaged, %v", page.Damaged, err)
			}
			all = append(all, page.Scopes...)
			if after = page.Next; after == "" {
				break
			}
		}
		slices.SortFunc(all, func(a, b storage.Scope) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.User, b.User))
		})
		return all
	}
	diff(t, "at first", list(0), []storage.Scope(nil))
	var want []storage.Scope
	for i := range 7 {
		s := scopeOf(fmt.Sprint(i))
		want = append(want, s)
		if i%2 == 0 {
			put(t, o.Store, s, simple("m", 1))
		} else {
			putRecords(t, o.Local, storage.Record{Bucket: storage.BucketSpool, Scope: s, Key: "k"})
		}
	}
	for _, limit := range []int{0, 1, 3, 7} {
		diff(t, fmt.Sprint("pages of ", limit), list(limit), want)
	}
	if _, err := o.Store.Erase(t.Context(), want[2]); err != nil {
		t.Fatal(err)
	}
	diff(t, "after an erasure", list(2), slices.Delete(want, 2, 3))
	_, err := l.Scopes(t.Context(), "nonsense", 0)
	wantErr(t, "Scopes with an invalid cursor", err, storage.ErrInvalid)
}
