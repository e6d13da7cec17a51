//go:build !unix

package main

import "math"

// maxFiles returns how many files this process may have open.
func maxFiles() int { return math.MaxInt }
