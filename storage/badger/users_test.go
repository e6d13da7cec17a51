package badger

import (
	"errors"
	"fmt"
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// No more users are admitted than the store and one tenant may have, across
// restarts; those who are there are stored as before, and one who is erased
// makes room.
func TestTooManyUsers(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxUsers, cfg.MaxTenantUsers = 10, 6
	o := opened(t, cfg)
	put := func(tenant string, user int) error {
		scope := storage.Scope{Tenant: tenant, App: "a", Project: "p", User: fmt.Sprint("u", user)}
		return o.Store.Put(t.Context(), []storage.Write{{Scope: scope, Memories: []storage.Memory{{ID: "m", Kind: storage.KindFact, Text: "said", EventTime: 1}}}})
	}
	admitted := func(tenant string, users, want int) {
		t.Helper()
		got := 0
		for user := range users {
			switch err := put(tenant, user); {
			case err == nil:
				got++
			case !errors.Is(err, storage.ErrTooManyUsers) || !errors.Is(err, storage.ErrInvalid):
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("%d users of %s are stored, want %d", got, tenant, want)
		}
	}
	admitted("one", 20, 6)
	o = o.Reopen(t)
	admitted("one", 20, 6)
	admitted("two", 20, 4)
	o = o.Reopen(t)
	admitted("two", 20, 4)
	err := o.Local.PutRecords(t.Context(), []storage.Record{{Bucket: storage.BucketSpool, Scope: storage.Scope{Tenant: "two", App: "a", Project: "p", User: "late"}, Key: "k"}})
	if !errors.Is(err, storage.ErrTooManyUsers) {
		t.Errorf("a record: got %v", err)
	}
	if _, err := o.Store.Erase(t.Context(), storage.Scope{Tenant: "one", App: "a", Project: "p", User: "u0"}); err != nil {
		t.Fatal(err)
	}
	if err := put("two", 4); err != nil {
		t.Errorf("after an erasure: %v", err)
	}
	if err := put("one", 0); !errors.Is(err, storage.ErrTooManyUsers) {
		t.Errorf("the store is full again: got %v", err)
	}
}
