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

// ParseKey parses a key: 64 hex digits, or base64 of 32 bytes, with surrounding
// white space ignored. The error never quotes the text.
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

// NewKeyPlace is where the key of a new store is put, always with mode 0600.
type NewKeyPlace int

const (
	// NewKeyInFile: in the key file, whose directory is made.
	NewKeyInFile NewKeyPlace = iota
	// NewKeyBeside: in a file of its own next to the key file, named by the
	// key's id, because the key file may belong to another store.
	NewKeyBeside
	// NewKeyOnMount: in the key file, whose directory must exist. A volume or
	// secret that is not mounted has none.
	NewKeyOnMount
	// NewKeyNowhere: no key is made, because the key file would not last as
	// long as the data.
	NewKeyNowhere
)

// keyFileOf returns the file next to the key file that only the key of this id
// is ever put in.
func (c Config) keyFileOf(id kekID) string {
	ext := filepath.Ext(c.KeyFile)
	return strings.TrimSuffix(c.KeyFile, ext) + "-" + id.String() + ext
}

// KeyFiles returns the key file and those next to it that are named by ids of
// keys, as far as they exist.
func KeyFiles(c Config) (files []string) {
	if len(c.Key) > 0 || c.KeyFile == "" {
		return nil
	}
	ext := filepath.Ext(c.KeyFile)
	stem := strings.TrimSuffix(filepath.Base(c.KeyFile), ext)
	entries, _ := os.ReadDir(filepath.Dir(c.KeyFile)) // the key file may be readable even if its directory is not
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

// keyFilesOf names the files in which the keys of some ids are looked for.
func (c Config) keyFilesOf(ids []kekID) string {
	var files []string
	for _, id := range ids {
		files = append(files, c.keyFileOf(id))
	}
	return strings.Join(files, " or ")
}

// loadKEK returns a key with one of the ids, the last one if possible: the
// configured key, that of the key file, or of a file next to it. If none fits
// it returns the first of those. It never makes a key.
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
			err = ownErr // a file that exists is the better explanation
		}
	}
	return k, c.KeyFile, err
}

// maxKeyFile is the maximum size of a key file, in bytes.
const maxKeyFile = 4 << 10

// keyFileError is a problem with a key file, in words for the person who
// configured it. The text leaves out the cause's own file names, which may be
// of temporary files and differ at every attempt.
type keyFileError struct {
	text string
	err  error
}

func (e *keyFileError) Error() string { return e.text }
func (e *keyFileError) Unwrap() error { return e.err }

// cannotUse returns an error that says what cannot be done with a key file and
// why.
func cannotUse(file, what string, err error) error {
	return &keyFileError{fmt.Sprintf("key file %s %s: %s", file, what, withoutPath(err)), err}
}

// withoutPath returns the text of a system error without its file name.
func withoutPath(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err.Error()
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

// readKeyFile reads a regular file, or a link to one, of at most maxKeyFile
// bytes. Other files, such as pipes, are not opened: they may be endless, or
// block.
func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cannotUse(path, "cannot be read", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &keyFileError{text: fmt.Sprintf("key file %s is not a regular file", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cannotUse(path, "cannot be read", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, cannotUse(path, "cannot be read", err)
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

// newStoreKey returns the existing key of a new store. If there is none,
// missing reports that one may be made. It changes nothing.
func (c Config) newStoreKey() (k *kek, file string, missing bool, err error) {
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
		return nil, c.KeyFile, false, &keyFileError{fmt.Sprintf("key file %s is a dangling link", c.KeyFile), err}
	}
	switch {
	case c.NewKey == NewKeyNowhere:
		return nil, c.KeyFile, false, refuse("there is no key in %s, and none is made there: the container's own file system is lost with the container, "+
			"while the memories are on a volume; mount a secret there, or set storage.keyFile (REMORA_STORAGE_KEY_FILE) to a file on a volume", c.KeyFile)
	case c.NewKey == NewKeyOnMount:
		if err := checkMount(c.KeyFile); err != nil {
			return nil, c.KeyFile, false, err
		}
	}
	return nil, c.KeyFile, true, nil
}

// checkMount refuses a key file whose directory does not exist.
func checkMount(file string) error {
	there, err := exists(filepath.Dir(file))
	if err != nil {
		return cannotUse(file, "cannot be made", err)
	}
	if !there {
		return refuse("there is no key in %s, and its directory is missing: is a volume or a secret not mounted? Mount it, or create the directory to have a key made there", file)
	}
	return nil
}

// CheckNewKey reports whether a new store would have a key, without making one.
// makeIn is the directory in which the key would be made, "" if it exists.
func CheckNewKey(c Config) (makeIn string, err error) {
	_, file, missing, err := c.newStoreKey()
	if err != nil || !missing {
		return "", err
	}
	return filepath.Dir(file), nil
}

// makeKEK returns the key of a new store. If there is none it is generated and
// made durable before use; undo removes it again, as long as it wraps nothing.
func (c Config) makeKEK() (k *kek, file string, undo func() error, err error) {
	undo = func() error { return nil }
	k, file, missing, err := c.newStoreKey()
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
			return nil, "", undo, cannotUse(c.KeyFile, "cannot have this store's own key next to it", err)
		}
		return k, file, undo, nil
	}
	k, err = readOrMakeKEK(file)
	return k, file, undo, err
}

// readOrMakeKEK reads a key file, or makes it.
func readOrMakeKEK(path string) (*kek, error) {
	k, err := readKEK(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := makeKeyFile(path); err != nil {
		return nil, cannotUse(path, "cannot be made", err)
	}
	return readKEK(path)
}

// makeKeyFile makes a key file if there is none. If another store makes it
// meanwhile, that one is kept.
func makeKeyFile(path string) error {
	key := newKey()
	k, err := newKEK(key)
	if err != nil {
		return err
	}
	temp := path + "." + k.id.String() // distinct, because two stores may be writing
	if err := writeKey(temp, key); err != nil {
		return err
	}
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if there, existsErr := exists(path); there || existsErr != nil {
			return errors.Join(err, existsErr, shred(temp))
		}
		return renameDurably(temp, path) // a file system without links
	}
	return errors.Join(os.Remove(temp), syncDir(filepath.Dir(path))) // not shredded: path may be the same file
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
