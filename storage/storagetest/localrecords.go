package storagetest

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

func recordsOf(t *testing.T, l storage.Local, b storage.Bucket, scope storage.Scope, limit int) []storage.Record {
	t.Helper()
	return pagesOf(t, limit, func(after string) (storage.RecordPage, error) {
		return l.Records(t.Context(), b, scope, after, limit)
	})
}

// allRecordsOf sorts the records, which the store returns in any order.
func allRecordsOf(t *testing.T, l storage.Local, b storage.Bucket, limit int) []storage.Record {
	t.Helper()
	all := pagesOf(t, limit, func(after string) (storage.RecordPage, error) {
		return l.AllRecords(t.Context(), b, after, limit)
	})
	slices.SortFunc(all, func(a, b storage.Record) int {
		return cmp.Or(cmp.Compare(a.Scope.User, b.Scope.User), cmp.Compare(a.Key, b.Key))
	})
	return all
}

func pagesOf(t *testing.T, limit int, next func(after string) (storage.RecordPage, error)) []storage.Record {
	t.Helper()
	var all []storage.Record
	after := ""
	for range 10000 {
		page, err := next(after)
		if err != nil {
			t.Fatalf("page of records: %v", err)
		}
		if page.Damaged != 0 || len(page.Records) > storage.PageLimit(limit) {
			t.Errorf("page of records: %d damaged, %d records of at most %d", page.Damaged, len(page.Records), storage.PageLimit(limit))
		}
		all = append(all, page.Records...)
		if after = page.Next; after == "" {
			return all
		}
	}
	t.Fatal("pages of records do not end")
	return nil
}

func keys(records []storage.Record) []string {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return keys
}

func putRecords(t *testing.T, l storage.Local, records ...storage.Record) {
	t.Helper()
	if err := l.PutRecords(t.Context(), records); err != nil {
		t.Fatalf("PutRecords: %v", err)
	}
}

func records(t *testing.T, o Opened) {
	scope := scopeOf("u")
	for i, b := range storage.Buckets() {
		want := storage.Record{Bucket: b, Scope: scope, Key: "ke\x00y", Value: []byte{byte(i), 0, 255}, ExpiresAt: 32503680000000}
		putRecords(t, o.Local, want)
		diff(t, "record", recordsOf(t, o.Local, b, scope, 0), []storage.Record{want})
		want.Value = []byte("replaced")
		putRecords(t, o.Local, storage.Record{Bucket: b, Scope: scope, Key: "ke\x00y", Value: []byte("lost")}, want)
		diff(t, "replaced record", recordsOf(t, o.Local, b, scope, 0), []storage.Record{want})
		diff(t, "all records", allRecordsOf(t, o.Local, b, 0), []storage.Record{want})
	}
	ref := storage.RecordRef{Bucket: storage.BucketLedger, Scope: scope, Key: "ke\x00y"}
	unknown := storage.RecordRef{Bucket: storage.BucketSpool, Scope: scopeOf("nobody"), Key: "unknown"}
	for range 2 {
		if err := o.Local.DeleteRecords(t.Context(), []storage.RecordRef{unknown, ref, ref}); err != nil {
			t.Errorf("DeleteRecords: %v", err)
		}
	}
	for _, b := range storage.Buckets() {
		want := 1
		if b == ref.Bucket {
			want = 0
		}
		if got := len(recordsOf(t, o.Local, b, scope, 0)); got != want {
			t.Errorf("records of %s after deletion: got %d, want %d", b, got, want)
		}
	}
	if got := recordsOf(t, o.Local, storage.BucketSpool, scopeOf("nobody"), 0); len(got) != 0 {
		t.Errorf("records of an unknown scope: %q", keys(got))
	}
}

func recordPages(t *testing.T, o Opened) {
	scope := scopeOf("u")
	var want []string
	for i := range 230 {
		key := fmt.Sprintf("k%03d", (i*101)%230)
		want = append(want, key)
		putRecords(t, o.Local, storage.Record{Bucket: storage.BucketAudit, Scope: scope, Key: key, Value: []byte(key)})
		if i == 0 {
			putRecords(t, o.Local, storage.Record{Bucket: storage.BucketSpool, Scope: scope, Key: "other bucket"})
		}
	}
	slices.Sort(want)
	for _, limit := range []int{0, 1, 50, 229, 230, 231} {
		got := recordsOf(t, o.Local, storage.BucketAudit, scope, limit)
		diff(t, fmt.Sprint("limit ", limit), keys(got), want)
		for _, r := range got {
			if string(r.Value) != r.Key {
				t.Errorf("record %s holds %q", r.Key, r.Value)
			}
		}
	}
	page, err := o.Local.Records(t.Context(), storage.BucketAudit, scope, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	o = o.Reopen(t)
	last := page.Records[len(page.Records)-1]
	if err := o.Local.DeleteRecords(t.Context(), []storage.RecordRef{last.Ref()}); err != nil {
		t.Fatal(err)
	}
	page, err = o.Local.Records(t.Context(), storage.BucketAudit, scope, page.Next, 10)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "page after a restart and a deletion", keys(page.Records), want[100:110])
	_, err = o.Local.Records(t.Context(), storage.BucketAudit, scopeOf("other"), page.Next, 10)
	wantErr(t, "cursor of another scope", err, storage.ErrInvalid)
	_, err = o.Local.AllRecords(t.Context(), storage.BucketAudit, "not a cursor", 10)
	wantErr(t, "not a cursor", err, storage.ErrInvalid)
}

