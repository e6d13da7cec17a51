package persist

import (
	"errors"
	"fmt"

	"github.com/remora-proxy/remora/persist/facts"
	"github.com/remora-proxy/remora/storage"
)

// ErrCurrent reports that nothing took the place of a memory, or that it is no
// fact. It wraps storage.ErrInvalid.
var ErrCurrent = fmt.Errorf("no fact that another took the place of: %w", storage.ErrInvalid)

// preferGroup is the prefix of the groups of revisions that a preference
// leaves: undoing one restores what holds, and nothing else.
const preferGroup = "prefer-"

// maxSuccessors bounds how far a chain of superseded facts is followed. Beyond
// it, what holds in the place of a fact is not found, and stays.
const maxSuccessors = 100

// successor returns the fact that holds in the place of a superseded one, nil
// if there is none.
func (e *erasure) successor(of *storage.Memory) (*storage.Memory, error) {
	id := of.SupersededBy
	for range maxSuccessors {
		if id == "" || id == of.ID {
			return nil, nil
		}
		m, err := e.store.Memory(e.ctx, e.scope, id)
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged):
			return nil, nil
		case err != nil:
			return nil, err
		case m.SupersededBy != "":
			id = m.SupersededBy
			continue
		case m.DeletedAt != 0 || m.ValidTo != 0 || m.Kind != storage.KindFact:
			return nil, nil
		}
		return &m, nil
	}
	return nil, nil
}

// relink changes which of the scope's facts hold, and tags the passages that
// they were said in. before are the facts as they are; it returns them as they
// are stored then.
func (e *erasure) relink(before []storage.Memory, change func(*facts.Changes)) (changed []storage.Memory, err error) {
	if err := e.passages.lock(e.ctx); err != nil {
		return nil, err
	}
	defer e.passages.unlock()
	known, err := e.knownFacts()
	if err != nil {
		return nil, err
	}
	defer delete(e.auditor.scopes, e.scope) // to be read again
	changes := facts.NewChanges(known.Set, e.store, e.cfg.Facts.Config)
	change(changes)
	passages, err := changes.Passages(e.ctx)
	if err != nil {
		return nil, err
	}
	_, err = e.write(append(passages, changes.Written()...)...)
	for _, m := range changes.Written() {
		for i := range before {
			if before[i].ID == m.ID && before[i].SupersededBy == "" && m.SupersededBy != "" { // also if it failed: it may have happened
				e.notifyErased(m.ID)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range before {
		m, err := e.store.Memory(e.ctx, e.scope, before[i].ID)
		if err != nil {
			return nil, err
		}
		changed = append(changed, m)
	}
	return changed, nil
}

// undoPreference takes a preference back, or brings it back. It fails with
// storage.ErrNotFound if a later statement has taken the place of one of the
// facts since.
func (e *erasure) undoPreference(last []Revision, cause Cause) ([]storage.Memory, error) {
	var now, before []storage.Memory
	for _, r := range last {
		m, err := e.store.Memory(e.ctx, e.scope, r.Before.ID)
		if errors.Is(err, storage.ErrNotFound) {
			continue // its bytes are gone
		}
		if err != nil {
			return nil, err
		}
		since, err := e.supersededSince(&m, r.At)
		if err != nil {
			return nil, err
		}
		if since {
			return nil, storage.ErrNotFound
		}
		now, before = append(now, m), append(before, r.Before)
	}
	if len(now) == 0 {
		return nil, storage.ErrNotFound
	}
	if err := e.keepRevisions(OpUndo, last[0].Group, cause, now...); err != nil {
		return nil, err
	}
	return e.relink(now, func(c *facts.Changes) {
		for i := range now {
			c.Relink(&now[i], &before[i], storage.Now())
		}
	})
}

// supersededSince reports whether a fact that was made after a time has taken
// the place of another.
func (e *erasure) supersededSince(m *storage.Memory, at storage.Time) (bool, error) {
	if m.SupersededBy == "" {
		return false, nil
	}
	by, err := e.store.Memory(e.ctx, e.scope, m.SupersededBy)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return false, nil
	}
	return err == nil && by.CreatedAt > at, err
}
