package badger

import (
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/remora-proxy/remora/storage"
)

// Scopes implements [storage.ScopeLister], in order of hashes. It reads the keyring alone, but for the last page, on which those that have
// data and no key count as damaged: their names are lost with the key.
func (s *Store) Scopes(ctx context.Context, after string, limit int) (page storage.ScopePage, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return page, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	tag := cursorTag{se.keys.namer, se.keys.hash("scopes")}
	from, err := parseCursor(after, tag)
	if err != nil {
		return page, err
	}
	last := ""
	err = se.keys.each(func(h hash16) error {
		name := string(h[:])
		if from != nil && name <= from.id {
			return ctx.Err()
		}
		if len(page.Scopes) >= storage.PageLimit(limit) {
			page.Next = cursor{id: last}.encode(tag)
			return fs.SkipAll
		}
		last = name
		scope, err := se.keys.scopeOf(h)
		switch {
		case errors.Is(err, fs.ErrNotExist): // erased meanwhile
		case errors.Is(err, storage.ErrDamaged):
			page.Damaged++
		case err != nil:
			return err
		default:
			page.Scopes = append(page.Scopes, scope)
		}
		return ctx.Err()
	})
	if err == nil && page.Next == "" {
		var lost int
		lost, err = se.keyless(ctx)
		page.Damaged += lost
	}
	return page, err
}

// each calls do for every scope that has a key, in order, until it returns an error; fs.SkipAll only ends it.
func (k *keyring) each(do func(h hash16) error) error {
	root := filepath.Join(k.dir, "scopes")
	groups, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, g := range groups {
		files, err := os.ReadDir(filepath.Join(root, g.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			name, err := hex.DecodeString(f.Name())
			if err != nil || len(name) != hashSize {
				continue // what a crash left of writing a file
			}
			if err := do(hash16(name)); errors.Is(err, fs.SkipAll) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// scopeOf reads what scope a key is of, past the cache.
func (k *keyring) scopeOf(h hash16) (storage.Scope, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	scope, _, err := k.readLocked(h)
	return scope, err
}
