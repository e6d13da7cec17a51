package badger

import (
	"container/list"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/remora-proxy/remora/storage"
)

// keyring keeps the keys, apart from the data. All of its files are small, written whole, and wrapped by the
// key-encryption key:
//
//	secrets           the HMAC secret that disk keys are made with, and the install secret; they never change
//	scopes/ab/abcd…   per scope, named by its hash: the scope itself and its data key
//	erased/abcd…      an empty mark, made durable before the scope's key is destroyed and removed once its bytes are gone
//	destroyed/0123…   empty, named by the id of a data key that an erasure has destroyed: neither an older keyring nor a
//	                  backup brings back what it opens
//	rotating          while the key-encryption key is being replaced, the id of the new one
//
// kek.go has the form of a file.
type keyring struct {
	dir string
	namer
	install []byte
	write   func(path string, content []byte) error // writeDurably, but in tests

	// keks open what is there; what is written is wrapped by all of them. The first is the configured one, and keyFile where it was
	// found; "" = in no file.
	keks    []*kek
	keyFile string

	// mu is held over file access too, so that a reader cannot put a key back into the cache that has just been destroyed.
	mu     sync.Mutex
	recent *list.List // of *scopeKey, most recently used first, at most cachedKeys
	cached map[hash16]*list.Element
	empty  map[hash16]struct{} // scopes that were found to have neither key nor data, at most emptyScopes

	// holdsData says whether the store has anything of a scope; nil while there is no store. Called with mu held.
	holdsData func(h hash16) bool
}

// scopeKey is what a scope's values are sealed with.
type scopeKey struct {
	hash  hash16
	scope storage.Scope
	aead  cipher.AEAD
	mask  cipher.Block // hides fingerprints in index entries
	id    keyID
}

// cachedKeys bounds the unwrapped keys in memory, about 1.5 KiB each; beyond, the least recently used is read again.
const cachedKeys = 512

// emptyScopes bounds what is known to be empty, 16 bytes each; beyond, it is looked for anew.
const emptyScopes = 4096

const secretSize = 32

// keyID tells one data key from another, and nothing about it.
type keyID [8]byte

func newKeyID(dataKey []byte) (keyID, error) {
	id, err := hkdf.Key(sha256.New, dataKey, nil, "remora data key id v1", len(keyID{}))
	if err != nil {
		return keyID{}, err
	}
	return keyID(id), nil
}

// errNoKey: data of a scope are there and its key is not. It lies in the data rather than in the store's state, so that callers go on
// with other scopes.
var errNoKey = fmt.Errorf("key missing: there are data of this user, but their key is not in the keyring; put it back, no new one is made where there are data: %w",
	storage.ErrDamaged)

var errWrongKey = errors.New("the key is not the one that this store was made with")

// openKeyring opens the keyring in dir, or makes one if make is set.
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
		if err := kr.write(kr.secretsPath(), wrapped(kr.keks, "secrets", secrets)); err != nil {
			return nil, err
		}
	}
	content, err := os.ReadFile(kr.secretsPath())
	if err != nil {
		return nil, err
	}
	secrets, err := unwrapped(kr.keks, "secrets", content)
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

// scopeFileName is what the file of a scope is bound to.
func scopeFileName(h hash16) string { return "scope " + hex.EncodeToString(h[:]) }

func (k *keyring) destroyedPath(id keyID) string {
	return filepath.Join(k.dir, "destroyed", hex.EncodeToString(id[:]))
}

func (k *keyring) markPath(h hash16) string {
	return filepath.Join(k.dir, "erased", hex.EncodeToString(h[:]))
}

// find returns the key of a scope, nil if it has none and no data either; with data it is errNoKey.
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
		return nil, k.missedLocked(h)
	}
	if err != nil {
		return nil, err
	}
	return k.keepLocked(h, scope, key)
}

