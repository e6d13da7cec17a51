package api

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/storagetest"
)

// countedScopes counts how often the scopes are listed.
type countedScopes struct {
	*storagetest.Mem
	lists int
}

func (c *countedScopes) Scopes(ctx context.Context, after string, limit int) (storage.ScopePage, error) {
	c.lists++
	return c.Mem.Scopes(ctx, after, limit)
}

// Keys that nobody knows cost one look at the store in a while, not one each.
func TestUnknownKeysAreCheap(t *testing.T) {
	store := &countedScopes{Mem: storagetest.Memory()}
	who := identity.New(identity.Config{Tenant: identity.TenantKey, Anonymous: identity.AnonymousOff, SubAgents: identity.SubAgentsRead}, nil)
	now := time.Now()
	s := New(Config{Token: "admin"}, Deps{Store: store, Identity: who, Now: func() time.Time { return now }})
	const key = "sk-ant-a1b2c3d4e5f6g7h8i9j0"
	for n := range 100 {
		if _, err := s.Authenticate(t.Context(), fmt.Sprint(key, n), ""); !errors.Is(err, ErrUnauthorized) {
			t.Fatal(err)
		}
	}
	if store.lists != 1 {
		t.Errorf("the scopes were listed %d times for 100 unknown keys", store.lists)
	}
	secret, err := store.InstallSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scope := storage.Scope{Tenant: who.TenantOf(secret, key), App: "default", Project: "default", User: "ada"}
	m := storage.Memory{ID: "m", Kind: storage.KindFact, Text: "x", Trust: 1}
	if err := store.Put(t.Context(), []storage.Write{{Scope: scope, Memories: []storage.Memory{m}}}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(tenantPause)
	p, err := s.Authenticate(t.Context(), key, "ada")
	if err != nil || p.Tenant != scope.Tenant || p.User != "ada" || p.Admin {
		t.Fatalf("%+v, %v", p, err)
	}
	for range 100 {
		if _, err := s.Authenticate(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	if store.lists != 2 {
		t.Errorf("a known key was looked up again: %d times", store.lists)
	}
	// The admin needs no store, and an empty token is none.
	store.Fail(true)
	if p, err := s.Authenticate(t.Context(), "admin", ""); err != nil || !p.Admin {
		t.Errorf("the admin: %+v, %v", p, err)
	}
	none := New(Config{}, Deps{Store: store, Identity: who})
	if _, err := none.Authenticate(t.Context(), "", ""); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("without a token nothing is one: %v", err)
	}
}

// What is known of the places of ids is bounded, and apart for each tenant.
func TestPlacesAreBounded(t *testing.T) {
	var l places
	scope := func(tenant string) storage.Scope {
		return storage.Scope{Tenant: tenant, App: "a", Project: "p", User: "u"}
	}
	for n := range 3 * maxPlaces {
		l.note(scope("t"), fmt.Sprint(n))
		if len(l.recent)+len(l.older) > maxPlaces {
			t.Fatalf("%d places after %d", len(l.recent)+len(l.older), n+1)
		}
	}
	if got, ok := l.find("t", fmt.Sprint(3*maxPlaces-1)); !ok || got != scope("t") {
		t.Errorf("the newest is at %v, %v", got, ok)
	}
	if _, ok := l.find("t", "0"); ok {
		t.Error("the oldest is still known")
	}
	if _, ok := l.find("other", fmt.Sprint(3*maxPlaces-1)); ok {
		t.Error("another tenant knows it")
	}
}
