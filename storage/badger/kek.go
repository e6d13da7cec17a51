package badger

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/remora-proxy/remora/storage"
)

// kek is a key-encryption key.
type kek struct {
	wrap []byte // wraps what lies in the keyring
	aead cipher.AEAD
	id   kekID
}

// kekID tells one key-encryption key from another, and nothing about it.
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

// A file of the keyring is wrapped by one key, or by two while one takes the place of the other:
//
//	RMK1 | id of the wrapping key 8 | sealed
//	RMK2 | number of wraps 1 | for each: id 8 | length 2 | sealed
//
// All is bound to the file's name. The id tells a wrong key from damage.
const (
	oneWrapMagic   = "RMK1"
	manyWrapsMagic = "RMK2"
	maxWraps       = 2
)

type wrapping struct {
	by     kekID
	sealed []byte
}

func wrapAAD(name string) []byte { return []byte("keyring " + name) }

func wrapped(keks []*kek, name string, plain []byte) []byte {
	if len(keks) == 1 {
		b := append([]byte(oneWrapMagic), keks[0].id[:]...)
		return appendSealed(b, keks[0].aead, plain, wrapAAD(name))
	}
	b := append([]byte(manyWrapsMagic), byte(len(keks)))
	for _, k := range keks {
		sealed := appendSealed(nil, k.aead, plain, wrapAAD(name))
		b = append(b, k.id[:]...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(sealed)))
		b = append(b, sealed...)
	}
	return b
}

// wrappings takes a file apart.
func wrappings(name string, content []byte) (all []wrapping, err error) {
	damaged := fmt.Errorf("keyring %s: %w", name, storage.ErrDamaged)
	if rest, ok := bytes.CutPrefix(content, []byte(oneWrapMagic)); ok && len(rest) > 8 {
		return []wrapping{{kekID(rest[:8]), rest[8:]}}, nil
	}
	rest, ok := bytes.CutPrefix(content, []byte(manyWrapsMagic))
	if !ok || len(rest) == 0 || rest[0] > maxWraps {
		return nil, damaged
	}
	n := int(rest[0])
	rest = rest[1:]
	for range n {
		if len(rest) < 10 {
			return nil, damaged
		}
		size := int(binary.BigEndian.Uint16(rest[8:]))
		if len(rest) < 10+size {
			return nil, damaged
		}
		all = append(all, wrapping{kekID(rest[:8]), rest[10 : 10+size]})
		rest = rest[10+size:]
	}
	if len(rest) != 0 || n == 0 {
		return nil, damaged
	}
	return all, nil
}

// wrappedByKeys are the ids of the keys that open a file, in the order in which they came to it.
func wrappedByKeys(name string, content []byte) (ids []kekID, err error) {
	all, err := wrappings(name, content)
	for _, w := range all {
		ids = append(ids, w.by)
	}
	return ids, err
}

// unwrapped opens a file with whichever of the keys fits, else it is errWrongKey.
func unwrapped(keks []*kek, name string, content []byte) ([]byte, error) {
	all, err := wrappings(name, content)
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
