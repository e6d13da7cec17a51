package badger

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// kek is the key-encryption key in use.
type kek struct {
	wrap []byte // wraps what lies in the keyring
	id   [8]byte
}

func newKEK(key []byte) (*kek, error) {
	wrap, err := hkdf.Key(sha256.New, key, nil, "remora keyring wrap v1", 32)
	if err != nil {
		return nil, err
	}
	id, err := hkdf.Key(sha256.New, key, nil, "remora keyring id v1", 8)
	if err != nil {
		return nil, err
	}
	return &kek{wrap: wrap, id: [8]byte(id)}, nil
}

// loadKEK takes the configured key or reads the key file. It never makes one.
func (c Config) loadKEK() (*kek, error) {
	if len(c.Key) > 0 {
		return newKEK(c.Key)
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s is not a key: %w", c.KeyFile, err)
	}
	return newKEK(key)
}

// makeKEK is loadKEK for a store without data: a key file that does not exist is generated, durably, before use.
func (c Config) makeKEK() (*kek, error) {
	k, err := c.loadKEK()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	key := make([]byte, KeySize)
	rand.Read(key)
	if err := makeDir(filepath.Dir(c.KeyFile)); err != nil {
		return nil, err
	}
	if err := writeDurably(c.KeyFile, append(hex.AppendEncode(nil, key), '\n')); err != nil {
		return nil, err
	}
	return c.loadKEK()
}
