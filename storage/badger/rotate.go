package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/remora-proxy/remora/storage"
)

// Rotation replaces the key-encryption key in two walks over the keyring, so that the configured key opens every file at
// every moment:
//
//  1. The mark "rotating" names the new key, and holds it wrapped by the old one, so that a store that is opened with the
//     old one meanwhile wraps what it adds by both. Each file is replaced by one that both keys open, the secrets last: what opens
//     those opens all.
//  2. The new key takes its place. Where the key is configured otherwise than by a file, this is the user's to do, and the rest is
//     done when the store is next opened.
//  3. Each file is replaced by one that only the new key opens. The mark goes.
//
// A crash in 1 leaves the old key in place, in 3 the new one; the store finishes 3 when it is opened with the new key.
//
// A key file may be that of several stores (one was restored into a second directory; two are configured alike), and what it holds
// may be the only copy. So no key is ever overwritten or removed: what has to make room in the key file is first kept beside it,
// named by its id, where every store looks for its own. Two files may hold the same key.

// nextKeyFile is where a new key lies until it takes its place. By its id it is of one rotation of one store.
func (c Config) nextKeyFile(id kekID) string { return c.keyFileOf(id) + ".next" }

// RotateKey implements [storage.KeyRotator]. Writers of new scopes wait for single files at most.
func (s *Store) RotateKey(ctx context.Context, newKeyFile string) (done storage.KeyRotation, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return done, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if !se.rotating.TryLock() {
		return done, unavailable("the key is being rotated already")
	}
	defer se.rotating.Unlock()

	if newKeyFile == "" {
		done, err = s.rotateInFiles(ctx, se.keys)
	} else {
		done, err = s.rotateTo(ctx, se.keys, newKeyFile)
	}
	if err != nil {
		err = fmt.Errorf("rotate key: %w", err)
	}
	return done, err
}

// rotateTo is for a key that is configured elsewhere.
func (s *Store) rotateTo(ctx context.Context, keys *keyring, newKeyFile string) (done storage.KeyRotation, err error) {
	if err := onMount(newKeyFile); err != nil { // as for the first key of a store
		return done, fmt.Errorf("%w: %w", err, storage.ErrInvalid)
	}
	next, err := readOrMakeKEK(newKeyFile)
	if err != nil {
		return done, err
	}
	done.From, done.To = keys.current().id.String(), next.id.String()
	if next.id == keys.current().id {
		return done, fmt.Errorf("the key in %s is the one in use: %w", newKeyFile, storage.ErrInvalid)
	}
	done.Keys, done.Unreadable, err = keys.wrapAlsoBy(ctx, next)
	done.Pending = err == nil
	return done, err
}

func (s *Store) rotateInFiles(ctx context.Context, keys *keyring) (done storage.KeyRotation, err error) {
	old, oldFile := keys.current(), keys.keyFile
	replace, err := s.replaces(old, oldFile)
	if err != nil {
		return done, err
	}
	next, err := s.nextKEK(keys)
	if err != nil {
		return done, err
	}
	done.From, done.To = old.id.String(), next.id.String()
	if done.Keys, done.Unreadable, err = keys.wrapAlsoBy(ctx, next); err != nil {
		if to, _, markErr := keys.rotatingTo(); markErr == nil && (to == nil || *to != next.id) {
			err = errors.Join(err, shred(s.cfg.nextKeyFile(next.id))) // nothing has come of it
		}
		return done, err
	}
	if done.OldFile, done.NewFile, err = s.placeKey(old, next, oldFile, replace); err != nil {
		return done, fmt.Errorf("the new key can't take its place, the old one still opens everything: %w; --new-key-file names another place for the new one", err)
	}
	keys.keyFile = done.NewFile
	if done.Keys, done.Unreadable, err = keys.wrapOnlyBy(ctx, next); err != nil {
		return done, fmt.Errorf("the new key is in place, the old one still opens some of the keyring: %w", err)
	}
	return done, nil
}

