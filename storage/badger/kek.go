package badger

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/storage/wire"
)

// kek is a key-encryption key.
type kek struct {
	wrap []byte // wraps the files of the keyring
	aead cipher.AEAD
	id   kekID
}

// kekID identifies a key-encryption key, and reveals nothing about it.
type kekID [8]byte

func (id kekID) String() string { return hex.EncodeToString(id[:]) }

func newKEK(key []byte) (*kek, error) {
	wrap, err := hkdf.Key(sha256.New, key, nil, "remora keyring wrap v1", 32)
	if err != nil {
		return nil, err
	}
	id, err := hkdf.Key(sha256.New, key, nil, "remora keyring id v1", 8)
	if err != nil {
		return nil, err
	}
	return kekOf(kekID(id), wrap)
}

func kekOf(id kekID, wrap []byte) (*kek, error) {
	aead, err := newAEAD(wrap)
	if err != nil {
		return nil, err
	}
	return &kek{wrap: wrap, aead: aead, id: id}, nil
}

// A file of the keyring is the magic and a list of wrappings: the content,
// sealed by one key, or by two while one replaces the other. Each is bound to
// the file's name. The id tells a wrong key from damage.
const (
	wrapMagic   = "RMK3"
	maxWraps    = 2
	minWrapSize = len(kekID{}) + 1
)

type wrapping struct {
	by     kekID
	sealed []byte
}

func (w *wrapping) code(c *wire.Coder) {
	for i := range w.by {
		c.Byte(&w.by[i])
	}
	c.Blob(&w.sealed)
}

func codeWrappings(c *wire.Coder, all *[]wrapping) {
	wire.List(c, all, minWrapSize, func(c *wire.Coder, w *wrapping) { w.code(c) })
}

func wrapAAD(name string) []byte { return []byte("keyring " + name) }

// wrap returns the content of a file that any of the keys opens.
func wrap(keks []*kek, name string, plain []byte) []byte {
	var all []wrapping
	for _, k := range keks {
		all = append(all, wrapping{k.id, appendSealed(nil, k.aead, plain, wrapAAD(name))})
	}
	c := wire.Writer([]byte(wrapMagic))
	codeWrappings(c, &all)
	return c.Bytes()
}

func parseWrappings(name string, content []byte) (all []wrapping, err error) {
	rest, ok := bytes.CutPrefix(content, []byte(wrapMagic))
	c := wire.Reader(rest)
	codeWrappings(c, &all)
	if !ok || !c.Done() || len(all) == 0 || len(all) > maxWraps {
		return nil, fmt.Errorf("keyring %s: %w", name, storage.ErrDamaged)
	}
	return all, nil
}

// wrappingKeys returns the ids of the keys that open a file, the newest last.
func wrappingKeys(name string, content []byte) (ids []kekID, err error) {
	all, err := parseWrappings(name, content)
	for _, w := range all {
		ids = append(ids, w.by)
	}
	return ids, err
}

// unwrap opens a file with the first key that fits. Without one it returns
// errWrongKey.
func unwrap(keks []*kek, name string, content []byte) ([]byte, error) {
	all, err := parseWrappings(name, content)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		i := slices.IndexFunc(keks, func(k *kek) bool { return k.id == w.by })
		if i < 0 {
			continue
		}
		plain, err := appendOpened(nil, keks[i].aead, w.sealed, wrapAAD(name))
		if err != nil {
			return nil, fmt.Errorf("keyring %s: %w", name, err)
		}
		return plain, nil
	}
	return nil, errWrongKey
}
