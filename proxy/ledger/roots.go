package ledger

import (
	"context"
	"strconv"

	"github.com/remora-proxy/remora/storage"
)

// rootIndex tells which groups of a scope the store has, so that a conversation
// that is new here costs no read. It is guarded by the store's mu.
type rootIndex struct {
	byScope map[storage.Scope]*roots
	count   int // of all scopes
	max     int // of count; beyond it the roots of whole scopes are dropped, to be read again
}

// roots are the groups of one scope. They hold a part of each root; one that is
// stored no more is looked for in vain.
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

// maxRoots bounds the roots of all scopes together.
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

// of returns the roots of a scope; with fresh they are to be read.
func (x *rootIndex) of(scope storage.Scope) (r *roots, fresh bool) {
	if r = x.byScope[scope]; r == nil {
		r, fresh = &roots{known: map[uint64]struct{}{}, ended: make(chan struct{})}, true
		x.byScope[scope] = r
		x.grow(rootsPerScope)
	}
	return r, fresh
}

// add records that there is something of a group, if the scope's roots are
// here.
func (x *rootIndex) add(key groupKey) {
	r := x.byScope[key.scope]
	if r == nil {
		return
	}
	if _, there := r.known[key.root.Hi]; !there {
		r.known[key.root.Hi] = struct{}{}
		x.grow(1)
	}
}

func (x *rootIndex) grow(n int) {
	x.count += n
	for scope := range x.byScope {
		if x.count <= x.max {
			break
		}
		x.drop(scope)
	}
}

// drop has the roots of a scope read again.
func (x *rootIndex) drop(scope storage.Scope) {
	if r := x.byScope[scope]; r != nil {
		delete(x.byScope, scope)
		x.count -= rootsPerScope + len(r.known)
		r.failed = true // for those who still look at them
	}
}

// rootsOf returns the roots of a scope, which begin to be read. Needs st.mu.
func (st *store) rootsOf(scope storage.Scope) *roots {
	r, fresh := st.index.of(scope)
	if !fresh {
		return r
	}
	for _, waiting := range [...]map[groupKey]*unsaved{st.pending, st.writing} {
		for key := range waiting {
			if key.scope == scope {
				st.index.add(key)
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
	limit := min(st.index.max, storage.MaxKeys)
	keys, err := st.disk.keys(ctx, scope, limit)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.index.byScope[scope] != r {
		return // dropped
	} else if err != nil {
		st.index.drop(scope) // the next request tries again
		return
	} else if len(keys) >= limit {
		r.failed = true
		return
	}
	for _, key := range keys {
		if len(key) >= 16 {
			if hi, err := strconv.ParseUint(key[:16], 16, 64); err == nil {
				st.index.add(groupKey{scope, Hash{Hi: hi}})
			}
		}
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

// isNew reports whether it is known that nothing of a group is stored.
func (st *store) isNew(key groupKey) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.index.byScope[key.scope]
	return r != nil && r.isRead() && !r.mayHave(key.root)
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
