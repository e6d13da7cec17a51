package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// load reads a scope's entries in the background and closes s.loaded.
func (st *store) load(s *Entries) {
	cfg := &s.ledger.cfg
	st.loads.Go(func() {
		defer close(s.loaded)
		defer st.guard("load ledger", func() { s.err = storage.ErrUnavailable })
		select {
		case st.slots <- struct{}{}:
			defer func() { <-st.slots }()
		case <-time.After(loadTimeout):
			s.err = storage.ErrUnavailable
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		var got stored
		for reads := 1; ; reads++ { // a commit may replace or add segments during the read
			var during commits
			if got, during = st.read(ctx, s.scope, cfg.MaxBytes/4); got.err != nil {
				s.err = got.err
				return
			}
			if during == noCommit || during == addingCommit && reads >= maxRereads {
				got.partial = got.partial || during != noCommit
				break
			}
		}
		entries, partial := got.entries, got.partial
		size := int64(0)
		for _, e := range entries {
			size += e.size()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.erased { // what was read is void
			return
		}
		if got.segments > maxSegments {
			st.replace(s.scope, entries, cfg.TTL)
			partial = false
		}
		s.partial = s.partial || partial
		for h, e := range entries { // what was written during the load is newer
			if now := s.entries[h]; now != nil && (now.position != nil || now.repair != nil) {
				continue
			} else if now != nil {
				e.variants = append(e.variants, now.variants...)
				for len(e.variants) > maxVariants { // more could not be read back
					size -= e.variants[0].size()
					e.variants = e.variants[1:]
				}
			}
			s.set(h, e)
		}
		s.confirmed = s.confirmed || got.segments > 0 || len(entries) > 0
		s.charge(size)
	})
}

// stored is what the store and the writer hold of a scope.
type stored struct {
	entries  map[Hash]*entry
	segments int
	partial  bool // some of it is missing from entries
	err      error
}

// reading is a read of a scope's entries in progress.
type reading struct {
	scope  storage.Scope
	during commits
}

// commits is what the writer has committed of a scope while it was read.
type commits uint8

const (
	noCommit        commits = iota
	addingCommit            // entries may be missing
	replacingCommit         // what was read is void
)

// leave ends a reading.
func (st *store) leave(r *reading) {
	st.mu.Lock()
	st.reads = slices.DeleteFunc(st.reads, func(other *reading) bool { return other == r })
	st.mu.Unlock()
}

// read reads a scope, into entries of at most maxBytes, and returns what was
// committed meanwhile.
func (st *store) read(ctx context.Context, scope storage.Scope, maxBytes int64) (out stored, during commits) {
	st.mu.Lock()
	self := &reading{scope: scope}
	st.reads = append(st.reads, self)
	st.mu.Unlock()
	defer st.leave(self)
	out.entries = map[Hash]*entry{}
	size := int64(0)
	for after := ""; ; {
		page, err := st.local.Records(ctx, storage.BucketLedger, scope, after, storage.MaxPage)
		if err != nil {
			return stored{err: err}, noCommit
		}
		for _, r := range page.Records {
			out.segments++
			n, err := readSegment(r.Value, out.entries)
			if err != nil {
				st.dropped.Add(1)
				out.partial = true
			}
			if size += n; size > maxBytes { // one scope gets no more than maxBytes
				size -= shrink(out.entries)
				out.partial = true
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, u := range [...]*unsaved{st.writing[scope], st.pending[scope]} { // newer, left by an evicted copy of this scope
		if u == nil {
			continue
		}
		if u.replace {
			clear(out.entries)
		}
		for _, rows := range u.segments {
			_, _ = readRows(rows, out.entries) // as appendRow wrote them
		}
	}
	return out, self.during
}