// missedLocked tells a scope that is new or erased, which is nil, from one that has lost its key. Where an erasure has destroyed it the
// mark stands until the data are gone too, so it is looked for first; nobody makes or destroys a key meanwhile.
func (k *keyring) missedLocked(h hash16) error {
	if _, known := k.empty[h]; known || k.holdsData == nil {
		return nil
	}
	if marked, err := exists(k.markPath(h)); marked || err != nil {
		return err
	}
	if k.holdsData(h) {
		return errNoKey
	}
	if len(k.empty) >= emptyScopes {
		clear(k.empty)
	}
	k.empty[h] = struct{}{}
	return nil
}

// readLocked reads the file of a scope.
func (k *keyring) readLocked(h hash16) (scope storage.Scope, key []byte, err error) {
	content, err := os.ReadFile(k.scopePath(h))
	if err != nil {
		return scope, nil, err
	}
	scope, key, err = openScopeFile(k.keks, h, content)
	if errors.Is(err, errWrongKey) { // the store's own secrets were opened: it is this file alone that does not belong here
		err = fmt.Errorf("keyring scope: wrapped by another key-encryption key: %w", storage.ErrDamaged)
	}
	return scope, key, err
}

func openScopeFile(keks []*kek, h hash16, content []byte) (scope storage.Scope, key []byte, err error) {
	plain, err := unwrapped(keks, scopeFileName(h), content)
	if err != nil {
		return scope, nil, err
	}
	for _, part := range []*string{&scope.Tenant, &scope.App, &scope.Project, &scope.User} {
		n, used := binary.Uvarint(plain)
		if used <= 0 || n > uint64(len(plain)-used) {
			return storage.Scope{}, nil, fmt.Errorf("keyring scope: %w", storage.ErrDamaged)
		}
		end := used + int(n)
		*part, plain = string(plain[used:end]), plain[end:]
	}
	if len(plain) != KeySize {
		return storage.Scope{}, nil, fmt.Errorf("keyring scope: %w", storage.ErrDamaged)
	}
	return scope, plain, nil
}

func (k *keyring) keepLocked(h hash16, scope storage.Scope, key []byte) (*scopeKey, error) {
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

// obtain is find, but makes and durably keeps a key where there is none.
func (k *keyring) obtain(scope storage.Scope) (*scopeKey, error) {
	h := k.scope(scope)
	k.mu.Lock()
	defer k.mu.Unlock()
	sk, err := k.findLocked(h)
	if sk != nil || err != nil {
		return sk, err
	}
	delete(k.empty, h)
	key := make([]byte, KeySize)
	rand.Read(key)
	var plain []byte
	for _, part := range []string{scope.Tenant, scope.App, scope.Project, scope.User} {
		plain = append(binary.AppendUvarint(plain, uint64(len(part))), part...)
	}
	path := k.scopePath(h)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := k.write(path, wrapped(k.keks, scopeFileName(h), append(plain, key...))); err != nil {
		return nil, err
	}
	return k.keepLocked(h, scope, key)
}

// destroy makes a scope's data unreadable for good. The scope must be marked first. The id of the key is noted before; a
// key that cannot be read has none, and no copy of it elsewhere is known for what it is.
func (k *keyring) destroy(h hash16) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, key, err := k.readLocked(h); err == nil {
		id, err := newKeyID(key)
		if err == nil {
			err = makeDir(filepath.Dir(k.destroyedPath(id)))
		}
		if err == nil {
			err = k.write(k.destroyedPath(id), nil)
		}
		if err != nil {
			return err
		}
	}
	if e, ok := k.cached[h]; ok {
		k.recent.Remove(e)
		delete(k.cached, h)
	}
	return errors.Join(shred(k.scopePath(h)), shred(k.scopePath(h)+".tmp"))
}

func (k *keyring) mark(h hash16) error { return writeDurably(k.markPath(h), nil) }

func (k *keyring) unmark(h hash16) error {
	return removeDurably(k.markPath(h))
}

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
