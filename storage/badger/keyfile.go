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

// loadKEK takes the configured key or reads the key file. It never makes one.
func (c Config) loadKEK() (*kek, error) {
	if len(c.Key) > 0 {
		return newKEK(c.Key)
	}
	return readKEK(c.KeyFile)
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

// makeKEK is loadKEK for a store without data: a key file that does not exist is generated, durably, before use.
func (c Config) makeKEK() (*kek, error) {
	if len(c.Key) > 0 {
		return newKEK(c.Key)
	}
	return makeKEK(c.KeyFile)
}

func makeKEK(path string) (*kek, error) {
	k, err := readKEK(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	key := make([]byte, KeySize)
	rand.Read(key)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := writeDurably(path, append(hex.AppendEncode(nil, key), '\n')); err != nil {
		return nil, err
	}
	return readKEK(path)
}
