package persist

import (
	"errors"

	"github.com/remora-proxy/remora/storage"
)

// A write may have happened though it failed, as where the connection to the store's process was lost after its commit. Mostly it is
// repeated until it succeeds, and the index is told then. A round that gives way to an erasure does not repeat it: what it is made
// anew of finds the facts stored, or gone, and has nothing to tell.

// doubt notes memories whose write, or deletion, may have happened, in a round that ends.
func (r *roundWork) doubt(scope storage.Scope, ids ...string) {
	if r.doubts == nil {
		r.doubts = map[storage.Scope][]string{}
	}
	r.doubts[scope] = append(r.doubts[scope], ids...)
}

func (r *roundWork) doubtWrite(w *storage.Write) {
	for i := range w.Memories {
		r.doubt(w.Scope, w.Memories[i].ID)
	}
}

// resolve tells the index what became of them, before the round does anything else: so they are those of one round, at most.
func (r *roundWork) resolve() {
	if len(r.doubts) == 0 || r.p.turns.lock(r.work) != nil {
		return
	}
	defer r.p.turns.unlock()
	for scope, ids := range r.doubts {
		for len(ids) > 0 {
			var m storage.Memory
			gone := false
			err := r.retry("look again", func() (err error) {
				m, err = r.p.store.Memory(r.work, scope, ids[0])
				if gone = errors.Is(err, storage.ErrNotFound); gone {
					return nil
				}
				return err
			})
			switch {
			case gone, err != nil && permanent(err):
				r.p.tell(func(x Indexer) { x.Forget(scope, ids[0]) })
			case err == nil:
				r.p.tell(func(x Indexer) { x.Add(scope, "", withoutOriginals([]storage.Memory{m})) })
			default:
				r.doubts[scope], r.ended = ids, true
				return
			}
			ids = ids[1:]
		}
		delete(r.doubts, scope)
	}
}
