package badger

import (
	"container/list"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// keyring keeps the keys, apart from the data. Its files are small, written
// whole, and wrapped by the key-encryption key (kek.go):
//
//	secrets           the HMAC secret of disk keys, and the install secret; they never change
//	scopes/ab/abcd…   per scope, named by its hash: the scope itself and its data key
//	erased/abcd…      an empty mark: written before the scope's key is destroyed, removed once its bytes are gone
//	destroyed/0123…   empty, named by the id of a data key that an erasure has destroyed; neither an older keyring nor a
//	                  backup brings back what it opens
//	rotating          while the key-encryption key is being replaced, the id of the new one
type keyring struct {
	dir string
	namer
	install []byte
	write   func(path string, content []byte) error // writeDurably, except in tests

	// keks open the files; new files are wrapped by all of them. The first is
	// the configured one, found in keyFile; "" = in no file.
	keks    []*kek
	keyFile string

	population population

	// mu is held during file access too, so that no reader caches a key that
	// has just been destroyed.
	mu     sync.Mutex
	recent *list.List // of *scopeKey, most recently used first, at most cachedKeys
	cached map[hash16]*list.Element
	empty  map[hash16]struct{} // scopes known to have neither key nor data, at most emptyScopes

	// hasData reports whether the store holds anything of a scope; nil while
	// the store is not open. Called with mu held.
	hasData func(h hash16) bool
}

// scopeKey seals the values of a scope.
type scopeKey struct {
	hash  hash16
	scope storage.Scope
	aead  cipher.AEAD
	mask  cipher.Block // hides fingerprints in index entries
	id    keyID
}

const (
	cachedKeys  = 512  // unwrapped keys in memory, about 1.5 KiB each
	emptyScopes = 4096 // 16 bytes each; at the limit all are forgotten
	secretSize  = 32
)

// keyID identifies a data key, and reveals nothing about it.
type keyID [8]byte

func newKeyID(dataKey []byte) (keyID, error) {
	id, err := hkdf.Key(sha256.New, dataKey, nil, "remora data key id v1", len(keyID{}))
	if err != nil {
		return keyID{}, err
	}
	return keyID(id), nil
}

// errNoKey is returned for a scope that has data and no key. It wraps
// ErrDamaged, not ErrUnavailable, so that callers continue with other scopes.
var errNoKey = fmt.Errorf("key missing: there is data of this user, but the user's key is not in the keyring; put it back: no new one is made where there is data: %w",
	storage.ErrDamaged)

var errWrongKey = errors.New("the key is not the one that this store was made with")

// openKeyring opens the keyring in dir, or makes one if create is set.
func openKeyring(dir string, k *kek, keyFile string, create bool) (*keyring, error) {
	kr := &keyring{
		dir: dir, keks: []*kek{k}, keyFile: keyFile, write: writeDurably,
		recent: list.New(), cached: make(map[hash16]*list.Element), empty: make(map[hash16]struct{}),
	}
	if create {
		for _, d := range []string{dir, filepath.Join(dir, "scopes"), filepath.Join(dir, "erased")} {
			if err := makeDir(d); err != nil {
				return nil, err
			}
		}
		secrets := make([]byte, 2*secretSize)
		rand.Read(secrets)
		if err := kr.write(kr.secretsPath(), wrap(kr.keks, "secrets", secrets)); err != nil {
			return nil, err
		}
	}
	content, err := os.ReadFile(kr.secretsPath())
	if err != nil {
		return nil, err
	}
	secrets, err := unwrap(kr.keks, "secrets", content)
	if err != nil {
		return nil, err
	}
	if len(secrets) != 2*secretSize {
		return nil, fmt.Errorf("keyring secrets: %w", storage.ErrDamaged)
	}
	kr.namer = newNamer(secrets[:secretSize])
	kr.install = secrets[secretSize:]
	return kr, nil
}

func (k *keyring) secretsPath() string { return filepath.Join(k.dir, "secrets") }

func (k *keyring) scopePath(h hash16) string {
	name := hex.EncodeToString(h[:])
	return filepath.Join(k.dir, "scopes", name[:2], name)
}

// scopeFileName is the name that the file of a scope is bound to.
func scopeFileName(h hash16) string { return "scope " + hex.EncodeToString(h[:]) }

func (k *keyring) destroyedPath(id keyID) string {
	return filepath.Join(k.dir, "destroyed", hex.EncodeToString(id[:]))
}

func (k *keyring) markPath(h hash16) string {
	return filepath.Join(k.dir, "erased", hex.EncodeToString(h[:]))
}

// find returns the key of a scope, or nil if the scope has neither key nor
// data. If it has data alone, the error is errNoKey.
func (k *keyring) find(h hash16) (*scopeKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.findLocked(h)
}

func (k *keyring) findLocked(h hash16) (*scopeKey, error) {
	if e, ok := k.cached[h]; ok {
		k.recent.MoveToFront(e)
		return e.Value.(*scopeKey), nil
	}
	scope, key, err := k.readLocked(h)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, k.checkEmptyLocked(h)
	}
	if err != nil {
		return nil, err
	}
	return k.cacheLocked(h, scope, key)
}

