package badger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/remora-proxy/remora/storage"
)

const (
	nonceSize = 12
	tagSize   = 16

	sealFormat     = 1
	sealHeaderSize = 1 + 8
)

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newMask derives the block cipher that masks fingerprints from a scope's data
// key.
func newMask(dataKey []byte) (cipher.Block, error) {
	key, err := hkdf.Key(sha256.New, dataKey, nil, "remora index mask v1", 16)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// appendSealed appends nonce | ciphertext | tag. Nonces are random, which is
// safe for 2^32 seals under one key: years of continuous writing to one scope.
func appendSealed(dst []byte, aead cipher.AEAD, plain, aad []byte) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, nonceSize)...)
	rand.Read(dst[n:])
	return aead.Seal(dst, dst[n:], plain, aad)
}

// appendOpened appends the plain text of what appendSealed returned.
func appendOpened(dst []byte, aead cipher.AEAD, sealed, aad []byte) ([]byte, error) {
	if len(sealed) < nonceSize+tagSize {
		return nil, fmt.Errorf("open sealed value: too short: %w", storage.ErrDamaged)
	}
	plain, err := aead.Open(dst, sealed[:nonceSize], sealed[nonceSize:], aad)
	if err != nil {
		return nil, fmt.Errorf("open sealed value: %w", storage.ErrDamaged)
	}
	return plain, nil
}

// sealVersioned returns the value of a memory: format 1 | version 8 | sealed.
// The header is authenticated together with the disk key, which contains the
// scope's hash, so a value opens only under its own disk key and version.
func sealVersioned(key *scopeKey, diskKey []byte, version uint64, plain []byte) []byte {
	v := make([]byte, 0, sealHeaderSize+nonceSize+len(plain)+tagSize)
	v = append(v, sealFormat)
	v = binary.BigEndian.AppendUint64(v, version)
	return appendSealed(v, key.aead, plain, valueAAD(nil, diskKey, v))
}

// openVersioned opens what sealVersioned returned, and appends the plain text
// to dst[:0].
func openVersioned(dst []byte, key *scopeKey, diskKey, value []byte) (plain []byte, version uint64, err error) {
	if len(value) < sealHeaderSize || value[0] != sealFormat {
		return nil, 0, fmt.Errorf("open sealed value: unknown format: %w", storage.ErrDamaged)
	}
	header := value[:sealHeaderSize]
	var buf [128]byte
	plain, err = appendOpened(dst[:0], key.aead, value[sealHeaderSize:], valueAAD(buf[:0], diskKey, header))
	return plain, binary.BigEndian.Uint64(header[1:]), err
}

// valueAAD appends what binds a value to its disk key. The first byte of the
// disk key determines the length of both parts.
func valueAAD(buf, diskKey, header []byte) []byte {
	buf = append(buf, diskKey...)
	return append(buf, header...)
}
