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

// newMask makes the block cipher of pointer from a scope's data key, whose own use is sealing.
func newMask(dataKey []byte) (cipher.Block, error) {
	key, err := hkdf.Key(sha256.New, dataKey, nil, "remora index mask v1", 16)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// appendSealed appends nonce | ciphertext | tag. Nonces are random: safe for 2^32 seals under one key, which one scope
// would need years of writing without pause to reach.
func appendSealed(dst []byte, aead cipher.AEAD, plain, aad []byte) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, nonceSize)...)
	rand.Read(dst[n:])
	return aead.Seal(dst, dst[n:], plain, aad)
}

// appendOpened appends the plain text of what appendSealed made.
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

// sealVersioned makes the value of a memory: format 1 | version 8 | sealed. The header is authenticated with the disk
// key, which holds the scope's hash, so a value opens only at its own place and under its own version.
func sealVersioned(key *scopeKey, diskKey []byte, version uint64, plain []byte) []byte {
	v := make([]byte, 0, sealHeaderSize+nonceSize+len(plain)+tagSize)
	v = append(v, sealFormat)
	v = binary.BigEndian.AppendUint64(v, version)
	return appendSealed(v, key.aead, plain, placeAAD(nil, diskKey, v))
}

// openVersioned appends the plain text to dst[:0].
func openVersioned(dst []byte, key *scopeKey, diskKey, value []byte) (plain []byte, version uint64, err error) {
	if len(value) < sealHeaderSize || value[0] != sealFormat {
		return nil, 0, fmt.Errorf("open sealed value: unknown format: %w", storage.ErrDamaged)
	}
	header := value[:sealHeaderSize]
	var buf [128]byte
	plain, err = appendOpened(dst[:0], key.aead, value[sealHeaderSize:], placeAAD(buf[:0], diskKey, header))
	return plain, binary.BigEndian.Uint64(header[1:]), err
}

// placeAAD is what binds a value to its place: both parts are of a length that the first byte of the disk key fixes.
func placeAAD(buf, diskKey, header []byte) []byte {
	buf = append(buf, diskKey...)
	return append(buf, header...)
}