// checkEmptyLocked tells a scope that is new or erased, for which it returns
// nil, from one that has lost its key. The mark of an erasure stays until the
// data are gone too, so it is looked for first; mu keeps keys from being made
// or destroyed meanwhile.
func (k *keyring) checkEmptyLocked(h hash16) error {
	if _, known := k.empty[h]; known || k.hasData == nil {
		return nil
	}
	if marked, err := exists(k.markPath(h)); marked || err != nil {
		return err
	}
	if k.hasData(h) {
		return errNoKey
	}
	if len(k.empty) >= emptyScopes {
		clear(k.empty)
	}
	k.empty[h] = struct{}{}
	return nil
}

// readLocked reads the file of a scope, past the cache.
func (k *keyring) readLocked(h hash16) (scope storage.Scope, key []byte, err error) {
	content, err := os.ReadFile(k.scopePath(h))
	if err != nil {
		return scope, nil, err
	}
	scope, key, err = openScopeFile(k.keks, h, content)
	if errors.Is(err, errWrongKey) { // the key opened the store's own secrets, so this file is foreign
		err = fmt.Errorf("keyring scope: wrapped by another key-encryption key: %w", storage.ErrDamaged)
	}
	return scope, key, err
}

// scopeFile is the content of a scope's file.
type scopeFile struct {
	scope storage.Scope
	key   []byte
}

func (f *scopeFile) code(c *wire.Coder) {
	for _, part := range []*string{&f.scope.Tenant, &f.scope.App, &f.scope.Project, &f.scope.User} {
		wire.String(c, part)
	}
	c.Blob(&f.key)
}

func openScopeFile(keks []*kek, h hash16, content []byte) (scope storage.Scope, key []byte, err error) {
	plain, err := unwrap(keks, scopeFileName(h), content)
	if err != nil {
		return scope, nil, err
	}
	var f scopeFile
	c := wire.Reader(plain)
	if f.code(c); !c.Done() || len(f.key) != KeySize {
		return scope, nil, fmt.Errorf("keyring scope: %w", storage.ErrDamaged)
	}
	return f.scope, f.key, nil
}

func (k *keyring) cacheLocked(h hash16, scope storage.Scope, key []byte) (*scopeKey, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	mask, err := newMask(key)
	if err != nil {
		return nil, err
	}
	id, err := newKeyID(key)
	if err != nil {
		return nil, err
	}
	sk := &scopeKey{hash: h, scope: scope, aead: aead, mask: mask, id: id}
	k.cached[h] = k.recent.PushFront(sk)
	if k.recent.Len() > cachedKeys {
		oldest := k.recent.Remove(k.recent.Back()).(*scopeKey)
		delete(k.cached, oldest.hash)
	}
	return sk, nil
}

// findOrMake is find, and makes a key, durably, if the scope has neither key
// nor data.
func (k *keyring) findOrMake(scope storage.Scope) (*scopeKey, error) {
	h := k.scope(scope)
	k.mu.Lock()
	defer k.mu.Unlock()
	sk, err := k.findLocked(h)
	if sk != nil || err != nil {
		return sk, err
	}
	if err := k.admit(scope); err != nil {
		return nil, err
	}
	sk, err = k.makeLocked(h, scope)
	if err != nil {
		k.population.count(scope.Tenant, -1)
	}
	return sk, err
}

