package badger

import (
	"context"
	"slices"
)

// A scope that has data always has a key: it is durable before the first of them is written, and an erasure, which destroys it, leaves
// its mark until they are gone. So data without key and mark have lost it, and no other one may be made beside them.

// toldKeyless bounds what is told in the log, once for each scope; beyond, more than once.
const toldKeyless = 1024

// orphans makes a keyring's holdsData, which tells in the log of the scopes that it finds.
func (s *Store) orphans(se *session) func(h hash16) bool {
	told := make(map[hash16]struct{})
	return func(h hash16) bool {
		if !se.holds(h) {
			return false
		}
		if _, known := told[h]; !known {
			if len(told) >= toldKeyless {
				clear(told)
			}
			told[h] = struct{}{}
			s.log.Error("a user's key is missing from the keyring while there are data of that user: nothing of them is read or added to until it is put back or the user is erased",
				"file", se.keys.scopePath(h))
		}
		return true
	}
}

// holds says whether there is anything of a scope: a seek for each level.
func (se *session) holds(h hash16) bool { return se.any(prefixesOf([]hash16{h})) }

// keyless counts the scopes that have data and no key. It goes from scope to scope, a seek for each on every level.
func (se *session) keyless(ctx context.Context) (n int, err error) {
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	seen := make(map[hash16]struct{})
	for _, level := range levels() {
		scopes, err := func() (scopes []hash16, err error) {
			it := newIterator(txn, []byte{level})
			defer it.Close()
			for it.Rewind(); it.Valid(); {
				k := it.Item().Key()
				if len(k) <= scopeEnd { // a mark of drop
					it.Next()
					continue
				}
				h := hash16(k[1:scopeEnd])
				scopes = append(scopes, h)
				it.Seek(behind(scopePrefix(level, h)))
				if err := ctx.Err(); err != nil {
					return nil, err
				}
			}
			return scopes, nil
		}()
		if err != nil {
			return n, err
		}
		for _, h := range scopes {
			if _, again := seen[h]; again {
				continue
			}
			seen[h] = struct{}{}
			lost, err := se.keys.lost(h)
			if err != nil {
				return n, err
			}
			if lost {
				n++
			}
		}
	}
	return n, nil
}

// lost says that a scope's key is not in the keyring, though it may be in the cache, while there are data of it.
func (k *keyring) lost(h hash16) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, path := range []string{k.scopePath(h), k.markPath(h)} {
		if there, err := exists(path); there || err != nil {
			return false, err
		}
	}
	return k.holdsData(h), nil // else it was erased just now
}

// behind is the first key that follows all those that begin with prefix, which is not all ones.
func behind(prefix []byte) []byte {
	k := slices.Clone(prefix)
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			return k[:i+1]
		}
	}
	return nil
}
