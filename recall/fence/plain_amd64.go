package fence

import "golang.org/x/sys/cpu"

// hasPlainBlocks says whether plainBlocks may be called.
func hasPlainBlocks() bool { return cpu.X86.HasAVX2 }

// plainBlocks returns up to where there is nothing in text that matters: no byte but printable ASCII, no bracket, no two blanks
// in a row, and nowhere the beginning of the fence's name, but for one plainAhead bytes before, or less, that goes on with a
// byte that is not ASCII. Where text is such, that is plainAhead bytes before its end, else the beginning of 32 bytes in which
// something may be. It says nothing, which is 0, of less than plainLeast bytes.
//
//go:noescape
func plainBlocks(text string) int
