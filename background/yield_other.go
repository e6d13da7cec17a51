//go:build !linux

package background

import "runtime"

// yield lets other goroutines go first, at least.
func yield() { runtime.Gosched() }
