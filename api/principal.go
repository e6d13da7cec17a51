package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"sync"
	"time"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// Principal is who calls, and what is theirs.
type Principal struct {
	Admin bool
	// Tenant is that of the caller's key, "" for the admin.
	Tenant string
	// User is the only user that the caller may reach, "" = every one of the
	// tenant. A proxy that authenticates people in front of Remora sets it.
	User string
	By   string // for what is kept of changes
}

// Everything reports whether the caller may see what is not one user's: numbers,
// settings and login links of the whole installation. The admin may, unless a
// proxy has named a user.
func (p Principal) Everything() bool { return p.Admin && p.User == "" }

// Authenticate returns the principal of a credential: the admin token, or a key
// that the upstream has accepted and under which something is remembered. user,
// if not "", is the only user that the caller may reach from then on.
func (s *access) Authenticate(ctx context.Context, credential, user string) (Principal, error) {
	p := Principal{}
	if user != "" {
		var err error
		if p.User, err = identity.Parse(user); err != nil {
			return Principal{}, invalid("x-user-id", "%v", err)
		}
	}
	if s.token != "" && sameSecret(credential, s.token) {
		p.Admin, p.By = true, "admin"
		return p, nil
	}
	if credential == "" {
		return Principal{}, ErrUnauthorized
	}
	secret, err := s.installSecret(ctx)
	if err != nil {
		return Principal{}, err
	}
	if p.Tenant = s.Identity.TenantOf(secret, credential); p.Tenant == "" {
		return Principal{}, ErrUnauthorized
	}
	known, err := s.tenants.has(ctx, s.Store, p.Tenant, s.Now())
	if err != nil {
		return Principal{}, err
	}
	if !known {
		return Principal{}, ErrUnauthorized
	}
	p.By = "key"
	return p, nil
}

// sameSecret compares in constant time, whatever the lengths.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// tenants knows of which tenants something is remembered. A tenant that is not
// known is looked for at most once in tenantPause.
type tenants struct {
	mu    sync.Mutex
	known map[string]struct{}
	read  time.Time
}

// tenantPause is how long a tenant that has just begun may be unknown.
const tenantPause = 2 * time.Second

func (t *tenants) has(ctx context.Context, store storage.ScopeLister, tenant string, now time.Time) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[tenant]; ok || now.Sub(t.read) < tenantPause {
		return ok, nil
	}
	known := map[string]struct{}{}
	for page, err := range scopePages(ctx, store, "") {
		if err != nil {
			return false, err
		}
		for _, scope := range page.Scopes {
			known[scope.Tenant] = struct{}{}
		}
	}
	t.known, t.read = known, now
	_, ok := known[tenant]
	return ok, nil
}

// Target is whose memory a call is about, in names as requests give them or as
// answers show them. Empty parts mean the default.
type Target struct{ Tenant, App, Project, User string }

// scope returns the one scope that a principal may reach by a target.
func (s *access) scope(p Principal, t Target) (storage.Scope, error) {
	scope, err := s.partial(p, t)
	if err != nil {
		return scope, err
	}
	if scope.App == "" {
		scope.App = identity.DefaultPart
	}
	if scope.Project == "" {
		scope.Project = identity.DefaultPart
	}
	if scope.Tenant == "" {
		return scope, invalid("tenant", "is required, since each key has a memory of its own")
	}
	if scope.User == "" {
		if scope.User = s.Identity.Anonymous(); scope.User == "" {
			return scope, invalid("user", "is required")
		}
	}
	return scope, scope.Validate()
}

// available fails at once while the store can't serve: a change would wait.
func (s *access) available(ctx context.Context, scope storage.Scope) error {
	_, err := s.Store.Digest(ctx, scope)
	return err
}

