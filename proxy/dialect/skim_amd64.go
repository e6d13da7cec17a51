package dialect

import "golang.org/x/sys/cpu"

// lookFar says whether farQuote may be called.
func lookFar() bool { return cpu.X86.HasAVX2 }

// farQuote returns the index from i on of the first quote in b that does not stand behind exactly one backslash, or an
// index up to which there is none, where fewer than 32 bytes are left. i must be at least 2. It looks at 64 bytes at once.
//
//go:noescape
func farQuote(b []byte, i int) int
