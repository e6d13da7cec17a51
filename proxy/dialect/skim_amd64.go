package dialect

import "golang.org/x/sys/cpu"

// lookFar says whether farQuote may be called, and lookWide whether it may be told to look at 128 bytes at once.
func lookFar() bool  { return cpu.X86.HasAVX2 }
func lookWide() bool { return cpu.X86.HasAVX512BW }

// farQuote returns the index from i on of the first quote in b that does not stand behind exactly one backslash, or an
// index up to which there is none, where fewer than 32 bytes are left. i must be at least 2. It looks at 64 bytes at once, or,
// wide, at 128.
//
//go:noescape
func farQuote(b []byte, i int, wide bool) int
