//go:build !amd64

package fence

func hasPlainBlocks() bool { return false }

func plainBlocks(string) int { return 0 }
