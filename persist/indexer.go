package persist

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// Indexer is notified of every change, after it is durable. Calls come one at a
// time and in order.
type Indexer interface {
	// Add hands in new memories. With a turn, ms is everything about that turn:
	// what it left before is gone.
	Add(scope storage.Scope, turn string, ms []storage.Memory)
	// Forget removes memories.
	Forget(scope storage.Scope, ids ...string)
}

// ErasureObserver is what an [Indexer] may implement to learn that a person
// wants memories gone wherever their text still stands, not only out of what is
// searched. It is called after Forget.
type ErasureObserver interface {
	Erased(scope storage.Scope, ids ...string)
}

// ScopeDropper is what an [Indexer] may implement to forget a whole scope.
type ScopeDropper interface {
	Drop(scope storage.Scope)
}

// WritePauser is what an [Indexer] may implement that writes local records: to
// write none of a scope's from when PauseWrites has returned until resume is
// called. So nothing of a memory, or of a whole scope, is written between its
// erasure in the store and the notification of the indexer.
type WritePauser interface {
	PauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error)
}

// notifier calls the Indexer, if there is one, one call at a time. All stages
// and erasures use it.
type notifier struct {
	index Indexer
	log   *slog.Logger
	mu    sync.Mutex
}

// notify makes a call. An index that panics misses what the call was about.
func (n *notifier) notify(call func(Indexer)) {
	if err := guard(func() error { n.notifyOrPanic(call); return nil }); err != nil {
		n.log.Error("index update failed", "error", err)
	}
}

// notifyOrPanic makes a call and lets a panic through, for callers that can
// tell which turn is to blame.
func (n *notifier) notifyOrPanic(call func(Indexer)) {
	if n.index == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	call(n.index)
}

// add hands in memories, without their originals: an index lies in memory in
// the clear.
func (n *notifier) add(scope storage.Scope, ms []storage.Memory) {
	n.notify(func(x Indexer) { x.Add(scope, "", withoutOriginals(ms)) })
}

func (n *notifier) forget(scope storage.Scope, ids ...string) {
	n.notify(func(x Indexer) { x.Forget(scope, ids...) })
}

// pauseWrites keeps an index that writes records from writing to a scope until
// resume is called.
func (n *notifier) pauseWrites(ctx context.Context, scope storage.Scope) (resume func(), err error) {
	if p, ok := n.index.(WritePauser); ok {
		return p.PauseWrites(ctx, scope)
	}
	return func() {}, nil
}

func withoutOriginals(ms []storage.Memory) []storage.Memory {
	if !slices.ContainsFunc(ms, func(m storage.Memory) bool { return m.Redactions != nil }) {
		return ms
	}
	ms = slices.Clone(ms)
	for i := range ms {
		ms[i].Redactions = nil
	}
	return ms
}
