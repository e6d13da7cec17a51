package mapped

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Resident is how many bytes of mapped files this process has resident: the third field of proc_pid_statm(5). 0 = not known.
func Resident() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[2], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// Release lets go of the pages of the files that wanted names by their paths, as proc_pid_maps(5) has them. They stay in the page cache and
// come back at a touch. Nothing can be lost: a private mapping that can be written to, or holds a page of this process' own, is
// left alone. What is let go of must not be unmapped meanwhile, for something else may be mapped in its place.
func Release(wanted func(path string) bool) error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // start-end permissions offset device inode path
		if len(fields) < 6 || !wanted(strings.Join(fields[5:], " ")) {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || start >= end {
			continue
		}
		shared := strings.HasSuffix(fields[1], "s") // what was written is the file's, not the mapping's
		if shared || !strings.Contains(fields[1], "w") && unwritten(start, end) {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
		}
	}
	return lines.Err()
}

// unwritten says whether all pages of a mapping that are there are the file's: proc_pid_pagemap(5). A loader or a debugger may have
// written to some before they were protected.
func unwritten(start, end uint64) bool {
	const (
		entry   = 8 // bytes of a page
		present = 1 << 63
		swapped = 1 << 62
		filed   = 1 << 61
	)
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return false
	}
	defer f.Close()
	page := uint64(os.Getpagesize())
	pages := bufio.NewReader(io.NewSectionReader(f, int64(start/page*entry), int64((end-start)/page*entry)))
	for range (end - start) / page {
		var e [entry]byte
		if _, err := io.ReadFull(pages, e[:]); err != nil {
			return false
		}
		if bits := binary.NativeEndian.Uint64(e[:]); bits&(present|swapped) != 0 && bits&filed == 0 {
			return false
		}
	}
	return true
}
