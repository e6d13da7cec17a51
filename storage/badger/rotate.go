package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// Rotation replaces the key-encryption key in two passes over the keyring, so
// that the configured key opens every file at every moment:
//
//  1. The mark "rotating" names the new key and holds it, wrapped by the old one, so that a store that is opened with the
//     old key meanwhile wraps new files by both. Each file is replaced by one that both keys open, the secrets last: a key
//     that opens those opens everything.
//  2. The new key takes its place. If the key is not configured by a file, the user does this, and the rest follows when
//     the store is next opened.
//  3. Each file is replaced by one that only the new key opens. The mark is removed.
//
// A crash in 1 leaves the old key in place, one in 3 the new key; the store
// finishes 3 when it is opened with the new key.
//
// Several stores may share a key file (one was restored into a second
// directory; two are configured alike), and it may be the only copy of a key.
// So no key is ever overwritten or removed: before the key file changes, its
// key is copied to a file next to it that is named by the key's id, where every
// store looks for its own.

// nextKeyFile returns the file of a new key until the key takes its place.
func (c Config) nextKeyFile(id kekID) string { return c.keyFileOf(id) + ".next" }

// RotateKey implements [storage.KeyRotator]. Writes to new scopes wait for
// single files at most.
func (s *Store) RotateKey(ctx context.Context, newKeyFile string) (done storage.KeyRotation, err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return done, err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	if !se.rotating.TryLock() {
		return done, unavailable("a key rotation is under way already")
	}
	defer se.rotating.Unlock()

	r := rotation{cfg: s.cfg, keys: se.keys}
	if newKeyFile == "" {
		err = r.replaceInFiles(ctx)
	} else {
		err = r.wrapByKeyIn(ctx, newKeyFile)
	}
	if err != nil {
		err = fmt.Errorf("rotate key: %w", err)
	}
	return r.done, err
}

// rotation is one call of RotateKey.
type rotation struct {
	cfg  Config
	keys *keyring
	done storage.KeyRotation
}

// wrapByKeyIn does the first pass for a key that is configured elsewhere.
func (r *rotation) wrapByKeyIn(ctx context.Context, newKeyFile string) error {
	if err := checkMount(newKeyFile); err != nil { // as for the first key of a store
		return fmt.Errorf("%w: %w", err, storage.ErrInvalid)
	}
	next, err := readOrMakeKEK(newKeyFile)
	if err != nil {
		return err
	}
	r.done.From, r.done.To = r.keys.current().id.String(), next.id.String()
	if next.id == r.keys.current().id {
		return fmt.Errorf("the key in %s is the one in use: %w", newKeyFile, storage.ErrInvalid)
	}
	r.done.Keys, r.done.Unreadable, err = r.keys.wrapAlsoBy(ctx, next)
	r.done.Pending = err == nil
	return err
}

// replaceInFiles does the whole rotation for a key in a file.
func (r *rotation) replaceInFiles(ctx context.Context) error {
	old, oldFile := r.keys.current(), r.keys.keyFile
	replace, err := r.ownsKeyFile(old, oldFile)
	if err != nil {
		return err
	}
	next, err := r.nextKEK()
	if err != nil {
		return err
	}
	r.done.From, r.done.To = old.id.String(), next.id.String()
	if r.done.Keys, r.done.Unreadable, err = r.keys.wrapAlsoBy(ctx, next); err != nil {
		if to, _, markErr := r.keys.rotatingTo(); markErr == nil && (to == nil || *to != next.id) {
			err = errors.Join(err, shred(r.cfg.nextKeyFile(next.id))) // nothing is wrapped by it
		}
		return err
	}
	if err := r.placeKey(old, next, oldFile, replace); err != nil {
		return fmt.Errorf("the new key cannot take its place, the old one still opens everything: %w; name another place for the new one with --new-key-file", err)
	}
	r.keys.keyFile = r.done.NewFile
	if r.done.Keys, r.done.Unreadable, err = r.keys.wrapOnlyBy(ctx, next); err != nil {
		return fmt.Errorf("the new key is in place, the old one still opens a part of the keyring: %w", err)
	}
	return nil
}

