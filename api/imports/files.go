package imports

import (
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// list finds the files of the export. Links, devices and what archivers of
// macOS add are no files of it.
func (r *reading) list() error {
	limit, what, entries := r.bounds.maxFiles, "folder", 0
	switch z := r.fsys.(type) {
	case *zip.Reader:
		r.zipped, entries = true, len(z.File)
	case *zip.ReadCloser:
		r.zipped, entries = true, len(z.File)
	}
	if r.zipped {
		limit, what = r.bounds.maxEntries, "zip"
	}
	if entries > limit {
		return tooMany(what, limit)
	}
	n := 0
	return fs.WalkDir(r.fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("list %s: %w", quoted(name), err)
		}
		if n++; n > limit+1 { // "." is one of them
			return tooMany(what, limit)
		}
		base := path.Base(name)
		switch {
		case entry.IsDir() && base == "__MACOSX":
			return fs.SkipDir
		case entry.Type().IsRegular() && !strings.HasPrefix(base, "._"):
			r.names = append(r.names, name)
		}
		return nil
	})
}

func tooMany(what string, limit int) error {
	return fmt.Errorf("the %s has more than %d files and folders, which is the most that is read", what, limit)
}

// open opens a file. A name that ends in .gz is decompressed.
func (r *reading) open(name string) (*meter, error) {
	f, err := r.fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", quoted(name), err)
	}
	m, err := r.meter(name, f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", quoted(name), plain(err))
	}
	return m, nil
}

func (r *reading) meter(name string, f fs.File) (*meter, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	m := &meter{from: f, file: f, maxFile: r.bounds.maxFile}
	if info.Size() > m.maxFile {
		return nil, m.tooLarge("the file", m.maxFile)
	}
	if r.zipped {
		m.left, m.maxTotal = &r.left, r.bounds.maxTotal
	}
	if strings.HasSuffix(name, ".gz") {
		if m.from, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// size writes a number of bytes for people.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// quoted is the name of a file in an error. Names in a zip are foreign text.
func quoted(name string) string {
	if len(name) > maxShownName {
		cut := maxShownName
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "..."
	}
	return strconv.Quote(name)
}
