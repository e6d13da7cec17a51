package main

import (
	"context"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/storage"
)

// knownMemories are the places where memories stand beside the store: what is
// searched, and what requests replay. Persistence tells it what is stored. What
// it drops by itself, for a bound, is no longer found, but stays where
// conversations that are going on carry it already; what a person wants gone
// goes there, too.
type knownMemories struct {
	*recall.Engine
	handler *proxy.Handler // set before anything runs
}

var (
	_ persist.Indexer         = (*knownMemories)(nil)
	_ persist.ScopeDropper    = (*knownMemories)(nil)
	_ persist.ErasureObserver = (*knownMemories)(nil)
	_ persist.WritePauser     = (*knownMemories)(nil)
)

// Erased takes memories out of what is replayed, and out of snapshots.
func (k *knownMemories) Erased(scope storage.Scope, ids ...string) {
	k.Engine.Erased(scope, ids...)
	k.handler.Forget(scope, ids...)
}

// Drop forgets a scope.
func (k *knownMemories) Drop(scope storage.Scope) {
	k.Engine.Drop(scope)
	k.handler.Drop(scope)
}

// PauseWrites keeps what is derived of a scope, and its ledger, from being
// written while the scope is erased.
func (k *knownMemories) PauseWrites(ctx context.Context, scope storage.Scope) (release func(), err error) {
	index, err := k.Engine.PauseWrites(ctx, scope)
	if err != nil {
		return nil, err
	}
	ledger, err := k.handler.PauseWrites(ctx, scope)
	if err != nil {
		index()
		return nil, err
	}
	return func() {
		ledger()
		index()
	}, nil
}
