package storagetest

import (
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// fillTenants writes to many scopes of two tenants and returns them.
func fillTenants(t *testing.T, o Opened) map[string][]storage.Scope {
	t.Helper()
	all := map[string][]storage.Scope{}
	for _, tenant := range []string{"first", "second"} {
		for i := range 20 {
			s := storage.Scope{Tenant: tenant, App: fmt.Sprint(i % 2), Project: "p", User: fmt.Sprint(i)}
			all[tenant] = append(all[tenant], s)
			put(t, o.Store, s, simple("a", 1), simple("b", 2))
			if i%4 == 0 {
				putRecords(t, o.Local, storage.Record{Bucket: storage.BucketAudit, Scope: s, Key: "k", Value: make([]byte, 300<<10)})
			}
		}
	}
	return all
}

func wantErased(t *testing.T, o Opened, scopes []storage.Scope, erased bool) {
	t.Helper()
	memories, audits := 2, 1
	if erased {
		memories, audits = 0, 0
	}
	for i, s := range scopes {
		if got := scanAll(t, o.Store, s, storage.Query{}); len(got) != memories {
			t.Errorf("%v: got %d memories, want %d", s, len(got), memories)
		}
		if got := recordsOf(t, o.Local, storage.BucketAudit, s, 0); i%4 == 0 && len(got) != audits {
			t.Errorf("%v: got %d audits, want %d", s, len(got), audits)
		}
		if _, ok := o.Store.(storage.Digester); ok {
			if v, err := storage.Verify(t.Context(), o.Store, s); err != nil || !v.Whole() {
				t.Errorf("%v: Verify: got %+v, %v", s, v, err)
			}
		}
	}
}

func eraseTenant(t *testing.T, o Opened) {
	e, ok := o.Store.(storage.BulkEraser)
	if !ok {
		t.Skip("the store has no bulk erasure")
	}
	all := fillTenants(t, o)
	receipt, err := e.EraseTenant(t.Context(), "first")
	if err != nil || receipt.At == 0 {
		t.Errorf("EraseTenant: at %d, %v", receipt.At, err)
	}
	receipt.At = 0
	diff(t, "receipt", receipt, storage.Receipt{Scopes: 20, Memories: 40, Records: map[storage.Bucket]int{storage.BucketAudit: 5}})
	for range 2 {
		wantErased(t, o, all["first"], true)
		wantErased(t, o, all["second"], false)
		o = o.Reopen(t)
	}
	receipt, err = o.Store.(storage.BulkEraser).EraseTenant(t.Context(), "first")
	if err != nil || receipt.Scopes != 0 || receipt.Memories != 0 {
		t.Errorf("EraseTenant again: got %+v, %v, want nothing", receipt, err)
	}
	_, err = o.Store.(storage.BulkEraser).EraseTenant(t.Context(), "")
	wantErr(t, "EraseTenant without a tenant", err, storage.ErrInvalid)
}

func eraseAll(t *testing.T, o Opened) {
	e, ok := o.Store.(storage.BulkEraser)
	if !ok {
		t.Skip("the store has no bulk erasure")
	}
	all := fillTenants(t, o)
	secret, err := o.Local.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := e.EraseAll(t.Context())
	if err != nil || receipt.At == 0 {
		t.Errorf("EraseAll: at %d, %v", receipt.At, err)
	}
	receipt.At = 0
	diff(t, "receipt", receipt, storage.Receipt{Scopes: 40, Memories: 80, Records: map[storage.Bucket]int{storage.BucketAudit: 10}})
	for range 2 {
		wantErased(t, o, all["first"], true)
		wantErased(t, o, all["second"], true)
		o = o.Reopen(t)
	}
	put(t, o.Store, all["first"][0], simple("a", 1))
	wantDigest(t, "a new beginning", o, all["first"][0], digestOf(simple("a", 1)))
	after, err := o.Local.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "install secret", after, secret)
}
