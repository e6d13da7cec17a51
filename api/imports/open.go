package imports

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens an export: a folder, a zip or one file. A zip is known by its
// first bytes. The caller closes it. A folder does not lead out of itself,
// whatever links are in it.
func Open(path string) (fs.FS, io.Closer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open export: %w", err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return nil, nil, fmt.Errorf("open export: %w", err)
		}
		return root.FS(), root, nil
	}
	if !info.Mode().IsRegular() { // reading a pipe may wait for ever
		return nil, nil, fmt.Errorf("open export: %s is neither a folder nor a file", quoted(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open export: %w", err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("open export: %w", err)
	}
	fsys, err := open(filepath.Base(path), f, info.Size())
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return fsys, f, nil
}

// OpenBytes opens an export that is in memory: a zip, known by its first bytes,
// or one file of this name.
func OpenBytes(name string, body []byte) (fs.FS, error) {
	return open(name, bytes.NewReader(body), int64(len(body)))
}

func open(name string, content io.ReaderAt, size int64) (fs.FS, error) {
	var magic [4]byte
	n, err := content.ReadAt(magic[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("open export: %w", err)
	}
	switch string(magic[:n]) {
	case "PK\x03\x04", "PK\x05\x06": // the latter is an empty one
		z, err := zip.NewReader(content, size)
		if err != nil {
			return nil, fmt.Errorf("open export: zip %s: %w", quoted(name), err)
		}
		return z, nil
	}
	return &single{content, fileInfo{baseName(name), size}}, nil
}