// ownsKeyFile reports whether the key file is this store's, as far as can be
// known, so that the new key takes the old one's place there. Otherwise the new
// key is put next to it.
func (r *rotation) ownsKeyFile(old *kek, oldFile string) (bool, error) {
	switch {
	case len(r.cfg.Key) > 0:
		return false, fmt.Errorf("the key is not in a file of its own: name a file for the new one: %w", storage.ErrInvalid)
	case oldFile != r.cfg.KeyFile, r.cfg.NewKey == NewKeyBeside:
		return false, nil
	}
	info, err := os.Lstat(oldFile)
	if err != nil {
		return false, err
	}
	if info.Mode()&os.ModeSymlink != 0 { // a mounted secret, for example, which is not Remora's to change
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

// nextKEK returns the key of an interrupted rotation, or a new one.
func (r *rotation) nextKEK() (*kek, error) {
	to, _, err := r.keys.rotatingTo()
	if err != nil {
		return nil, err
	}
	if to != nil {
		if k, err := readKEK(r.cfg.nextKeyFile(*to)); err == nil && k.id == *to {
			return k, nil
		}
	}
	key := newKey()
	k, err := newKEK(key)
	if err != nil {
		return nil, err
	}
	return k, writeKey(r.cfg.nextKeyFile(k.id), key)
}

// placeKey puts the new key where the store finds it. If it replaces the one in
// the key file, that is a copy: stores that share the file and are rotated at
// once then take the place from each other, but not the keys.
func (r *rotation) placeKey(old, next *kek, oldFile string, replace bool) error {
	from, own := r.cfg.nextKeyFile(next.id), r.cfg.keyFileOf(next.id)
	r.done.OldFile, r.done.NewFile = oldFile, own
	if replace {
		kept := r.cfg.keyFileOf(old.id)
		if err := copyKey(r.cfg.KeyFile, kept, old.id); err != nil {
			return err
		}
		if err := copyKey(from, r.cfg.KeyFile, next.id); err != nil { // fails if the file itself is a mount
			return err
		}
		r.done.OldFile, r.done.NewFile = kept, r.cfg.KeyFile
	}
	return renameDurably(from, own)
}

// copyKey copies the key of that id, unless the file holds it already.
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

// finishRotation finishes an interrupted rotation once the new key is
// configured. Until then new files are wrapped by both keys.
func finishRotation(ctx context.Context, cfg Config, k *keyring, log *slog.Logger) error {
	to, sealed, err := k.rotatingTo()
	if err != nil {
		return err
	}
	if to == nil {
		return shred(k.rotatingPath() + ".done") // a rotation was interrupted right at its end
	}
	current := k.current()
	if *to != current.id {
		log.Warn("a rotation of the key is under way: run it again, or configure the new key", "from", current.id.String(), "to", to.String())
		wrapKey, err := appendOpened(nil, current.aead, sealed, wrapAAD("rotating"))
		if err != nil {
			return fmt.Errorf("keyring rotating: %w", err)
		}
		next, err := kekOf(*to, wrapKey)
		if err == nil {
			k.setKEKs(k.current(), next)
		}
		return err
	}
	if left := cfg.nextKeyFile(current.id); k.keyFile != "" {
		if err := renameDurably(left, cfg.keyFileOf(current.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("the key has no file of its own next to the key file", "key", current.id.String(), "error", err)
		}
	}
	n, unreadable, err := k.wrapOnlyBy(ctx, current)
	if err != nil {
		return err
	}
	log.Info("the rotation of the key is finished", "key", to.String(), "keys", n, "unreadable", unreadable)
	return nil
}

const rotatingMagic = "RMR1"

func (k *keyring) rotatingPath() string { return filepath.Join(k.dir, "rotating") }

// rotatingTo returns the id of the key that a rotation is putting in place, and
// the key, sealed; nil if there is none.
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

func (k *keyring) current() *kek {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keks[0]
}

func (k *keyring) setKEKs(keks ...*kek) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keks = keks
}

// wrapAlsoBy wraps all files, also later ones, by the key in use and by next.
func (k *keyring) wrapAlsoBy(ctx context.Context, next *kek) (keys, unreadable int, err error) {
	current := k.current()
	mark := append([]byte(rotatingMagic), next.id[:]...)
	mark = appendSealed(mark, current.aead, next.wrap, wrapAAD("rotating"))
	if err := k.write(k.rotatingPath(), mark); err != nil {
		return 0, 0, err
	}
	k.setKEKs(current, next)
	if keys, unreadable, err = k.rewrapScopes(ctx); err != nil {
		return keys, unreadable, err
	}
	return keys, unreadable, k.rewrapFile("secrets", k.secretsPath())
}

// wrapOnlyBy wraps all files by next alone, which must open them all.
func (k *keyring) wrapOnlyBy(ctx context.Context, next *kek) (keys, unreadable int, err error) {
	k.setKEKs(next)
	if err := k.rewrapFile("secrets", k.secretsPath()); err != nil {
		return 0, 0, err
	}
	if keys, unreadable, err = k.rewrapScopes(ctx); err != nil {
		return keys, unreadable, err
	}
	return keys, unreadable, k.unmarkRotation()
}

// unmarkRotation renames the mark before it shreds it: half overwritten, it
// would be a damaged mark.
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

// rewrapScopes replaces the files of scopes that are not wrapped by the current
// keys.
func (k *keyring) rewrapScopes(ctx context.Context) (keys, unreadable int, err error) {
	err = k.each(func(h hash16) error {
		err := k.rewrapFile(scopeFileName(h), k.scopePath(h))
		switch {
		case errors.Is(err, storage.ErrDamaged), errors.Is(err, errWrongKey):
			unreadable++
		case err != nil && !errors.Is(err, fs.ErrNotExist): // it was just erased
			return err
		case err == nil:
			keys++
		}
		return ctx.Err()
	})
	return keys, unreadable, err
}

// rewrapFile holds mu, so that no key is destroyed between reading and writing
// it.
func (k *keyring) rewrapFile(name, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	by, err := wrappingKeys(name, content)
	if err != nil {
		return err
	}
	if slices.EqualFunc(by, k.keks, func(id kekID, kek *kek) bool { return id == kek.id }) {
		return nil
	}
	plain, err := unwrap(k.keks, name, content)
	if err != nil {
		return err
	}
	return k.write(path, wrap(k.keks, name, plain))
}
