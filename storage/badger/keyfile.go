package badger

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// KeySize is the length of a key-encryption key, in bytes.
const KeySize = 32

// ParseKey reads a key as people store it: 64 hex digits, or base64 of 32 bytes; space around it is ignored. The error
// never quotes the text.
func ParseKey(text []byte) ([]byte, error) {
	text = bytes.TrimSpace(text)
	if len(text) == hex.EncodedLen(KeySize) {
		key := make([]byte, KeySize)
		if _, err := hex.Decode(key, text); err == nil {
			return key, nil
		}
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := enc.DecodeString(string(text)); err == nil && len(key) == KeySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("a key is %d bytes as hex or base64", KeySize)
}

// NewKeyPlace is where a key goes that is made for a new store, always with mode 0600.
type NewKeyPlace int

const (
	// NewKeyInFile: in the key file, whose directory is made.
	NewKeyInFile NewKeyPlace = iota
	// NewKeyBeside: in a file of its own beside the key file, named by the key's id: the key file may be another store's.
	NewKeyBeside
	// NewKeyOnMount: in the key file, whose directory must be there. A volume or secret that is not mounted has none.
	NewKeyOnMount
	// NewKeyNowhere: none is made, since the place of the key file does not last as long as the data.
	NewKeyNowhere
)

// keyFileOf is where the key of an id lies beside the key file: no other key can ever have to go there.
func (c Config) keyFileOf(id kekID) string {
	ext := filepath.Ext(c.KeyFile)
	return strings.TrimSuffix(c.KeyFile, ext) + "-" + id.String() + ext
}

// KeyFiles are the key file and those beside it that are named by ids of keys, as far as they are there.
func KeyFiles(c Config) (files []string) {
	if len(c.Key) > 0 || c.KeyFile == "" {
		return nil
	}
	ext := filepath.Ext(c.KeyFile)
	stem := strings.TrimSuffix(filepath.Base(c.KeyFile), ext)
	entries, _ := os.ReadDir(filepath.Dir(c.KeyFile)) // what can't be listed may be read all the same
	if there, err := exists(c.KeyFile); there && err == nil {
		files = append(files, c.KeyFile)
	}
	for _, e := range entries {
		id, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ext), stem+"-")
		if raw, err := hex.DecodeString(id); ok && err == nil && len(raw) == len(kekID{}) {
			files = append(files, filepath.Join(filepath.Dir(c.KeyFile), e.Name()))
		}
	}
	return files
}

// keyFilesOf is where the keys of some ids are looked for.
func (c Config) keyFilesOf(ids []kekID) string {
	var files []string
	for _, id := range ids {
		files = append(files, c.keyFileOf(id))
	}
	return strings.Join(files, " or ")
}

// loadKEK finds the key of what is wrapped by any of ids, the newest of which is the last: the configured key, or that of the key
// file or a file beside it. Where none fits it is the first of those. It never makes one.
func (c Config) loadKEK(ids []kekID) (k *kek, file string, err error) {
	if len(c.Key) > 0 {
		k, err = newKEK(c.Key)
		return k, "", err
	}
	k, err = readKEK(c.KeyFile)
	for _, id := range slices.Backward(ids) {
		if err == nil && k.id == id {
			return k, c.KeyFile, nil
		}
		own, ownErr := readKEK(c.keyFileOf(id))
		if ownErr == nil && own.id == id {
			return own, c.keyFileOf(id), nil
		}
		if ownErr != nil && !errors.Is(ownErr, fs.ErrNotExist) && errors.Is(err, fs.ErrNotExist) {
			err = ownErr // what is there says more than what is not
		}
	}
	return k, c.KeyFile, err
}

func readKEK(path string) (*kek, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s is not a key: %w", path, err)
	}
	return newKEK(key)
}

// makeKEK is the key of a new store. Where there is none it is generated, durably, before use; undo takes it away again, as long as
// nothing is wrapped by it.
func (c Config) makeKEK() (k *kek, file string, undo func() error, err error) {
	undo = func() error { return nil }
	if len(c.Key) > 0 {
		k, err = newKEK(c.Key)
		return k, "", undo, err
	}
	if c.NewKey == NewKeyBeside {
		key := newKey()
		if k, err = newKEK(key); err != nil {
			return nil, "", undo, err
		}
		file = c.keyFileOf(k.id)
		undo = func() error { return shred(file) }
		return k, file, undo, writeKey(file, key)
	}
	if k, err = readKEK(c.KeyFile); !errors.Is(err, fs.ErrNotExist) {
		return k, c.KeyFile, undo, err
	}
	switch {
	case c.NewKey == NewKeyNowhere:
		return nil, "", undo, refuse("there is no key in %s, and none is made there: it is on the container's own file system, which goes away with the container, "+
			"while the memories are on a volume; mount a secret there, or set storage.keyFile (REMORA_STORAGE_KEY_FILE) to a file on a volume", c.KeyFile)
	case c.NewKey == NewKeyOnMount:
		if there, err := exists(filepath.Dir(c.KeyFile)); err != nil {
			return nil, "", undo, err
		} else if !there {
			return nil, "", undo, refuse("there is no key in %s, and its directory is missing: is a volume or a secret not mounted? Mount it, or make the directory for a key to be made in",
				c.KeyFile)
		}
	}
	k, err = readOrMakeKEK(c.KeyFile)
	return k, c.KeyFile, undo, err
}

// readOrMakeKEK reads a key file, or makes one.
func readOrMakeKEK(path string) (*kek, error) {
	k, err := readKEK(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	key := newKey()
	if k, err = newKEK(key); err != nil {
		return nil, err
	}
	temp := path + "." + k.id.String()
	if err := writeKey(temp, key); err != nil {
		return nil, err
	}
	// Another store may be making its key in the same file: the one that comes first has made it for both.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if there, existsErr := exists(path); there || existsErr != nil {
			return nil, errors.Join(err, existsErr, shred(temp))
		}
		if err := renameDurably(temp, path); err != nil { // a file system without links
			return nil, err
		}
		return readKEK(path)
	}
	if err := errors.Join(os.Remove(temp), syncDir(filepath.Dir(path))); err != nil { // not overwritten: path may be the same file
		return nil, err
	}
	return readKEK(path)
}

func newKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key)
	return key
}

func writeKey(path string, key []byte) error {
	if err := makeDir(filepath.Dir(path)); err != nil {
		return err
	}
	return writeDurably(path, append(hex.AppendEncode(nil, key), '\n'))
}
