package listener

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestIsInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := DefaultConfig()
	cfg.Listen = l.Addr().String()
	if err := New(nil, cfg, nil).Listen(); !IsInUse(err) {
		t.Errorf("an address that is listened on: %v", err)
	}
	if IsInUse(nil) || IsInUse(errors.New("other")) {
		t.Error("another error")
	}
	windows := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.Errno(10048))}
	if !isInUse("windows", windows) || isInUse("linux", windows) {
		t.Error("the number that Windows reports")
	}
}
