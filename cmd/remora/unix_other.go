//go:build !unix

package main

import (
	"io/fs"
	"math"
)

// privateFiles does nothing: files inherit the rights of their directory here.
func privateFiles() {}

// maxFiles returns how many files this process may have open.
func maxFiles() int { return math.MaxInt }

// diskBytes returns what a file takes on the disk.
func diskBytes(info fs.FileInfo) int64 { return info.Size() }
