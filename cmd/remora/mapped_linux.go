package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropProgram lets go of the parts of the program's file that the start has mapped in: two thirds of it run once, in what
// the dependencies do before main. They stay in the page cache, which both processes share, and come back at a touch.
// Only mappings that can't be written to and hold no page of this process' own are touched, so nothing can be lost.
func dropProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	var ranges [][2]uintptr
	var current [2]uintptr
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 5 && strings.Contains(fields[0], "-") { // start-end permissions offset device inode [path]
			current = [2]uintptr{}
			from, to, _ := strings.Cut(fields[0], "-")
			start, err1 := strconv.ParseUint(from, 16, 64)
			end, err2 := strconv.ParseUint(to, 16, 64)
			if len(fields) == 6 && fields[5] == self && !strings.Contains(fields[1], "w") && err1 == nil && err2 == nil {
				current = [2]uintptr{uintptr(start), uintptr(end)}
			}
			continue
		}
		if len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && current[1] > 0 {
			ranges = append(ranges, current)
		}
	}
	for _, r := range ranges {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, r[0], r[1]-r[0], syscall.MADV_DONTNEED)
	}
}

// mappedBytes is how much of mapped files is resident: the third field of proc_pid_statm(5).
func mappedBytes() uint64 {
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
