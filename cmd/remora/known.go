package main

import (
	"context"
	"slices"

	"github.com/remora-proxy/remora/persist"
	"github.com/remora-proxy/remora/proxy"
	"github.com/remora-proxy/remora/recall"
	"github.com/remora-proxy/remora/recall/receipt"
	"github.com/remora-proxy/remora/storage"
)

// knownMemories are the copies of memories outside the store: what is searched,
// and what requests replay. Persistence notifies it of what is stored. What
// persistence drops on its own, because of a limit, is no longer found, but
// stays in current conversations that already have it. What a person wants gone
// is removed there as well.
type knownMemories struct {
	*recall.Engine
	handler  *proxy.Handler    // set before anything runs
	receipts *receipt.Recorder // nil = none are kept
}

var (
	_ persist.Indexer         = (*knownMemories)(nil)
	_ persist.ScopeDropper    = (*knownMemories)(nil)
	_ persist.ErasureObserver = (*knownMemories)(nil)
	_ persist.WritePauser     = (*knownMemories)(nil)
)

// Erased removes memories from what is replayed, and from snapshots.
func (k *knownMemories) Erased(scope storage.Scope, ids ...string) {
	k.Engine.Erased(scope, ids...)
	k.handler.Forget(scope, ids...)
	if k.receipts != nil {
		k.receipts.Erased(scope, ids...)
	}
}

// Drop forgets a scope.
func (k *knownMemories) Drop(scope storage.Scope) {
	k.Engine.Drop(scope)
	k.handler.Drop(scope)
	if k.receipts != nil {
		k.receipts.Drop(scope)
	}
}

// PauseWrites stops writes of what is derived from a scope, of its ledger and
// of receipts, while the scope is erased.
func (k *knownMemories) PauseWrites(ctx context.Context, scope storage.Scope) (release func(), err error) {
	writers := []persist.WritePauser{k.Engine, k.handler}
	if k.receipts != nil {
		writers = append(writers, k.receipts)
	}
	var paused []func()
	release = func() {
		for _, resume := range slices.Backward(paused) {
			resume()
		}
	}
	for _, w := range writers {
		resume, err := w.PauseWrites(ctx, scope)
		if err != nil {
			release()
			return nil, err
		}
		paused = append(paused, resume)
	}
	return release, nil
}
