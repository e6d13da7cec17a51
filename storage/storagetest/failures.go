package storagetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

func durable(t *testing.T, o Opened) {
	scope := scopeOf("u")
	want := Full("id", 1)
	put(t, o.Store, scope, want)
	want.Scope, want.Version = scope, 1
	record := storage.Record{Bucket: storage.BucketLedger, Scope: scope, Key: "k", Value: []byte("v"), ExpiresAt: 32503680000000}
	putRecords(t, o.Local, record)
	for range 3 {
		o = o.Reopen(t)
		diff(t, "memory", read(t, o.Store, scope, "id"), want)
		diff(t, "records", recordsOf(t, o.Local, storage.BucketLedger, scope, 0), []storage.Record{record})
	}
	if _, err := o.Store.Delete(t.Context(), scope, "id"); err != nil {
		t.Fatal(err)
	}
	o = o.Reopen(t)
	_, err := o.Store.Memory(t.Context(), scope, "id")
	wantErr(t, "deleted memory, reopened", err, storage.ErrNotFound)
}

// calls makes every call of both interfaces and passes its error to check.
func calls(ctx context.Context, o Opened, check func(name string, err error)) {
	scope := scopeOf("u")
	check("Put", o.Store.Put(ctx, []storage.Write{{Scope: scope, Memories: []storage.Memory{simple("new", 1)}}}))
	_, err := o.Store.Memory(ctx, scope, "old")
	check("Memory", err)
	_, err = o.Store.Scan(ctx, scope, storage.Query{})
	check("Scan", err)
	_, err = o.Store.Delete(ctx, scope, "old")
	check("Delete", err)
	_, err = o.Store.Erase(ctx, scope)
	check("Erase", err)
	check("PutRecords", o.Local.PutRecords(ctx, []storage.Record{{Bucket: storage.BucketSpool, Scope: scope, Key: "new"}}))
	_, err = o.Local.Records(ctx, storage.BucketSpool, scope, "", 0)
	check("Records", err)
	_, err = o.Local.AllRecords(ctx, storage.BucketSpool, "", 0)
	check("AllRecords", err)
	check("DeleteRecords", o.Local.DeleteRecords(ctx, []storage.RecordRef{{Bucket: storage.BucketSpool, Scope: scope, Key: "old"}}))
	_, err = o.Local.InstallSecret(ctx)
	check("InstallSecret", err)
	if p, ok := o.Store.(storage.Prober); ok {
		_, err = p.Probe(ctx, []storage.MemoryRef{{Scope: scope, ID: "old"}})
		check("Probe", err)
	}
	if r, ok := o.Local.(storage.RecordReader); ok {
		_, err = r.Record(ctx, storage.RecordRef{Bucket: storage.BucketSpool, Scope: scope, Key: "old"})
		check("Record", err)
	}
	if d, ok := o.Store.(storage.Digester); ok {
		_, err = d.Digest(ctx, scope)
		check("Digest", err)
	}
	if r, ok := o.Store.(storage.Reaper); ok {
		_, err = r.Reap(ctx, 1)
		check("Reap", err)
		_, err = r.Newest(ctx)
		check("Newest", err)
	}
	if e, ok := o.Store.(storage.BulkEraser); ok {
		_, err = e.EraseTenant(ctx, "tenant")
		check("EraseTenant", err)
		_, err = e.EraseAll(ctx)
		check("EraseAll", err)
	}
	if l, ok := o.Store.(storage.ScopeLister); ok {
		_, err = l.Scopes(ctx, "", 0)
		check("Scopes", err)
	}
}

// untouched checks that failed calls had no effect.
func untouched(t *testing.T, o Opened) {
	t.Helper()
	diff(t, "memories", ids(scanAll(t, o.Store, scopeOf("u"), storage.Query{})), []string{"old"})
	diff(t, "records", keys(recordsOf(t, o.Local, storage.BucketSpool, scopeOf("u"), 0)), []string{"old"})
}

func populate(t *testing.T, o Opened) {
	t.Helper()
	put(t, o.Store, scopeOf("u"), simple("old", 1))
	putRecords(t, o.Local, storage.Record{Bucket: storage.BucketSpool, Scope: scopeOf("u"), Key: "old"})
}

func canceled(t *testing.T, o Opened) {
	populate(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls(ctx, o, func(name string, err error) { wantErr(t, name, err, context.Canceled) })
	untouched(t, o)
}

func closed(t *testing.T, o Opened) {
	populate(t, o)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	calls(t.Context(), o, func(name string, err error) { wantErr(t, name, err, storage.ErrUnavailable) })
	untouched(t, o.Reopen(t))
}

// concurrent guards that simultaneous changes are not lost and that readers see
// whole writes.
func concurrent(t *testing.T, o Opened) {
	const writers, rounds = 4, 12
	shared := scopeOf("shared")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			own := scopeOf(fmt.Sprint("own", w))
			for i := range rounds {
				m := simple("contended", 1)
				m.Text = fmt.Sprint(w, " ", i)
				err := o.Store.Put(t.Context(), []storage.Write{
					{Scope: shared, Memories: []storage.Memory{m}},
					turnOf(own, "turn", 2+i%3, fmt.Sprint("round ", i)),
				})
				if err != nil {
					t.Errorf("Put: %v", err)
				}
				key := fmt.Sprint(w, "-", i)
				if err := o.Local.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: shared, Key: key}}); err != nil {
					t.Errorf("PutRecords: %v", err)
				}
				if i%6 == 5 {
					if _, err := o.Store.Erase(t.Context(), own); err != nil {
						t.Errorf("Erase: %v", err)
					}
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				page, err := o.Store.Scan(t.Context(), scopeOf(fmt.Sprint("own", w)), storage.Query{})
				if err != nil || page.Damaged > 0 {
					t.Errorf("Scan: %d damaged, %v", page.Damaged, err)
				}
				rounds := map[string]bool{}
				for _, m := range page.Memories {
					rounds[m.Text[:len(m.Text)-2]] = true
				}
				if len(rounds) > 1 {
					t.Errorf("a reader saw parts of several writes: %v", rounds)
				}
			}
		})
	}
	wg.Wait()
	if got, want := read(t, o.Store, shared, "contended").Version, uint64(writers*rounds); got != want {
		t.Errorf("version after %d changes: got %d", want, got)
	}
	if got, want := len(recordsOf(t, o.Local, storage.BucketSpool, shared, 0)), writers*rounds; got != want {
		t.Errorf("got %d records, want %d", got, want)
	}
	for w := range writers {
		if got := scanAll(t, o.Store, scopeOf(fmt.Sprint("own", w)), storage.Query{}); len(got) != 0 {
			t.Errorf("writer %d: %q survived the last erasure", w, ids(got))
		}
	}
}
