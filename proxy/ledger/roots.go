package ledger

import (
	"context"
	"errors"
	"strconv"

	"github.com/remora-proxy/remora/storage"
)

// roots tell which groups of a scope the store has, so that a conversation that
// is new here costs no read. They hold a part of each root; one that is stored
// no more is found in vain. store.mu guards them.
type roots struct {
	known  map[uint64]struct{}
	ended  chan struct{} // closed when they are read
	failed bool          // they are not all known: every group may be stored
}

// Rough heap costs: of a root, and of a scope in roots.
const (
	bytesPerRoot  = 20
	rootsPerScope = 16
)

// maxRoots bounds the roots of all scopes together. Beyond it those of whole
// scopes are dropped, to be read again.
func (c *Config) maxRoots() int { return int(c.MaxBytes / 8 / bytesPerRoot) }

func (r *roots) isRead() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (r *roots) mayHave(root Hash) bool {
	_, ok := r.known[root.Hi]
	return ok || r.failed
}

// rootsOf returns the roots of a scope, which begin to be read. Needs st.mu.
func (st *store) rootsOf(scope storage.Scope) *roots {
	if r := st.roots[scope]; r != nil {
		return r
	}
	r := &roots{known: map[uint64]struct{}{}, ended: make(chan struct{})}
	st.roots[scope] = r
	st.countRoots(rootsPerScope)
	for _, waiting := range [...]map[groupKey]*unsaved{st.pending, st.writing} {
		for key := range waiting {
			if key.scope == scope {
				st.addRoot(scope, r, key.root)
			}
		}
	}
	st.loads.Go(func() {
		defer close(r.ended)
		st.readRoots(scope, r)
	})
	return r
}

func (st *store) readRoots(scope storage.Scope, r *roots) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	limit := min(st.maxRoots, storage.MaxKeys)
	keys, err := st.readKeys(ctx, scope, limit)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.roots[scope] != r {
		return // dropped
	} else if err != nil {
		st.dropRoots(scope) // the next request tries again
		return
	} else if len(keys) >= limit {
		r.failed = true
		return
	}
	for _, key := range keys {
		if len(key) >= 16 {
			if hi, err := strconv.ParseUint(key[:16], 16, 64); err == nil {
				st.addRoot(scope, r, Hash{Hi: hi})
			}
		}
	}
}

// readKeys returns the names of a scope's segments, at most limit of them.
func (st *store) readKeys(ctx context.Context, scope storage.Scope, limit int) ([]string, error) {
	reader, ok := st.local.(storage.PrefixReader)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	leave, ok := st.enter(ctx)
	if !ok {
		return nil, storage.ErrUnavailable
	}
	defer leave()
	return reader.RecordKeys(ctx, storage.BucketLedger, scope, limit)
}

// dropRoots has the roots of a scope read again. Needs st.mu.
func (st *store) dropRoots(scope storage.Scope) {
	if r := st.roots[scope]; r != nil {
		delete(st.roots, scope)
		st.rootCount -= rootsPerScope + len(r.known)
		r.failed = true // for those who still look at them
	}
}

// addRoot records that there is something of a group. Needs st.mu.
func (st *store) addRoot(scope storage.Scope, r *roots, root Hash) {
	if _, there := r.known[root.Hi]; there || st.roots[scope] != r {
		return
	}
	r.known[root.Hi] = struct{}{}
	st.countRoots(1)
}

// countRoots counts n more roots, and drops some over the bound. Needs st.mu.
func (st *store) countRoots(n int) {
	st.rootCount += n
	for scope := range st.roots {
		if st.rootCount <= st.maxRoots {
			break
		}
		st.dropRoots(scope)
	}
}

// mayHave reports whether something of a group may be stored. known is false
// while that is being read.
func (st *store) mayHave(key groupKey) (may, known bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.rootsOf(key.scope)
	return r.mayHave(key.root), r.isRead()
}

// awaitRoot is mayHave once that is known.
func (st *store) awaitRoot(ctx context.Context, key groupKey) bool {
	st.mu.Lock()
	r := st.rootsOf(key.scope)
	st.mu.Unlock()
	select {
	case <-r.ended:
	case <-ctx.Done():
		return true
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return r.mayHave(key.root)
}
