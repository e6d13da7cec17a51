package recall

import "golang.org/x/sys/cpu"

// findMost finds what next would, up to what needs a longer look, and returns how many stand in found then; n do already.
func (f *finding) findMost(n int) int {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI1 || !cpu.X86.HasBMI2 {
		return n
	}
	return findPlain(f, n)
}

// findPlain finds signs and plain words, those of at most 16 letters behind which stands what is sure to end them. It ends at what is
// neither, where found is full, and at the last block. Of a text of less than 16 bytes it finds nothing.
//
//go:noescape
func findPlain(f *finding, n int) int
