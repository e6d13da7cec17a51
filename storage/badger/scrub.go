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

	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// maxTable limits the tables that scrub reads, in bytes. Badger makes none that
// large with our options.
const maxTable = 64 << 20

func (d *dataFiles) scrub(ctx context.Context) (damaged []string, err error) {
	paths, err := d.glob("*.sst")
	if err != nil {
		return nil, err
	}
	var buffer []byte
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return damaged, err
		}
		buffer, err = scrubTable(path, buffer)
		if err != nil && d.isLive(path) { // else it is being made, or has been merged into another
			buffer, err = scrubTable(path, buffer) // it may just have been completed
			if err != nil {
				damaged = append(damaged, filepath.Base(path))
				d.damaged.Add(1)
				d.log.Error("a table is damaged: some of its memories are missing", "file", path, "error", err)
			}
		}
	}
	return damaged, nil
}

// isLive reports whether the manifest names a table, or cannot be read.
func (d *dataFiles) isLive(path string) bool {
	m, err := d.readManifest()
	id, ok := table.ParseFileID(filepath.Base(path))
	return err != nil || m.tables == nil || !ok || m.tables[id]
}

// scrubTable checks a table. One that is gone, because it was merged into
// another, is no error.
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
		return buffer, fmt.Errorf("%d bytes, larger than any table", info.Size())
	}
	buffer = slices.Grow(buffer[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, buffer)
	return buffer, err
}

// checkTable turns Badger's panics over a damaged table into errors.
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
