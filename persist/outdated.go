package persist

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/storage"
)

// A fact that was superseded is recalled no more. The passage that it was said in still is, for what else it says, and would bring the
// statement back as if it held; so it bears storage.OutdatedTag as long as one of its statements is superseded. Of a fact in a model's
// words nobody knows where in the passage it stands, and the passage stays as it is.

// turnLock is held by whoever reads passages of turns and writes what it made of them, and tells the index, for the storer and the auditor
// both do: a new version of a turn that came between would give way to the old one. Whoever waits for a store that is away may hold it:
// the other could do nothing either.
type turnLock chan struct{}

func (l turnLock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l turnLock) unlock() { <-l }

// outdated lists the passages, of the turns whose facts were superseded or hold again, that are to have another tag than they have.
func (g *merging) outdated(ctx context.Context) (changed []storage.Memory, err error) {
	for turn := range g.turned {
		if changed, err = g.p.retagged(ctx, g.d.scope, turn, g.d.saysOld, changed); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// saysOld reports whether a passage of a turn holds a statement that was superseded.
func (d *dossier) saysOld(turn, passage string) bool {
	text := " " + normalised(words(passage)) + " "
	return slices.ContainsFunc(d.byTurn[turn], func(f *fact) bool { return f.superseded != "" && strings.Contains(text, " "+f.norm+" ") })
}

// retagged appends the passages of what the user said in a turn whose tag is not what outdated says.
func (p *Pipeline) retagged(ctx context.Context, scope storage.Scope, turn string, outdated func(turn, passage string) bool, to []storage.Memory) ([]storage.Memory, error) {
	for seq := 0; turn != ""; seq++ {
		m, err := p.store.Memory(ctx, scope, storage.TurnMemoryID(turn, seq))
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrDamaged), err == nil && m.Provenance.Role != storage.RoleUser: // they come first
			return to, nil
		case err != nil:
			return to, err
		}
		if now := outdated(turn, m.Text); now != slices.Contains(m.Tags, storage.OutdatedTag) {
			others := slices.DeleteFunc(slices.Clone(m.Tags), func(tag string) bool { return tag == storage.OutdatedTag })
			if m.Tags = others; now {
				m.Tags = append(others, storage.OutdatedTag)
			}
			m.UpdatedAt = 0 // the store's to set
			to = append(to, m)
		}
	}
	return to, nil
}
