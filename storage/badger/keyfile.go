package badger

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// maxKeyFile bounds what is read of a key file, in bytes. A longer one is no key.
const maxKeyFile = 4 << 10

// keyFileError is what is wrong with a key file, in words for the person who named it. What made it so is not in the text: that may have the
// name of a temporary file, which is another at every try.
type keyFileError struct {
	text string
	err  error
}

func (e *keyFileError) Error() string { return e.text }
func (e *keyFileError) Unwrap() error { return e.err }

// cannotUse says of a key file what can't be done with it, and why, as the system puts it.
func cannotUse(file, what string, err error) error {
	return &keyFileError{fmt.Sprintf("key file %s %s: %s", file, what, plainly(err)), err}
}

// plainly is an error of the system's without the file that it is about.
func plainly(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// readKeyFile reads a regular file, or what a link to one leads to, of at most maxKeyFile bytes. Another, such as a pipe, is not opened: it
// may have no end, or wait for a writer.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cannotUse(path, "can't be read", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &keyFileError{text: fmt.Sprintf("key file %s is no regular file", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cannotUse(path, "can't be read", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, cannotUse(path, "can't be read", err)
	}
	if len(text) > maxKeyFile {
		return nil, &keyFileError{text: fmt.Sprintf("key file %s is not a key: it is larger than %d bytes", path, maxKeyFile)}
	}
	return text, nil
}

func readKEK(path string) (*kek, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, &keyFileError{text: fmt.Sprintf("key file %s is not a key: it is empty", path)}
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, cannotUse(path, "is not a key", err)
	}
	return newKEK(key)
}

// keyOfNew is the key of a new store as far as it is there, which nothing is done for. Where there is none, missing says that one may be made.
func (c Config) keyOfNew() (k *kek, file string, missing bool, err error) {
	if len(c.Key) > 0 {
		k, err = newKEK(c.Key)
		return k, "", false, err
	}
	if c.NewKey == NewKeyBeside {
		return nil, c.KeyFile, true, nil
	}
	if k, err = readKEK(c.KeyFile); !errors.Is(err, fs.ErrNotExist) {
		return k, c.KeyFile, false, err
	}
	if link, existsErr := exists(c.KeyFile); link && existsErr == nil {
		return nil, c.KeyFile, false, &keyFileError{fmt.Sprintf("key file %s is a link that leads to no file", c.KeyFile), err}
	}
	switch {
	case c.NewKey == NewKeyNowhere:
		return nil, c.KeyFile, false, refuse("there is no key in %s, and none is made there: it is on the container's own file system, which goes away with the container, "+
			"while the memories are on a volume; mount a secret there, or set storage.keyFile (REMORA_STORAGE_KEY_FILE) to a file on a volume", c.KeyFile)
	case c.NewKey == NewKeyOnMount:
		if err := onMount(c.KeyFile); err != nil {
			return nil, c.KeyFile, false, err
		}
	}
	return nil, c.KeyFile, true, nil
}

// onMount refuses to make a key in a directory that is not there.
func onMount(file string) error {
	there, err := exists(filepath.Dir(file))
	if err != nil {
		return cannotUse(file, "can't be made", err)
	}
	if !there {
		return refuse("there is no key in %s, and its directory is missing: is a volume or a secret not mounted? Mount it, or make the directory for a key to be made in", file)
	}
	return nil
}

// CheckNewKey says whether a new store would have a key, which it neither makes nor needs a store for. makeIn is the directory in which one would
// be made; "" where there is one.
func CheckNewKey(c Config) (makeIn string, err error) {
	_, file, missing, err := c.keyOfNew()
	if err != nil || !missing {
		return "", err
	}
	return filepath.Dir(file), nil
}

// makeKEK is the key of a new store. Where there is none it is generated, durably, before use; undo takes it away again, as long as
// nothing is wrapped by it.
func (c Config) makeKEK() (k *kek, file string, undo func() error, err error) {
	undo = func() error { return nil }
	k, file, missing, err := c.keyOfNew()
	if err != nil || !missing {
		return k, file, undo, err
	}
	if c.NewKey == NewKeyBeside {
		key := newKey()
		if k, err = newKEK(key); err != nil {
			return nil, "", undo, err
		}
		file = c.keyFileOf(k.id)
		undo = func() error { return shred(file) }
		if err := writeKey(file, key); err != nil {
			return nil, "", undo, cannotUse(c.KeyFile, "can't have this store's own beside it", err)
		}
		return k, file, undo, nil
	}
	k, err = readOrMakeKEK(file)
	return k, file, undo, err
}

// readOrMakeKEK reads a key file, or makes one.
func readOrMakeKEK(path string) (*kek, error) {
	k, err := readKEK(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := makeKeyFile(path); err != nil {
		return nil, cannotUse(path, "can't be made", err)
	}
	return readKEK(path)
}

// makeKeyFile makes a key where there is no file, unless another store does so meanwhile.
func makeKeyFile(path string) error {
	key := newKey()
	k, err := newKEK(key)
	if err != nil {
		return err
	}
	temp := path + "." + k.id.String() // of its own, for two may be writing
	if err := writeKey(temp, key); err != nil {
		return err
	}
	// Another store may be making its key in the same file: the one that comes first has made it for both.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if there, existsErr := exists(path); there || existsErr != nil {
			return errors.Join(err, existsErr, shred(temp))
		}
		return renameDurably(temp, path) // a file system without links
	}
	return errors.Join(os.Remove(temp), syncDir(filepath.Dir(path))) // not overwritten: path may be the same file
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