// replaces says that the new key takes the place of the old one in the key file, which is this store's as far as can be told. Else it
// goes beside it.
func (s *Store) replaces(old *kek, oldFile string) (bool, error) {
	switch {
	case len(s.cfg.Key) > 0:
		return false, fmt.Errorf("the key is not in a file of its own: name a file for the new one: %w", storage.ErrInvalid)
	case oldFile != s.cfg.KeyFile, s.cfg.NewKey == NewKeyBeside:
		return false, nil
	}
	info, err := os.Lstat(oldFile)
	if err != nil {
		return false, err
	}
	if info.Mode()&os.ModeSymlink != 0 { // as mounted secrets are, which are not Remora's to change
		to, err := filepath.EvalSymlinks(oldFile)
		if err != nil {
			return false, err
		}
		return false, fmt.Errorf("the key file %s is a symbolic link to %s: configure that file itself, or name a file for the new key with --new-key-file: %w",
			oldFile, to, storage.ErrInvalid)
	}
	there, err := readKEK(oldFile)
	if err != nil {
		return false, err
	}
	if there.id != old.id {
		return false, fmt.Errorf("the key in %s (%s) is not the one in use (%s), and may be another store's: put the right one back, or name a file for the new key with --new-key-file: %w",
			oldFile, there.id, old.id, storage.ErrInvalid)
	}
	return true, nil
}

// nextKEK is the key of the rotation that was cut short, or a new one.
func (s *Store) nextKEK(keys *keyring) (*kek, error) {
	to, _, err := keys.rotatingTo()
	if err != nil {
		return nil, err
	}
	if to != nil {
		if k, err := readKEK(s.cfg.nextKeyFile(*to)); err == nil && k.id == *to {
			return k, nil
		}
	}
	key := newKey()
	k, err := newKEK(key)
	if err != nil {
		return nil, err
	}
	return k, writeKey(s.cfg.nextKeyFile(k.id), key)
}

// placeKey brings the new key to where the store finds it. In a key file that is replaced it is a copy: stores that share the file and
// are rotated at once take it from each other, and not their keys.
func (s *Store) placeKey(old, next *kek, oldFile string, replace bool) (oldKept, placed string, err error) {
	from, own := s.cfg.nextKeyFile(next.id), s.cfg.keyFileOf(next.id)
	if !replace {
		return oldFile, own, renameDurably(from, own)
	}
	kept := s.cfg.keyFileOf(old.id)
	if err := copyKey(s.cfg.KeyFile, kept, old.id); err != nil {
		return "", "", err
	}
	if err := copyKey(from, s.cfg.KeyFile, next.id); err != nil { // fails where the file is a mount by itself, which has no place beside it
		return "", "", err
	}
	return kept, s.cfg.KeyFile, renameDurably(from, own)
}

// copyKey has the key of that id lie in the file to as well.
func copyKey(from, to string, id kekID) error {
	if k, err := readKEK(to); err == nil && k.id == id {
		return nil
	}
	text, err := readKeyFile(from)
	if err != nil {
		return err
	}
	key, err := ParseKey(text)
	if err != nil {
		return err
	}
	k, err := newKEK(key)
	if err != nil {
		return err
	}
	if k.id != id {
		return fmt.Errorf("the key in %s has just been changed: %w", from, storage.ErrInvalid)
	}
	return writeKey(to, key)
}

