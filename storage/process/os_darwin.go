package process

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// peerUser is the user at the other end.
func peerUser(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Xucred
	if failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); failed != nil || err != nil {
		return 0, errors.Join(failed, err)
	}
	return int(cred.Uid), nil
}
