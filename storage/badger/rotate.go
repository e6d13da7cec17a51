package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/remora-proxy/remora/storage"
)

// Rotation replaces the key-encryption key in two walks over the keyring, so that the configured key opens every file at
// every moment:
//
//  1. The mark "rotating" names the new key, and holds it wrapped by the old one, so that a store that is opened with the
//     old one meanwhile wraps what it adds by both. Each file is replaced by one that both keys open.
//  2. The new key takes its place: the new key file is renamed over the old one. Where the key is configured otherwise,
//     this is the user's to do, and the rest is done when the store is next opened.
//  3. Each file is replaced by one that only the new key opens. The mark goes.
//
// A crash in 1 leaves the old key in place, in 3 the new one; the store finishes 3 when it is opened with the new key.

// nextKeyFile is where the new key lies until it takes its place.
func (c Config) nextKeyFile() string { return c.KeyFile + ".next" }

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

	inPlace := newKeyFile == ""
	if inPlace && len(s.cfg.Key) > 0 {
		return done, fmt.Errorf("rotate key: the key is not in a file of its own: name a file for the new one: %w", storage.ErrInvalid)
	}
	if inPlace {
		newKeyFile = s.cfg.nextKeyFile()
	}
	next, err := makeKEK(newKeyFile)
	if err != nil {
		return done, fmt.Errorf("rotate key: %w", err)
	}
	done.From, done.To = se.keys.current().id.String(), next.id.String()
	if next.id == se.keys.current().id {
		return done, fmt.Errorf("rotate key: the key in %s is the one in use: %w", newKeyFile, storage.ErrInvalid)
	}
	if done.Keys, done.Unreadable, err = se.keys.wrapAlsoBy(ctx, next); err != nil {
		return done, fmt.Errorf("rotate key: %w", err)
	}
	if !inPlace {
		done.Pending = true
		return done, nil
	}
	if err := replaceKeyFile(newKeyFile, s.cfg.KeyFile); err != nil {
		return done, fmt.Errorf("rotate key: %w", err)
	}
	if done.Keys, done.Unreadable, err = se.keys.wrapOnlyBy(ctx, next); err != nil {
		return done, fmt.Errorf("rotate key: the new key is in place, the old one still opens some of the keyring: %w", err)
	}
	return done, nil
}

// replaceKeyFile is the point at which the new key takes its place. The old one is overwritten.
func replaceKeyFile(from, to string) error {
	if runtime.GOOS == "windows" { // where an open file cannot be replaced
		return os.Rename(from, to)
	}
	old, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer old.Close()
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(to)); err != nil {
		return err
	}
	if info, err := old.Stat(); err == nil { // as good as it goes: nothing depends on it
		if _, err := old.WriteAt(make([]byte, info.Size()), 0); err == nil {
			_ = old.Sync()
		}
	}
	return nil
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
	return k.rewrap(ctx)
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
	if keys, unreadable, err = k.rewrap(ctx); err != nil {
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

// rewrap replaces the files that are not wrapped as new ones are.
func (k *keyring) rewrap(ctx context.Context) (keys, unreadable int, err error) {
	if err := k.rewrapFile("secrets", k.secretsPath()); err != nil {
		return 0, 0, err
	}
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
