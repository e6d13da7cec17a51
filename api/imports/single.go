package imports

import (
	"io"
	"io/fs"
	"strings"
	"time"
)

// single is a file system with one file.
type single struct {
	content io.ReaderAt
	info    fileInfo
}

// Open opens the file, or the folder around it.
func (s *single) Open(name string) (fs.File, error) {
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	case name == ".":
		return &singleFolder{of: s}, nil
	case name == s.info.name:
		return &singleFile{io.NewSectionReader(s.content, 0, s.info.size), s.info}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

type singleFile struct {
	*io.SectionReader
	info fileInfo
}

func (f *singleFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *singleFile) Close() error               { return nil } // who opened the export closes it

type singleFolder struct {
	of   *single
	read bool
}

func (d *singleFolder) Stat() (fs.FileInfo, error) { return folderInfo{}, nil }
func (d *singleFolder) Close() error               { return nil }
func (d *singleFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// ReadDir lists the file.
func (d *singleFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.read {
		if n > 0 {
			return nil, io.EOF
		}
		return nil, nil
	}
	d.read = true
	return []fs.DirEntry{fs.FileInfoToDirEntry(d.of.info)}, nil
}

// fileInfo describes the file.
type fileInfo struct {
	name string
	size int64
}

func (f fileInfo) Name() string       { return f.name }
func (f fileInfo) Size() int64        { return f.size }
func (f fileInfo) Mode() fs.FileMode  { return 0o400 }
func (f fileInfo) ModTime() time.Time { return time.Time{} }
func (f fileInfo) IsDir() bool        { return false }
func (f fileInfo) Sys() any           { return nil }

// folderInfo describes the folder around a file.
type folderInfo struct{}

func (folderInfo) Name() string       { return "." }
func (folderInfo) Size() int64        { return 0 }
func (folderInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o500 }
func (folderInfo) ModTime() time.Time { return time.Time{} }
func (folderInfo) IsDir() bool        { return true }
func (folderInfo) Sys() any           { return nil }

// baseName returns the last element of a name that a client gave, which may be
// a path of any system.
func baseName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	if name == "" || name == "." || name == ".." || !fs.ValidPath(name) {
		return "export"
	}
	return name
}
