package storage

import (
	"context"
	"errors"
	"fmt"
)

// Verification is the result of [Verify] for one scope.
type Verification struct {
	Memories int // readable
	Expired  int // readable, expired, not removed yet
	Damaged  int // present but unreadable
	Missing  int // written, never removed, and absent
	// Altered is set if the numbers are right and the memories are not the ones
	// that were written: one is in an older state, or there are some that were
	// never written.
	Altered bool
}

// Whole reports whether everything that was written is there.
func (v Verification) Whole() bool { return v.Damaged == 0 && v.Missing == 0 && !v.Altered }

// verifyTries bounds how often Verify reads a scope that keeps changing.
const verifyTries = 5

// Verify reads a whole scope and compares it with the digest that the store
// keeps. If s is no [Digester] the error is errors.ErrUnsupported; if the scope
// changes during each of five attempts it is [ErrUnavailable].
func Verify(ctx context.Context, s Store, scope Scope) (Verification, error) {
	d, ok := s.(Digester)
	if !ok {
		return Verification{}, fmt.Errorf("verify: the store keeps no digests: %w", errors.ErrUnsupported)
	}
	for range verifyTries {
		want, err := d.Digest(ctx, scope)
		if err != nil {
			return Verification{}, err
		}
		v, got, err := scanAll(ctx, s, scope)
		if err != nil {
			return Verification{}, err
		}
		if after, err := d.Digest(ctx, scope); err != nil {
			return Verification{}, err
		} else if after != want {
			continue
		}
		v.Missing = max(0, want.Memories-got.Memories-v.Damaged)
		v.Altered = got.Memories+v.Damaged > want.Memories || v.Missing == 0 && v.Damaged == 0 && got != want
		return v, nil
	}
	return Verification{}, fmt.Errorf("verify: the scope changed during each of %d attempts: %w", verifyTries, ErrUnavailable)
}

// scanAll scans a scope and returns the digest of what could be read.
func scanAll(ctx context.Context, s Store, scope Scope) (v Verification, read Digest, err error) {
	for page, err := range ScanPages(ctx, s, scope, Query{}) {
		if err != nil {
			return v, read, err
		}
		for i := range page.Memories {
			read.Add(&page.Memories[i])
		}
		read = read.Plus(page.Expired)
		v.Memories += len(page.Memories)
		v.Expired += page.Expired.Memories
		v.Damaged += page.Damaged
	}
	return v, read, nil
}
