package recall

import (
	"context"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// erasures keep the engine from writing what it derives of a scope, vectors and snapshots, while the scope is erased: what
// landed between the erasure in the store and [Engine.Drop] would be deleted again, but its bytes would stay on the disk,
// sealed by a key that lives, until the store compacts. Whoever writes waits meanwhile, and finds the scope gone then.
type erasures struct {
	mu      sync.Mutex
	held    map[storage.Scope]chan struct{} // closed when the hold ends
	writers map[storage.Scope]int
	idle    map[storage.Scope]chan struct{} // closed when the scope's last writer has left; for the hold that waits
}

// PauseWrites waits until nothing that the engine derives of a scope is being written and keeps it so until release is called. It
// is called before a scope or something in it is erased, and released after Drop or Forget. A write takes 30 s at most.
func (e *Engine) PauseWrites(ctx context.Context, scope storage.Scope) (release func(), err error) {
	h := &e.erasing
	for {
		h.mu.Lock()
		wait := h.held[scope] // somebody else's
		if wait == nil {
			break
		}
		h.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if h.held == nil {
		h.held, h.idle = map[storage.Scope]chan struct{}{}, map[storage.Scope]chan struct{}{}
	}
	mine := make(chan struct{})
	h.held[scope] = mine
	release = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.held, scope)
		delete(h.idle, scope)
		close(mine)
	}
	if h.writers[scope] == 0 {
		h.mu.Unlock()
		return release, nil
	}
	idle := make(chan struct{})
	h.idle[scope] = idle
	h.mu.Unlock()
	select {
	case <-idle:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// writes waits while the scope is held; false means that ctx has ended. The writer looks after it whether there is
// anything to write still, and calls done when it has written.
func (h *erasures) writes(ctx context.Context, scope storage.Scope) (done func(), ok bool) {
	for {
		h.mu.Lock()
		held := h.held[scope]
		if held == nil {
			break
		}
		h.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, false
		}
	}
	defer h.mu.Unlock()
	if h.writers == nil {
		h.writers = map[storage.Scope]int{}
	}
	h.writers[scope]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.writers[scope]--; h.writers[scope] > 0 {
			return
		}
		delete(h.writers, scope)
		if idle := h.idle[scope]; idle != nil {
			close(idle)
			delete(h.idle, scope)
		}
	}, true
}