// finishRotation does what a rotation has left to do once the new key is configured; until then the new key is used
// beside the old one.
func (s *Store) finishRotation(ctx context.Context, k *keyring) error {
	to, sealed, err := k.rotatingTo()
	if err != nil {
		return err
	}
	if to == nil {
		return shred(k.rotatingPath() + ".done") // of a rotation that ended there
	}
	current := k.current()
	if *to != current.id {
		s.log.Warn("a rotation of the key is under way: run it again, or configure the new key", "from", current.id.String(), "to", to.String())
		wrap, err := appendOpened(nil, current.aead, sealed, wrapAAD("rotating"))
		if err != nil {
			return fmt.Errorf("keyring rotating: %w", err)
		}
		next, err := kekOf(*to, wrap)
		if err == nil {
			k.alsoBy(next)
		}
		return err
	}
	if left := s.cfg.nextKeyFile(current.id); k.keyFile != "" {
		if err := renameDurably(left, s.cfg.keyFileOf(current.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("the key has no file of its own beside the key file", "key", current.id.String(), "error", err)
		}
	}
	n, unreadable, err := k.wrapOnlyBy(ctx, current)
	if err != nil {
		return err
	}
	s.log.Info("the rotation of the key is finished", "key", to.String(), "keys", n, "unreadable", unreadable)
	return nil
}

func (k *keyring) rotatingPath() string { return filepath.Join(k.dir, "rotating") }

// rotatingTo is the key that a rotation has begun to put in place, and that key sealed; nil if none has.
func (k *keyring) rotatingTo() (to *kekID, sealed []byte, err error) {
	content, err := os.ReadFile(k.rotatingPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	rest, ok := bytes.CutPrefix(content, []byte(rotatingMagic))
	if !ok || len(rest) < len(kekID{}) {
		return nil, nil, fmt.Errorf("keyring rotating: %w", storage.ErrDamaged)
	}
	id := kekID(rest[:8])
	return &id, rest[8:], nil
}

const rotatingMagic = "RMR1"

func (k *keyring) current() *kek {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keks[0]
}

// wrapAlsoBy has everything, also what comes later, wrapped by the key in use and by next.
func (k *keyring) wrapAlsoBy(ctx context.Context, next *kek) (keys, unreadable int, err error) {
	mark := append([]byte(rotatingMagic), next.id[:]...)
	mark = appendSealed(mark, k.current().aead, next.wrap, wrapAAD("rotating"))
	if err := k.write(k.rotatingPath(), mark); err != nil {
		return 0, 0, err
	}
	k.alsoBy(next)
	if keys, unreadable, err = k.rewrapScopes(ctx); err != nil {
		return keys, unreadable, err
	}
	return keys, unreadable, k.rewrapFile("secrets", k.secretsPath())
}

func (k *keyring) alsoBy(next *kek) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keks = []*kek{k.keks[0], next}
}

// wrapOnlyBy has everything wrapped by next alone, which must open it all.
func (k *keyring) wrapOnlyBy(ctx context.Context, next *kek) (keys, unreadable int, err error) {
	k.mu.Lock()
	k.keks = []*kek{next}
	k.mu.Unlock()
	if err := k.rewrapFile("secrets", k.secretsPath()); err != nil {
		return 0, 0, err
	}
	if keys, unreadable, err = k.rewrapScopes(ctx); err != nil {
		return keys, unreadable, err
	}
	return keys, unreadable, k.unmarkRotation()
}

// unmarkRotation takes the mark away before it overwrites it: half overwritten it would be a damaged mark.
func (k *keyring) unmarkRotation() error {
	path, done := k.rotatingPath(), k.rotatingPath()+".done"
	if err := os.Rename(path, done); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syncDir(k.dir); err != nil {
		return err
	}
	return shred(done)
}

// rewrapScopes replaces the files of scopes that are not wrapped as new ones are.
func (k *keyring) rewrapScopes(ctx context.Context) (keys, unreadable int, err error) {
	err = k.each(func(h hash16) error {
		err := k.rewrapFile(scopeFileName(h), k.scopePath(h))
		switch {
		case errors.Is(err, storage.ErrDamaged), errors.Is(err, errWrongKey):
			unreadable++
		case err != nil && !errors.Is(err, fs.ErrNotExist): // erased meanwhile
			return err
		case err == nil:
			keys++
		}
		return ctx.Err()
	})
	return keys, unreadable, err
}

// rewrapFile holds mu, so that no key is destroyed between reading and writing it.
func (k *keyring) rewrapFile(name, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if by, err := wrappings(name, content); err != nil {
		return err
	} else if sameKeys(by, k.keks) {
		return nil
	}
	plain, err := unwrapped(k.keks, name, content)
	if err != nil {
		return err
	}
	return k.write(path, wrapped(k.keks, name, plain))
}

func sameKeys(by []wrapping, keks []*kek) bool {
	if len(by) != len(keks) {
		return false
	}
	for i := range by {
		if by[i].by != keks[i].id {
			return false
		}
	}
	return true
}
