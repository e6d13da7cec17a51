//go:build !amd64

package fence

// hasPlainBlocks says whether plainBlocks may be called.
func hasPlainBlocks() bool { return false }

// plainBlocks is written for amd64 only.
func plainBlocks(string) int { return 0 }