// partial returns the parts of a scope that a target names and the principal
// may reach; other parts are "".
func (s *access) partial(p Principal, t Target) (scope storage.Scope, err error) {
	read := func(field, shown string) string {
		if shown == "" || err != nil {
			return ""
		}
		part, why := identity.Parse(shown)
		if why != nil {
			err = invalid(field, "%v", why)
		}
		return part
	}
	scope = storage.Scope{Tenant: read("tenant", t.Tenant), App: read("app", t.App), Project: read("project", t.Project), User: read("user", t.User)}
	if err != nil {
		return scope, err
	}
	if !p.Admin {
		if p.Tenant == "" {
			return scope, ErrUnauthorized
		}
		if scope.Tenant != "" && scope.Tenant != p.Tenant {
			return scope, ErrNotFound
		}
		scope.Tenant = p.Tenant
	}
	if p.User != "" {
		if scope.User != "" && scope.User != p.User {
			return scope, ErrNotFound
		}
		scope.User = p.User
	}
	if scope.Tenant == "" {
		scope.Tenant = s.Identity.Tenant()
	}
	return scope, nil
}

// everyone is like partial, except that for the admin a target without a tenant
// means all tenants.
func (s *access) everyone(p Principal, t Target) (storage.Scope, error) {
	want, err := s.partial(p, t)
	if p.Admin && t.Tenant == "" {
		want.Tenant = ""
	}
	return want, err
}

// places remembers in which scope an id was seen, so that a caller need not
// name the user again. It holds maxPlaces ids; beyond, the older half goes.
type places struct {
	mu            sync.Mutex
	recent, older map[placeKey]storage.Scope
}

type placeKey struct{ tenant, id string }

const maxPlaces = 20_000

func (l *places) note(scope storage.Scope, ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if l.recent == nil || len(l.recent) >= maxPlaces/2 {
			l.recent, l.older = make(map[placeKey]storage.Scope, maxPlaces/2), l.recent
		}
		l.recent[placeKey{scope.Tenant, id}] = scope
	}
}

func (l *places) find(tenant, id string) (storage.Scope, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := placeKey{tenant, id}
	if scope, ok := l.recent[key]; ok {
		return scope, true
	}
	scope, ok := l.older[key]
	return scope, ok
}

// locate returns the scope that a memory is in, and the memory. If the target
// does not name the user, all scopes of the tenant that it may mean are asked.
func (s *access) locate(ctx context.Context, p Principal, t Target, id string) (storage.Memory, error) {
	if id == "" || len(id) > storage.MaxID {
		return storage.Memory{}, ErrNotFound
	}
	want, err := s.partial(p, t)
	if err != nil {
		return storage.Memory{}, err
	}
	try := func(scope storage.Scope) (storage.Memory, bool, error) {
		m, err := s.Store.Memory(ctx, scope, id)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrInvalid) {
			return m, false, nil
		}
		return m, err == nil, err
	}
	var first []storage.Scope
	if want.Tenant != "" {
		if scope, ok := s.places.find(want.Tenant, id); ok && covers(want, scope) {
			first = append(first, scope)
		}
	}
	if scope, err := s.scope(p, t); err == nil {
		first = append(first, scope)
	}
	for _, scope := range first {
		if m, ok, err := try(scope); ok || err != nil {
			return m, err
		}
	}
	if want.User != "" && want.App != "" && want.Project != "" && want.Tenant != "" {
		return storage.Memory{}, ErrNotFound
	}
	for page, err := range scopePages(ctx, s.Store, "") {
		if err != nil {
			return storage.Memory{}, err
		}
		var refs []storage.MemoryRef
		for _, scope := range page.Scopes {
			if covers(want, scope) {
				refs = append(refs, storage.MemoryRef{Scope: scope, ID: id})
			}
		}
		for len(refs) > 0 {
			batch := refs[:min(len(refs), storage.MaxRecords)]
			refs = refs[len(batch):]
			maybe, err := s.Store.Probe(ctx, batch)
			if err != nil && !errors.Is(err, errors.ErrUnsupported) {
				return storage.Memory{}, err
			}
			for i, ref := range batch {
				if maybe != nil && !maybe[i] {
					continue
				}
				if m, ok, err := try(ref.Scope); ok || err != nil {
					s.places.note(ref.Scope, id)
					return m, err
				}
			}
		}
	}
	return storage.Memory{}, ErrNotFound
}

// covers reports whether a scope has all parts of another, in which "" stands
// for any.
func covers(want, scope storage.Scope) bool {
	same := func(want, is string) bool { return want == "" || want == is }
	return same(want.Tenant, scope.Tenant) && same(want.App, scope.App) && same(want.Project, scope.Project) && same(want.User, scope.User)
}