func (k *keyring) makeLocked(h hash16, scope storage.Scope) (*scopeKey, error) {
	delete(k.empty, h)
	f := scopeFile{scope, make([]byte, KeySize)}
	rand.Read(f.key)
	c := wire.Writer(nil)
	f.code(c)
	path := k.scopePath(h)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := k.write(path, wrap(k.keks, scopeFileName(h), c.Bytes())); err != nil {
		return nil, err
	}
	return k.cacheLocked(h, scope, f.key)
}

// destroy makes a scope's data permanently unreadable. The scope must be marked
// first. The key's id is recorded before; a key that cannot be read has no id,
// so copies of it elsewhere will not be recognised.
func (k *keyring) destroy(h hash16) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	scope, key, err := k.readLocked(h)
	if err == nil {
		id, err := newKeyID(key)
		if err == nil {
			err = k.recordDestroyed(id)
		}
		if err != nil {
			return err
		}
	}
	if e, ok := k.cached[h]; ok {
		k.recent.Remove(e)
		delete(k.cached, h)
	}
	k.expel(h, scope)
	return errors.Join(shred(k.scopePath(h)), shred(k.scopePath(h)+".tmp"))
}

func (k *keyring) recordDestroyed(id keyID) error {
	path := k.destroyedPath(id)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return k.write(path, nil)
}

// destroyed lists the ids of the data keys that erasures have destroyed.
func (k *keyring) destroyed() (ids []keyID, err error) {
	files, err := os.ReadDir(filepath.Join(k.dir, "destroyed"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if id, err := hex.DecodeString(f.Name()); err == nil && len(id) == len(keyID{}) {
			ids = append(ids, keyID(id))
		}
	}
	return ids, err
}

// mark records that the erasure of a scope has begun, unmark that it has ended.
func (k *keyring) mark(h hash16) error   { return writeDurably(k.markPath(h), nil) }
func (k *keyring) unmark(h hash16) error { return removeDurably(k.markPath(h)) }

// marked lists the scopes whose erasure has begun and not ended.
func (k *keyring) marked() ([]hash16, error) {
	files, err := os.ReadDir(filepath.Join(k.dir, "erased"))
	if err != nil {
		return nil, err
	}
	var marked []hash16
	for _, f := range files {
		if name, err := hex.DecodeString(f.Name()); err == nil && len(name) == hashSize {
			marked = append(marked, hash16(name))
		}
	}
	return marked, nil
}

// each calls do for every scope that has a key, in order, until it returns an
// error; fs.SkipAll ends it without one.
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
				continue // a temporary file
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

// scopeOf reads the scope of a key, past the cache.
func (k *keyring) scopeOf(h hash16) (storage.Scope, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	scope, _, err := k.readLocked(h)
	return scope, err
}

// idOf reads the id of a scope's key, past the cache.
func (k *keyring) idOf(h hash16) (keyID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, key, err := k.readLocked(h)
	if err != nil {
		return keyID{}, err
	}
	return newKeyID(key)
}

// isValid reports whether a scope has exactly this key, and no erasure has
// destroyed it or is under way.
func (k *keyring) isValid(h hash16, id keyID) (bool, error) {
	for _, path := range []string{k.destroyedPath(id), k.markPath(h)} {
		if there, err := exists(path); there || err != nil {
			return false, err
		}
	}
	key, err := k.find(h)
	if errors.Is(err, storage.ErrDamaged) {
		return false, nil
	}
	return key != nil && key.id == id, err
}

// keyLost reports whether a scope has data and its key is missing from the
// keyring, even if it is still cached.
func (k *keyring) keyLost(h hash16) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, path := range []string{k.scopePath(h), k.markPath(h)} {
		if there, err := exists(path); there || err != nil {
			return false, err
		}
	}
	return k.hasData(h), nil // false if it was erased just now
}
