package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/remora-proxy/remora/storage"
)

// load reads a scope's entries in the background. Callers wait on s.loaded, as long as they care to.
func (st *ledgerStore) load(l *ledger, s *scopeLedger) {
	st.loads.Go(func() {
		defer close(s.loaded)
		defer st.guard("load ledger", func() { s.err = storage.ErrUnavailable })
		select {
		case st.slots <- struct{}{}:
			defer func() { <-st.slots }()
		case <-time.After(ledgerLoadMax):
			s.err = storage.ErrUnavailable
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), ledgerLoadMax)
		defer cancel()
		var got stored
		for reads := 1; ; reads++ { // a commit may pull what is read from under the reader, or come behind it
			var during commits
			if got, during = st.read(ctx, s.scope, l.cfg.MaxBytes/4); got.err != nil {
				s.err = got.err
				return
			}
			if during == noCommit || during == addingCommit && reads >= ledgerRereads {
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
		if s.gone { // what was read is erased
			return
		}
		if got.segments > ledgerSegments {
			st.replace(s.scope, entries, l.cfg.TTL)
			partial = false
		}
		s.partial = s.partial || partial
		for h, e := range entries { // what was written while the load went on is newer
			if now := s.entries[h]; now != nil && now.at != nil {
				continue
			} else if now != nil {
				e.variants = append(e.variants, now.variants...)
				for len(e.variants) > maxVariants { // more would not be read back
					size -= e.variants[0].size()
					e.variants = e.variants[1:]
				}
			}
			s.set(h, e)
		}
		s.confirmed = s.confirmed || got.segments > 0 || len(entries) > 0
		l.charge(s, size)
	})
}

// stored is what the store and the writer have of a scope.
type stored struct {
	entries  map[chainHash]*entry
	segments int
	partial  bool // some of it is not in entries
	err      error
}

// reading is a read of a scope's entries that is under way.
type reading struct {
	scope  storage.Scope
	during commits
}

// commits says what the writer has committed of a scope while it was read.
type commits uint8

const (
	noCommit        commits = iota
	addingCommit            // something may be missing of what was read
	replacingCommit         // nothing of what was read holds
)

// leave ends a reading.
func (st *ledgerStore) leave(r *reading) {
	st.mu.Lock()
	st.reads = slices.DeleteFunc(st.reads, func(other *reading) bool { return other == r })
	st.mu.Unlock()
}

// read reads a scope, into entries of at most maxBytes, and says what was committed meanwhile.
func (st *ledgerStore) read(ctx context.Context, scope storage.Scope, maxBytes int64) (out stored, during commits) {
	st.mu.Lock()
	self := &reading{scope: scope}
	st.reads = append(st.reads, self)
	st.mu.Unlock()
	defer st.leave(self)
	out.entries = map[chainHash]*entry{}
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
			if size += n; size > maxBytes { // more than a quarter of all memory for one scope
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
