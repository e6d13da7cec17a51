package proxy

import (
	"syscall"
	"unsafe"
)

// waiting is how many bytes have come on a socket and have not been read, of as many as its buffer takes.
func waiting(fd uintptr) int {
	var n int32
	_, _, errno := syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return 0
	}
	return int(n)
}
