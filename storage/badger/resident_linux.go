package badger

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseTables lets go of the pages of tables that reading has mapped in. They stay in the page cache and come back at a
// touch. What is let go of must not be unmapped meanwhile, for something else may be mapped in its place: an iterator holds
// every table that is there when it begins, and what Badger lists before and after that was there.
func (s *Store) ReleaseTables(ctx context.Context) (err error) {
	se, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(se, debug.SetPanicOnFault(true), &err)
	before := make(map[uint64]bool)
	for _, t := range se.db.Tables() {
		before[t.ID] = true
	}
	txn := se.db.NewTransaction(false)
	defer txn.Discard()
	it := newIterator(txn, nil)
	defer it.Close()
	dir, err := filepath.EvalSymlinks(s.dataDir())
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	held := make(map[string]bool)
	for _, t := range se.db.Tables() {
		if before[t.ID] {
			held[filepath.Join(dir, fmt.Sprintf("%06d.sst", t.ID))] = true
		}
	}
	return eachMapping(func(start, end uintptr, permissions, path string) {
		if held[path] && strings.HasSuffix(permissions, "s") { // shared: what was written is the file's, not the mapping's
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	})
}

// eachMapping lists the files that this process has mapped: proc_pid_maps(5).
func eachMapping(found func(start, end uintptr, permissions, path string)) error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // start-end permissions offset device inode path
		if len(fields) < 6 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && start < end {
			found(uintptr(start), uintptr(end), fields[1], strings.Join(fields[5:], " "))
		}
	}
	return lines.Err()
}
