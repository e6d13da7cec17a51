//go:build linux && (amd64 || arm64) && !race

package proxy

import (
	"syscall"
	"unsafe"
)

// recvNow and sendNow are recv and send on a socket, and never wait: the scheduler is not told that they are under way. It would wake
// the runtime's monitor for each of them on a machine that was at rest, whose thread then looks for what to do every 20 us for a
// while. That was two fifths of what an event of a stream cost.

func recvNow(fd uintptr, p []byte, flags int) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_RECVFROM,
		fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags|syscall.MSG_DONTWAIT), 0, 0)
	return int(n), err
}

func sendNow(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_SENDTO,
		fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	return int(n), err
}

// sendPiecesNow is sendNow of the first pieces, none of which is empty.
func sendPiecesNow(fd uintptr, pieces [][]byte) (int, syscall.Errno) {
	var vec [8]syscall.Iovec
	n, left := 0, mostAtOnce
	for n < min(len(pieces), len(vec)) && left > 0 {
		size := min(len(pieces[n]), left)
		vec[n].Base = unsafe.SliceData(pieces[n])
		vec[n].SetLen(size)
		n, left = n+1, left-size
	}
	msg := syscall.Msghdr{Iov: &vec[0], Iovlen: uint64(n)}
	sent, _, err := syscall.RawSyscall6(syscall.SYS_SENDMSG,
		fd, uintptr(unsafe.Pointer(&msg)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0, 0)
	return int(sent), err
}
