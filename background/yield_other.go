//go:build !linux

package background

import "runtime"

// yield lets at least other goroutines run.
func yield() { runtime.Gosched() }
