package main

import "os"

// fill writes zeros, where nothing cheaper takes a file's blocks.
func fill(f *os.File, size uint64) error {
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; {
		n := min(left, uint64(len(zeros)))
		if _, err := f.Write(zeros[:n]); err != nil {
			return err
		}
		left -= n
	}
	return f.Sync()
}
