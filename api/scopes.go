package api

import (
	"context"
	"iter"
	"slices"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

func scopePages(ctx context.Context, store storage.ScopeLister, after string) iter.Seq2[storage.ScopePage, error] {
	return storage.Pages(func(next string) (storage.ScopePage, string, error) {
		if next == "" {
			next = after
		}
		page, err := store.Scopes(ctx, next, 0)
		return page, page.Next, err
	})
}

// User is somebody of whom something is remembered.
type User struct {
	Tenant   string `json:"tenant"`
	App      string `json:"app"`
	Project  string `json:"project"`
	User     string `json:"user"`
	Memories int    `json:"memories"` // expired ones that are not removed yet count
	// Unaudited counts turns that no audit has read yet: what they say is
	// remembered as it was said, and is no fact so far.
	Unaudited int `json:"unaudited,omitempty"`
}

// Users is a page of users.
type Users struct {
	Users []User `json:"users"`
	Next  string `json:"next,omitempty"`
	// Unreadable counts users whose key is missing or damaged, for the admin.
	Unreadable int `json:"unreadable,omitempty"`
}

// Users lists whom the principal may reach.
func (s *access) Users(ctx context.Context, p Principal, t Target, after string, limit int) (Users, error) {
	limit, err := pageSize(limit)
	if err != nil {
		return Users{}, err
	}
	want, err := s.everyone(p, t)
	if err != nil {
		return Users{}, err
	}
	out := Users{Users: []User{}}
	for len(out.Users) < limit {
		page, err := s.Store.Scopes(ctx, after, limit-len(out.Users))
		if err != nil {
			return Users{}, cursorError(err, after)
		}
		scopes := slices.DeleteFunc(slices.Clone(page.Scopes), func(scope storage.Scope) bool { return !covers(want, scope) })
		unaudited := s.Pipeline.Unaudited(scopes...)
		for _, scope := range scopes {
			d, err := s.Store.Digest(ctx, scope)
			if err != nil {
				return Users{}, err
			}
			out.Users = append(out.Users, User{identity.Show(scope.Tenant), identity.Show(scope.App), identity.Show(scope.Project), identity.Show(scope.User), d.Memories, unaudited[scope]})
		}
		if p.Everything() {
			out.Unreadable += page.Damaged
		}
		if after = page.Next; after == "" {
			break
		}
	}
	out.Next = after
	return out, nil
}

// cursorError tells a cursor that the store refuses from other errors.
func cursorError(err error, cursor string) error {
	if kind, _ := Kind(err); cursor != "" && kind == "invalid" {
		return invalid("cursor", "is not one of this list")
	}
	return err
}

// scopesOf returns the scopes of the target that something is remembered of, at
// most limit.
func (s *access) scopesOf(ctx context.Context, p Principal, t Target, limit int) (out []storage.Scope, err error) {
	want, err := s.partial(p, t)
	if err != nil {
		return nil, err
	}
	for page, err := range scopePages(ctx, s.Store, "") {
		if err != nil {
			return nil, err
		}
		for _, scope := range page.Scopes {
			if covers(want, scope) {
				if out = append(out, scope); len(out) == limit {
					return out, nil
				}
			}
		}
	}
	return out, nil
}
