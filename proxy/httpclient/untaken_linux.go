package httpclient

import (
	"time"

	"golang.org/x/sys/unix"
)

// tcpInfo returns what the kernel knows of a connection, nil if it says
// nothing.
func (c *conn) tcpInfo() (info *unix.TCPInfo) {
	_ = c.raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = i
		}
	})
	return info
}

// tcpClosed is the state of a connection that was reset (tcp_states.h).
const tcpClosed = 7

// How long the reset of a connection is waited for that the upstream had
// closed before the request came: the way there and back.
const (
	minResetWait = 20 * time.Millisecond
	maxResetWait = 500 * time.Millisecond
)

// markTaken records how much the upstream has taken so far.
func (c *conn) markTaken() {
	c.taken, c.takes = 0, false
	if info := c.tcpInfo(); info != nil && info.Bytes_acked > 0 { // kernels before 4.1 do not count it
		c.taken, c.takes = info.Bytes_acked, true
	}
}

// untaken reports whether a request on a reused connection, which has ended
// without a byte of an answer, was provably not read: the upstream's system has
// acknowledged nothing of it and has reset the connection, because nobody was
// there to take it any more.
func (c *conn) untaken() bool {
	if !c.takes {
		return false
	}
	for began, wait := time.Now(), time.Duration(0); ; time.Sleep(time.Millisecond) {
		info := c.tcpInfo()
		if info == nil || info.Bytes_acked != c.taken {
			return false
		}
		if info.State == tcpClosed {
			return true
		}
		if wait == 0 {
			wait = min(max(2*time.Duration(info.Rtt)*time.Microsecond, minResetWait), maxResetWait)
		}
		if time.Since(began) > wait {
			return false
		}
	}
}
