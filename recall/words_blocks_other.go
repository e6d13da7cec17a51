//go:build !amd64

package recall

// readBlocks is readBlocksOneByOne.
func readBlocks(b []block, text string) (all byte) { return readBlocksOneByOne(b, text) }
