//go:build !amd64

package dialect

// lookFar says whether farQuote may be called, and lookWide how.
func lookFar() bool  { return false }
func lookWide() bool { return false }

// farQuote is written for amd64 only.
func farQuote([]byte, int, bool) int { panic("not reached") }