func recordsAtomic(t *testing.T, o Opened) {
	scope := scopeOf("u")
	bad := []storage.Record{
		{Bucket: storage.BucketSpool, Scope: scope, Key: "good", Value: []byte("v")},
		{Bucket: storage.BucketSpool, Scope: scope, Key: "large", Value: make([]byte, storage.MaxRecord+1)},
	}
	wantErr(t, "too large", o.Local.PutRecords(t.Context(), bad), storage.ErrInvalid)
	many := make([]storage.Record, storage.MaxRecords+1)
	refs := make([]storage.RecordRef, len(many))
	for i := range many {
		// Long keys, and values of the size that is hardest to fit into one
		// commit.
		many[i] = storage.Record{Bucket: storage.BucketSpool, Scope: scope, Key: fmt.Sprintf("%0*d", storage.MaxID, i), Value: make([]byte, 717)}
		refs[i] = many[i].Ref()
	}
	wantErr(t, "too many", o.Local.PutRecords(t.Context(), many), storage.ErrInvalid)
	wantErr(t, "too many to delete", o.Local.DeleteRecords(t.Context(), refs), storage.ErrInvalid)
	if got := recordsOf(t, o.Local, storage.BucketSpool, scope, 0); len(got) != 0 {
		t.Errorf("refused records were stored: %q", keys(got))
	}
	putRecords(t, o.Local, many[1:]...)
	if got := len(recordsOf(t, o.Local, storage.BucketSpool, scope, 0)); got != storage.MaxRecords {
		t.Errorf("got %d records, want %d", got, storage.MaxRecords)
	}
	if err := o.Local.DeleteRecords(t.Context(), refs[1:]); err != nil {
		t.Fatal(err)
	}
	if got := recordsOf(t, o.Local, storage.BucketSpool, scope, 0); len(got) != 0 {
		t.Errorf("%d records left after deletion", len(got))
	}
}

func largeRecords(t *testing.T, o Opened) {
	scope := scopeOf("u")
	random := rand.NewChaCha8([32]byte{1})
	blob := func(n int) []byte {
		b := make([]byte, n)
		random.Read(b)
		return b
	}
	want := map[string][]byte{}
	write := func(sizes map[string]int) {
		t.Helper()
		var rs []storage.Record
		for key, n := range sizes {
			want[key] = blob(n)
			rs = append(rs, storage.Record{Bucket: storage.BucketIndex, Scope: scope, Key: key, Value: want[key]})
		}
		putRecords(t, o.Local, rs...)
	}
	check := func(what string) {
		t.Helper()
		got := recordsOf(t, o.Local, storage.BucketIndex, scope, 0)
		if len(got) != len(want) {
			t.Errorf("%s: got %q, want %d records", what, keys(got), len(want))
		}
		for _, r := range got {
			if !bytes.Equal(r.Value, want[r.Key]) {
				t.Errorf("%s: record %s of %d bytes differs, want %d bytes", what, r.Key, len(r.Value), len(want[r.Key]))
			}
		}
	}
	write(map[string]int{"max": storage.MaxRecord, "empty": 0, "1MiB": 1 << 20, "odd": 256<<10 + 1, "even": 512 << 10})
	check("first")
	write(map[string]int{"max": 3 << 20, "empty": 1 << 20, "1MiB": 10})
	check("replaced by smaller and larger ones")
	several := map[string]int{}
	for i := range 60 {
		several[fmt.Sprint("several", i)] = 40 << 10
	}
	write(several)
	check("several in one call")
	o = o.Reopen(t)
	check("reopened")
	var refs []storage.RecordRef
	for _, key := range []string{"max", "empty"} {
		refs = append(refs, storage.RecordRef{Bucket: storage.BucketIndex, Scope: scope, Key: key})
		delete(want, key)
	}
	if err := o.Local.DeleteRecords(t.Context(), refs); err != nil {
		t.Fatal(err)
	}
	check("deleted")
}

func allRecords(t *testing.T, o Opened) {
	var want []storage.Record
	for u := range 5 {
		for k := range 4 {
			want = append(want, storage.Record{
				Bucket: storage.BucketSpool, Scope: scopeOf(fmt.Sprint("u", u)), Key: fmt.Sprint("k", k), Value: []byte{byte(u), byte(k)},
			})
		}
		putRecords(t, o.Local, want[4*u:]...)
		putRecords(t, o.Local, storage.Record{Bucket: storage.BucketLedger, Scope: scopeOf(fmt.Sprint("u", u)), Key: "other bucket"})
	}
	for _, limit := range []int{0, 1, 3, 20} {
		diff(t, fmt.Sprint("limit ", limit), allRecordsOf(t, o.Local, storage.BucketSpool, limit), want)
	}
	o = o.Reopen(t)
	diff(t, "reopened", allRecordsOf(t, o.Local, storage.BucketSpool, 7), want)
	// Records may be deleted page by page: none is skipped.
	after, seen := "", 0
	for {
		page, err := o.Local.AllRecords(t.Context(), storage.BucketSpool, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		var refs []storage.RecordRef
		for _, r := range page.Records {
			refs = append(refs, r.Ref())
		}
		seen += len(refs)
		if err := o.Local.DeleteRecords(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if seen != len(want) {
		t.Errorf("read %d records, want %d", seen, len(want))
	}
}

func installSecret(t *testing.T, o Opened) {
	first, err := o.Local.InstallSecret(t.Context())
	if err != nil || len(first) != 32 || bytes.Equal(first, make([]byte, 32)) {
		t.Fatalf("InstallSecret: got %d bytes, %v, want 32 random ones", len(first), err)
	}
	want := bytes.Clone(first)
	first[0]++
	for range 2 {
		got, err := o.Local.InstallSecret(t.Context())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("InstallSecret: the second call returned another secret, %v", err)
		}
		o = o.Reopen(t)
	}
}
