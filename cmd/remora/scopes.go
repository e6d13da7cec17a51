package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
)

// selection names scopes. An empty part matches any.
type selection struct{ Tenant, App, Project, User string }

// selectionFlags defines the flags of commands that work on some scopes.
func selectionFlags(f *pflag.FlagSet) *selection {
	s := &selection{}
	part := func(to *string, name string) {
		f.Func(name, "only of this `"+name+"`, as remora list shows it", func(given string) (err error) {
			*to, err = readPart(given)
			return err
		})
	}
	part(&s.Tenant, "tenant")
	part(&s.App, "app")
	part(&s.Project, "project")
	part(&s.User, "user")
	return s
}

func (s selection) covers(scope storage.Scope) bool {
	part := func(want, is string) bool { return want == "" || want == is }
	return part(s.Tenant, scope.Tenant) && part(s.App, scope.App) && part(s.Project, scope.Project) && part(s.User, scope.User)
}

// exact returns the only scope that can be meant if tenant and user are named.
// The store knows no name of a user whose key is lost.
func (s selection) exact() (scope storage.Scope, ok bool) {
	scope = storage.Scope{Tenant: s.Tenant, App: s.App, Project: s.Project, User: s.User}
	if scope.App == "" {
		scope.App = identity.DefaultPart
	}
	if scope.Project == "" {
		scope.Project = identity.DefaultPart
	}
	return scope, s.Tenant != "" && s.User != ""
}

// keyHolder is shown as the user of requests that name none.
const keyHolder = "(key holder)"

// showPart returns a part of a scope for people and shells: unchanged, or
// quoted if it could be mistaken for something else or would control a
// terminal. readPart reads it back.
func showPart(part string) string {
	plain := part != "" && !strings.HasPrefix(part, "(") && !strings.ContainsAny(part, " \"'\\")
	switch {
	case part == identity.KeyHolderUser:
		return keyHolder
	case plain && strconv.Quote(part) == `"`+part+`"`:
		return part
	}
	return strconv.Quote(part)
}

func readPart(shown string) (string, error) {
	switch {
	case shown == keyHolder:
		return identity.KeyHolderUser, nil
	case shown == "":
		return "", fmt.Errorf("is empty")
	case strings.HasPrefix(shown, `"`):
		return strconv.Unquote(shown)
	}
	return shown, nil
}

func showScope(s storage.Scope) string {
	return fmt.Sprintf("tenant %s, app %s, project %s, user %s", showPart(s.Tenant), showPart(s.App), showPart(s.Project), showPart(s.User))
}

// scopesOf lists the selected scopes. unreadable counts the scopes of the store
// whose names are lost with their keys.
func scopesOf(ctx context.Context, store storage.ScopeLister, of selection) (scopes []storage.Scope, unreadable int, err error) {
	pages := storage.Pages(func(after string) (storage.ScopePage, string, error) {
		page, err := store.Scopes(ctx, after, 0)
		return page, page.Next, err
	})
	for page, err := range pages {
		if err != nil {
			return nil, 0, fmt.Errorf("list users: %w", err)
		}
		unreadable += page.Damaged
		for _, scope := range page.Scopes {
			if of.covers(scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes, unreadable, nil
}
