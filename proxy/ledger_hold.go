package proxy

import (
	"context"

	"github.com/remora-proxy/remora/storage"
)

// holds are the scopes that are being erased. What of them landed in the store between their erasure there and the
// ledger's [Handler.Drop] would be deleted again, but its bytes would stay on the disk, sealed by a key that lives, until
// the store compacts. Guarded by ledgerStore.mu.
type holds struct {
	of   map[storage.Scope]int
	done chan struct{} // closed when a commit ends; nil = nobody waits for that
}

func (h *holds) has(scope storage.Scope) bool { return h.of[scope] > 0 }

// settled tells those who wait that a commit has ended.
func (h *holds) settled() {
	if h.done != nil {
		close(h.done)
		h.done = nil
	}
}

// hold waits until nothing of scope is being written and keeps it so until release is called. What comes meanwhile waits
// with the rest, within the same bound.
func (st *ledgerStore) hold(ctx context.Context, scope storage.Scope) (release func(), err error) {
	h := &st.erasing
	st.mu.Lock()
	if h.of == nil {
		h.of = map[storage.Scope]int{}
	}
	h.of[scope]++
	st.mu.Unlock()
	release = func() {
		st.mu.Lock()
		if h.of[scope]--; h.of[scope] == 0 {
			delete(h.of, scope)
		}
		st.mu.Unlock()
		st.signal()
	}
	for {
		st.mu.Lock()
		if st.writing[scope] == nil {
			st.mu.Unlock()
			return release, nil
		}
		if h.done == nil {
			h.done = make(chan struct{})
		}
		done := h.done
		st.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}
