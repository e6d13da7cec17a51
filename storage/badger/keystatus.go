package badger

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyStatus is what there is to tell of a keyring. It holds no key.
type KeyStatus struct {
	Key        string         // id of the key in use
	KeyFile    string         // where it was found, "" = in no file
	RotatingTo string         // id of the key that a rotation has begun to put in its place, "" = none
	Scopes     int            // data keys
	WrappedBy  map[string]int // files that each key opens, by its id
	Unreadable int            // files that the configured key does not open, or that are damaged
	Destroyed  int            // data keys that erasures have destroyed
}

// ReadKeyStatus tells about the keyring of a store, open or not.
func ReadKeyStatus(cfg Config) (KeyStatus, error) {
	keys, err := openKeyringOf(cfg)
	if err != nil {
		return KeyStatus{}, err
	}
	st := KeyStatus{Key: keys.keks[0].id.String(), KeyFile: keys.keyFile, WrappedBy: map[string]int{}}
	look := func(name, path string) error {
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		all, err := wrappings(name, content)
		for _, w := range all {
			st.WrappedBy[w.by.String()]++
		}
		if err == nil {
			_, err = unwrapped(keys.keks, name, content)
		}
		if err != nil {
			st.Unreadable++
		}
		return nil
	}
	if err := look("secrets", keys.secretsPath()); err != nil {
		return KeyStatus{}, err
	}
	err = keys.each(func(h hash16) error {
		st.Scopes++
		return look(scopeFileName(h), keys.scopePath(h))
	})
	if err != nil {
		return KeyStatus{}, err
	}
	if to, _, err := keys.rotatingTo(); err == nil && to != nil {
		st.RotatingTo = to.String()
	}
	destroyed, err := keys.destroyed()
	st.Destroyed = len(destroyed)
	return st, err
}

// openKeyringOf opens the keyring of a store that need not be closed: files of a keyring are only ever replaced whole.
func openKeyringOf(cfg Config) (*keyring, error) {
	s := New(cfg, nil)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := s.existingKeyring()
	if err != nil {
		return nil, s.explain(err)
	}
	if keys == nil {
		return nil, refuse("there is no keyring in %s", cfg.Dir)
	}
	return keys, nil
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
