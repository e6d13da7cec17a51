//go:build unix

package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// manager is a fake systemd that hears what is reported.
func manager(t *testing.T) (hear func() string) {
	t.Helper()
	t.Chdir(t.TempDir())
	const path = "notify" // a socket's path must be short
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestNotify(t *testing.T) {
	for _, test := range []struct {
		name, usec, pid string
		watched         bool
	}{
		{name: "no watchdog"},
		{"a watchdog", "2000", "", true},
		{"a watchdog of this process", "2000", strconv.Itoa(os.Getpid()), true},
		{"a watchdog of another process", "2000", "1", false},
		{"no number", "soon", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			hear := manager(t)
			t.Setenv("WATCHDOG_USEC", test.usec)
			t.Setenv("WATCHDOG_PID", test.pid)
			n := NewNotifier()
			for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
				if _, set := os.LookupEnv(name); set {
					t.Errorf("%s is left to other processes", name)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- n.Run(ctx) }()
			if got := hear(); got != "READY=1" {
				t.Errorf("first %q", got)
			}
			if test.watched {
				for range 3 {
					if got := hear(); got != "WATCHDOG=1" {
						t.Errorf("then %q", got)
					}
				}
			}
			stop()
			last := hear()
			for last == "WATCHDOG=1" && test.watched {
				last = hear()
			}
			if last != "STOPPING=1" {
				t.Errorf("last %q", last)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A manager that reads nothing stops nobody.
func TestManagerHangs(t *testing.T) {
	manager(t)
	n := NewNotifier()
	began := time.Now()
	for sent := 0; ; sent++ { // until the socket's queue is full
		err := n.Send(alive)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("after %d: %v", sent, err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := NewNotifier().Run(ctx); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if err := NewNotifier().Run(ctx); err == nil {
		t.Error("a socket that is missing is not reported")
	}
}

// socket returns a file of a listener.
func socket(t *testing.T, network, address string) (*os.File, string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	return f, l.Addr().String()
}

func TestListeners(t *testing.T) {
	one, a := socket(t, "tcp", "127.0.0.1:0")
	two, b := socket(t, "tcp", "127.0.0.1:0")
	all, err := listeners([]*os.File{one, two}, []string{"remora.socket", "control"})
	if err != nil {
		t.Fatal(err)
	}
	if all.Address(Reverse) != a || all.Address(Control) != b || all.Address(Health) != "" {
		t.Errorf("got %q and %q, want %q and %q", all.Address(Reverse), all.Address(Control), a, b)
	}
	l := all.Take(Reverse)
	if l == nil || all.Take(Reverse) != nil {
		t.Fatal("a socket is taken once")
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", b); err == nil {
		t.Error("a socket that nobody took is still open")
	}
	c, err := net.Dial("tcp", a)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_ = l.Close()
}

func TestWrongSockets(t *testing.T) {
	one, _ := socket(t, "tcp", "127.0.0.1:0")
	two, _ := socket(t, "tcp", "127.0.0.1:0")
	if _, err := listeners([]*os.File{one, two}, []string{"remora.socket", "other.socket"}); err == nil {
		t.Error("two sockets for one listener are accepted")
	}
	t.Chdir(t.TempDir())
	path, _ := socket(t, "unix", "socket") // its path must be short
	if _, err := listeners([]*os.File{path}, nil); err == nil {
		t.Error("a Unix socket is accepted")
	}
	regular, err := os.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listeners([]*os.File{regular}, nil); err == nil {
		t.Error("a regular file is accepted")
	}
}

func TestInheritNothing(t *testing.T) {
	t.Setenv("LISTEN_PID", "1") // another process's
	t.Setenv("LISTEN_FDS", "1")
	t.Setenv("LISTEN_FDNAMES", "x")
	all, err := Inherit()
	if err != nil || len(all) > 0 {
		t.Errorf("got %v, %v", all, err)
	}
	if _, set := os.LookupEnv("LISTEN_FDS"); set {
		t.Error("LISTEN_FDS is left to other processes")
	}
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("LISTEN_FDS", "many")
	if _, err := Inherit(); err == nil {
		t.Error("no number is accepted")
	}
}
