package main

import (
	"context"
	"fmt"

	"github.com/remora-proxy/remora/storage"
)

// verifiable is a store whose memories can be compared with its own record of
// what it wrote.
type verifiable interface {
	storage.Store
	storage.Digester
	storage.ScopeLister
}

// verifyStore reads all memories. Any discrepancy is an error.
func verifyStore(ctx context.Context, store verifiable) (told string, err error) {
	var sum storage.Verification
	altered := 0
	scopes, unreadable, err := scopesOf(ctx, store, selection{})
	if err != nil {
		return "", err
	}
	for _, scope := range scopes {
		v, err := storage.Verify(ctx, store, scope)
		if err != nil {
			return "", err
		}
		sum.Memories += v.Memories
		sum.Damaged += v.Damaged
		sum.Missing += v.Missing
		if v.Altered {
			altered++
		}
	}
	told = fmt.Sprintf("%d memories of %d scopes verified", sum.Memories, len(scopes))
	if sum.Damaged+sum.Missing+altered+unreadable > 0 {
		return told, fmt.Errorf("%s; damaged: %d memories, missing: %d memories, not as they were written: %d scopes, keys unreadable or missing: %d scopes",
			told, sum.Damaged, sum.Missing, altered, unreadable)
	}
	return told, nil
}
