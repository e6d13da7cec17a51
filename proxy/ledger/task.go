package ledger

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/remora-proxy/remora/storage"
)

// task is what has to leave the store of a scope: everything, or some memories.
// It is done by the next commit, and tried again until the store has done it.
// What is read meanwhile lacks it already.
type task struct {
	erase bool
	ids   map[string]struct{}
}

// forget takes memories out of what is stored of a scope, and of what waits to
// be.
func (st *store) forget(scope storage.Scope, ids map[string]struct{}) {
	st.mu.Lock()
	defer st.mu.Unlock()
	t := &task{ids: maps.Clone(ids)}
	if before := st.tasks[scope]; before != nil && !before.erase {
		maps.Copy(t.ids, before.ids)
	} else if before != nil {
		t.erase = true
	}
	st.tasks[scope] = t
	for key, u := range st.pending {
		if key.scope == scope {
			st.scrub(u, ids)
		}
	}
	st.signal()
}

// erase drops everything that is stored of a scope, or waits to be.
func (st *store) erase(scope storage.Scope) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.tasks[scope] = &task{erase: true}
	st.index.drop(scope)
	for key := range st.pending {
		if key.scope == scope {
			st.drop(key)
		}
	}
	st.signal()
}

// scrub takes memories out of rows that wait. Needs st.mu.
func (st *store) scrub(u *unsaved, ids map[string]struct{}) {
	for i, rows := range u.segments {
		if without, changed, err := rowsWithout(rows, ids); err == nil && changed {
			u.segments[i] = without
			u.size += len(without) - len(rows)
			st.size += len(without) - len(rows)
		}
	}
}

// doTasks does all tasks. In a paused scope nothing is written, so memories are
// taken out of it later.
func (st *store) doTasks(ctx context.Context) error {
	st.mu.Lock()
	tasks := maps.Clone(st.tasks)
	st.mu.Unlock()
	for scope, t := range tasks {
		st.mu.Lock()
		paused := st.paused[scope] > 0 && !t.erase
		if !paused {
			st.working = scope
		}
		st.mu.Unlock()
		if paused {
			continue
		}
		err := st.do(ctx, scope, t)
		if errors.Is(err, storage.ErrDamaged) { // its key is lost, and so is what it had
			err = nil
		}
		st.mu.Lock()
		if err == nil {
			for _, r := range st.reads {
				r.void = r.void || r.key.scope == scope
			}
			if st.tasks[scope] == t { // nothing was added meanwhile
				delete(st.tasks, scope)
			}
		}
		st.working = storage.Scope{}
		st.settle()
		st.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (st *store) do(ctx context.Context, scope storage.Scope, t *task) error {
	var put []storage.Record
	var remove []storage.RecordRef
	for r, err := range st.disk.of(ctx, groupKey{scope: scope}) {
		if err != nil {
			return err
		}
		if t.erase {
			remove = append(remove, r.Ref())
			continue
		}
		rows, err := segmentRows(r.Value)
		changed := false
		if err == nil {
			rows, changed, err = rowsWithout(rows, t.ids)
		}
		if err != nil { // nobody can read it, and it may hold what is to be forgotten
			st.dropped.Add(1)
			remove = append(remove, r.Ref())
		} else if changed {
			r.Value = s2.Encode(nil, rows)
			put = append(put, r)
		}
	}
	if err := st.disk.put(ctx, put); err != nil {
		return err
	}
	return st.disk.remove(ctx, remove)
}

// rowsWithout returns rows without the lines of these memories.
func rowsWithout(rows []byte, ids map[string]struct{}) (out []byte, changed bool, err error) {
	for d := (decoder{rows}); len(d.rest) > 0; {
		h, encoded := d.row()
		if d.broken() {
			return nil, false, errEntry
		}
		e, err := decodeEntry(encoded)
		if err != nil {
			return nil, false, err
		}
		changed = e.forget(ids) || changed
		out = appendRow(out, h, e)
	}
	return out, changed, nil
}

// settleTimeout is how long Forget and Erase wait for the store.
const settleTimeout = 5 * time.Second

// settleNow commits what waits, tasks first, and lets the journal remove what
// it held of it.
func (st *store) settleNow() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	if !st.flush(ctx) {
		return
	}
	st.mu.Lock()
	j := st.journal
	st.mu.Unlock()
	if j != nil {
		j.settle(ctx)
	}
}
