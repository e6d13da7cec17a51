package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/cmd/remora/config"
	"github.com/remora-proxy/remora/cmd/remora/machine"
	"github.com/remora-proxy/remora/proxy/identity"
	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/badger"
	"github.com/remora-proxy/remora/storage/process"
)

// How commands get a store, and whose memories they work on.

// sealedConfig returns the configuration of a command that needs a store and a
// key.
func sealedConfig(flags *config.Overrides, s streams) (config.Config, error) {
	c, err := config.Load(*flags, s.getenv, config.Here(s.getenv))
	if err == nil && c.NoKey != "" {
		err = errors.New(c.NoKey)
	}
	return c, err
}

// withStore uses the store of the running Remora, or opens the store if no
// process has it open.
func withStore(ctx context.Context, c config.Config, do func(store openStore) error) error {
	if err := thereIsAStore(c); err != nil {
		return err
	}
	running, away := process.Dial(c.Storage.Dir, process.StoreSocket, readBuild().String())
	if away == nil {
		return errors.Join(do(running), running.Close())
	}
	return keepOwners(c, func() error {
		machine.PrivateFiles()
		store := badger.New(c.Storage, nil)
		if err := store.Open(ctx); err != nil {
			if locked(store.Health().Reason) { // by one that could not be reached
				err = errors.Join(err, away)
			}
			return err
		}
		return errors.Join(do(store), store.Close())
	})
}

// keepOwners runs do, which may make files of the store and of its key. If root
// runs it, they get the owners of their directories, as a service that runs as
// another user needs it.
func keepOwners(c config.Config, do func() error) error {
	give := machine.KeepOwner(c.Storage.Dir, nil)
	giveKeys := machine.KeepOwner(filepath.Dir(c.Storage.KeyFile), func() []string { return badger.KeyFiles(c.Storage) })
	return errors.Join(do(), give(), giveKeys())
}

func thereIsAStore(c config.Config) error {
	if _, err := os.Stat(filepath.Join(c.Storage.Dir, "VERSION")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no store in %s", c.Storage.Dir)
	}
	return nil
}

// locked reports whether a store is not open because another process has it.
func locked(reason string) bool { return strings.HasPrefix(reason, "locked:") }

// storeOpening limits how long a command waits for a store to open.
const storeOpening = 30 * time.Second

// opened waits until a store is open, or has failed to open.
func opened(ctx context.Context, store memoryStore) (last process.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeOpening)
	defer cancel()
	err = until(ctx, func() bool {
		last = store.Status()
		return last.Open || last.FailedOpens > 0 || last.Restarts >= maxCrashes
	})
	return last, err
}

// selection names scopes. An empty part matches any.
type selection struct{ Tenant, App, Project, User string }

// selectionFlags defines the flags of commands that work on some scopes.
func selectionFlags(f *pflag.FlagSet) *selection {
	s := &selection{}
	part := func(to *string, name string) {
		f.Func(name, "only of this `"+name+"`, as remora list shows it", func(given string) (err error) {
			*to, err = identity.Parse(given)
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

// target returns the selection for the control plane.
func (s *selection) target() api.Target {
	show := func(part string) string {
		if part == "" {
			return ""
		}
		return identity.Show(part)
	}
	return api.Target{Tenant: show(s.Tenant), App: show(s.App), Project: show(s.Project), User: show(s.User)}
}

func showScope(s storage.Scope) string {
	return fmt.Sprintf("tenant %s, app %s, project %s, user %s", identity.Show(s.Tenant), identity.Show(s.App), identity.Show(s.Project), identity.Show(s.User))
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
