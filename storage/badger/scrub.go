package badger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// maxTable bounds the tables that Scrub looks at, in bytes. Badger makes none that large with our options.
const maxTable = 64 << 20

// Scrub reads every table and checks its sums, and returns the names of those that fail: what they held may be missing
// from scans, since Badger's iterators pass over a block that they can't read. Each counts in [Health] as damaged. It may run
// while the store is open, and reads files rather than mapped memory, so that a bad disk gives an error and no signal.
func (s *Store) Scrub(ctx context.Context) (damaged []string, err error) {
	paths, err := filepath.Glob(filepath.Join(s.dataDir(), "*.sst"))
	if err != nil {
		return nil, err
	}
	var buffer []byte
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return damaged, err
		}
		buffer, err = scrubTable(path, buffer)
		if err != nil && s.isNamed(path) {
			buffer, err = scrubTable(path, buffer) // it may have been in the making
		} else {
			err = nil // it is, or has been merged into another
		}
		if err != nil {
			damaged = append(damaged, filepath.Base(path))
			s.damaged.Add(1)
			s.log.Error("a table is damaged: some of its memories are missing", "file", path, "error", err)
		}
	}
	return damaged, nil
}

// isNamed says whether the manifest has a table, or can't be read.
func (s *Store) isNamed(path string) bool {
	named, _, err := namedTables(filepath.Join(s.dataDir(), badgerdb.ManifestFilename), badgerOptions(s.dataDir(), s.cfg.sizes(), s.log))
	id, ok := table.ParseFileID(filepath.Base(path))
	return err != nil || named == nil || !ok || named[id]
}

// scrubTable checks a table; one that has been merged into another and is gone is no error.
func scrubTable(path string, buffer []byte) ([]byte, error) {
	buffer, err := readTable(path, buffer)
	if errors.Is(err, fs.ErrNotExist) {
		return buffer, nil
	}
	if err == nil {
		err = checkTable(path, buffer)
	}
	return buffer, err
}

func readTable(path string, buffer []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return buffer, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return buffer, err
	}
	if info.Size() > maxTable {
		return buffer, fmt.Errorf("%d bytes are no table's size", info.Size())
	}
	buffer = slices.Grow(buffer[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, buffer)
	return buffer, err
}

// checkTable makes an error of what Badger panics over.
func checkTable(path string, content []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("checksum: %v", p)
		}
	}()
	id, ok := table.ParseFileID(filepath.Base(path))
	if !ok {
		return errors.New("not a table's name")
	}
	o := badgerOptions("", largeSizes(), nil)
	t, err := table.OpenInMemoryTable(content, id, &table.Options{
		BlockSize: o.BlockSize, Compression: options.None, ChkMode: options.NoVerification,
	})
	if err != nil {
		return err
	}
	return t.VerifyChecksum()
}
