package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	badgerdb "github.com/dgraph-io/badger/v4"
)

// mendHeads clears the id of the encryption key in the heads of logs. Badger refuses to open where one names a key that
// it does not know, and ours name none: records are sealed before Badger sees them. What stands there instead is damage, or a
// block that a power cut kept from being written; the records behind it have sums of their own.
func (s *Store) mendHeads() error {
	for _, kind := range []string{"*.mem", "*.vlog"} {
		logs, err := filepath.Glob(filepath.Join(s.dataDir(), kind))
		if err != nil {
			return err
		}
		for _, path := range logs {
			if err := s.mendHead(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) mendHead(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var id [8]byte
	_, err = io.ReadFull(f, id[:])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // an empty or short one is verifyLog's
		err = nil
	case err == nil && binary.BigEndian.Uint64(id[:]) != 0:
		s.log.Warn("the head of a log was damaged and is mended; its records have sums of their own", "file", path)
		_, err = f.WriteAt(make([]byte, len(id)), 0)
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// mendRegistry puts a damaged register of Badger's encryption keys out of the way. Badger refuses to open with one, and
// makes a new one where there is none; ours are empty, since records are sealed before Badger sees them.
func (s *Store) mendRegistry() error {
	path := filepath.Join(s.dataDir(), badgerdb.KeyRegistryFileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(b) == registrySize && bytes.HasSuffix(b, []byte(registryText)) {
		return err
	}
	s.log.Warn("a file of no consequence was damaged and is made anew", "file", path)
	return os.Rename(path, path+".damaged")
}

// An initialisation vector of 16 bytes, then a text by which Badger tells whether it has the right key: in the clear where there is none.
const (
	registryText = "Hello Badger"
	registrySize = 16 + len(registryText)
)
