//go:build linux || darwin || freebsd

package badger

import "golang.org/x/sys/unix"

// freeBytes is what an unprivileged process may still write.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(max(st.Bavail, 0)) * uint64(st.Bsize), nil
}
