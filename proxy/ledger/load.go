package ledger

import (
	"context"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// load reads a group's entries in the background and ends d.
func (st *store) load(s *Entries, d *load) {
	cfg := &s.ledger.cfg
	st.loads.Go(func() {
		defer s.ledger.loaded(s.key.scope)
		defer close(d.done)
		defer st.guard("load ledger", func() { d.err = storage.ErrUnavailable })
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		if !st.awaitRoot(ctx, s.key) {
			return
		}
		leave, ok := st.disk.enter(ctx)
		if !ok {
			d.err = storage.ErrUnavailable
			return
		}
		defer leave()
		got, err := st.read(ctx, s.key, cfg.maxGroup())
		if d.err = err; err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.erased { // what was read is void
			return
		}
		grown := int64(0)
		for h, e := range got.entries { // what was written during the load is newer
			if now := s.entries[h]; now != nil {
				grown -= now.size()
				now.over(e)
				e = now
			}
			grown += e.size()
			s.set(h, e)
		}
		s.confirmed = s.confirmed || got.segments > 0 || len(got.entries) > 0
		s.saves += got.segments
		s.charge(grown)
	})
}

// stored is what the store and the writer hold of a group.
type stored struct {
	entries  map[Hash]*entry
	segments int
}

// reading is a read of a group in progress.
type reading struct {
	key   groupKey
	stale bool // a commit has changed the group since
	void  bool // a task has taken something out of it since
}

// read reads a group, into entries of at most maxBytes. Of a group that is
// written to all the time it may miss the newest rows.
func (st *store) read(ctx context.Context, key groupKey, maxBytes int64) (out stored, err error) {
	self := &reading{key: key}
	st.mu.Lock()
	st.reads = append(st.reads, self)
	defer func() {
		st.reads = slices.DeleteFunc(st.reads, func(r *reading) bool { return r == self })
		st.mu.Unlock()
	}()
	for n := 1; n == 1 || self.void || self.stale && n <= maxRereads; n++ {
		self.stale, self.void = false, false
		st.mu.Unlock()
		out, err = st.readOnce(ctx, key, maxBytes)
		if st.mu.Lock(); err != nil {
			return out, err
		}
	}
	t := st.tasks[key.scope]
	newer := []*unsaved{st.writing[key], st.pending[key]} // left by an evicted copy of this group
	if t != nil && t.erase {
		clear(out.entries)
		newer = newer[1:]
	}
	for _, u := range newer {
		if u == nil {
			continue
		}
		for _, rows := range u.segments {
			_, _ = readRows(rows, out.entries) // as appendRow wrote them
		}
	}
	if t != nil {
		for _, e := range out.entries {
			e.forget(t.ids)
		}
	}
	return out, nil
}

func (st *store) readOnce(ctx context.Context, key groupKey, maxBytes int64) (out stored, err error) {
	out.entries = map[Hash]*entry{}
	size := int64(0)
	for r, err := range st.disk.of(ctx, key) {
		if err != nil {
			return stored{}, err
		}
		out.segments++
		rows, err := segmentRows(r.Value)
		n := int64(0)
		if err == nil {
			n, err = readRows(rows, out.entries)
		}
		if err != nil {
			st.dropped.Add(1)
		}
		if size += n; size > maxBytes {
			size -= shrink(out.entries)
		}
	}
	return out, nil
}
