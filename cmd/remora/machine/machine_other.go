//go:build !unix

package machine

import (
	"io/fs"
	"math"
)

// PrivateFiles does nothing: files inherit the rights of their directory here.
func PrivateFiles() {}

// MaxFiles returns how many files this process may have open.
func MaxFiles() int { return math.MaxInt }

// DiskBytes returns what a file takes on the disk.
func DiskBytes(info fs.FileInfo) int64 { return info.Size() }

// KeepOwner does nothing: files inherit the rights of their directory here.
func KeepOwner(string, func() []string) (give func() error) { return func() error { return nil } }
