package storage

import (
	"context"
	"errors"
	"fmt"
)

// Verification is what [Verify] found in a scope.
type Verification struct {
	Memories int // that can be read
	Expired  int // that can be read, have expired, and wait to be removed
	Damaged  int // that are there and cannot be read
	Missing  int // that the store knows to have written and not removed, and that are not there
	// Altered: nothing is damaged or missing by number, and yet these are not the memories that were written: an older
	// state of one is in its place, or there are some that were not written.
	Altered bool
}

// Whole says that all that was written is there.
func (v Verification) Whole() bool { return v.Damaged == 0 && v.Missing == 0 && !v.Altered }

// verifyTries is how often a scope that changes meanwhile is read anew.
const verifyTries = 5

// Verify reads a whole scope and holds it against the digest that the store keeps. Without a [Digester] the error is
// errors.ErrUnsupported; of a scope that changes all the time it is [ErrUnavailable].
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
		v, got, err := readThrough(ctx, s, scope)
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
	return Verification{}, fmt.Errorf("verify: the scope changed meanwhile, %d times: %w", verifyTries, ErrUnavailable)
}

// readThrough scans a scope; the digest is that of all that could be read.
func readThrough(ctx context.Context, s Store, scope Scope) (v Verification, read Digest, err error) {
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
