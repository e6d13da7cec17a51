// Package systemd speaks systemd's two small protocols: it takes over sockets
// that were opened for this process (sd_listen_fds), and reports what the
// process does (sd_notify), also to the watchdog. Where systemd did not start
// the process, nothing happens.
//
// The variables of both are removed from the environment when they are read, so
// that processes started from here do not take them for theirs.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// What a process reports.
const (
	Ready     = "READY=1"
	Stopping  = "STOPPING=1"
	alive     = "WATCHDOG=1"
	firstFile = 3  // the number of the first file that is passed
	maxFiles  = 16 // that are passed; more than Remora has listeners for
)

// Sockets are listeners that were opened for this process, by name.
type Sockets map[string]net.Listener

// Names of sockets (FileDescriptorName=). A socket without one of these names
// is the reverse listener's: systemd names it after its unit.
const (
	Reverse = "reverse"
	Forward = "forward"
	Control = "control"
	Health  = "health"
)

// Inherit returns the sockets that were passed to this process.
func Inherit() (Sockets, error) {
	pid, count, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range [...]string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // it fails for malformed names only
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > maxFiles {
		return nil, fmt.Errorf("take over sockets: LISTEN_FDS must be a number up to %d", maxFiles)
	}
	var files []*os.File
	for i := range n {
		files = append(files, os.NewFile(uintptr(firstFile+i), "socket"))
	}
	return listeners(files, strings.Split(names, ":"))
}

// listeners takes over files. It closes them: a listener has its own copy,
// which processes started from here do not inherit.
func listeners(files []*os.File, names []string) (Sockets, error) {
	all := Sockets{}
	var errs []error
	for i, f := range files {
		name := Reverse
		if i < len(names) {
			switch names[i] {
			case Forward, Control, Health:
				name = names[i]
			}
		}
		l, err := listen(f)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("take over socket %d (%s): %w", firstFile+i, name, err))
		case all[name] != nil:
			errs = append(errs, errors.Join(fmt.Errorf("take over socket %d: there are two for the listener %s; FileDescriptorName= names one of reverse, forward, control, health", firstFile+i, name), l.Close()))
		default:
			all[name] = l
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, nil
}

func listen(f *os.File) (net.Listener, error) {
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if l.Addr().Network() != "tcp" {
		return nil, errors.Join(errors.New("it is not a TCP socket"), l.Close())
	}
	return l, nil
}

// Take returns a socket, which then belongs to the caller, or nil.
func (s Sockets) Take(name string) net.Listener {
	l := s[name]
	delete(s, name)
	return l
}

// Address returns the address of a socket, or "".
func (s Sockets) Address(name string) string {
	if l := s[name]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// Close closes the sockets that were not taken.
func (s Sockets) Close() error {
	var errs []error
	for _, l := range s {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Notifier reports to systemd. The zero Notifier reports to nobody.
type Notifier struct {
	socket   string        // "" = nobody listens
	watchdog time.Duration // 0 = no watchdog
}

// NewNotifier returns the Notifier of this process.
func NewNotifier() Notifier {
	socket, usec, pid := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range [...]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name)
	}
	n := Notifier{socket: socket}
	if us, err := strconv.ParseInt(usec, 10, 64); err == nil && us > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// maxSend limits how long a manager is waited for that does not read what is
// reported. The report is lost then.
const maxSend = 2 * time.Second

// Send reports one state. A manager that does not listen is no failure.
func (n Notifier) Send(state string) error {
	if n.socket == "" {
		return nil
	}
	address := &net.UnixAddr{Name: n.socket, Net: "unixgram"} // net takes a leading @ for an abstract one
	conn, err := net.DialUnix("unixgram", nil, address)
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetWriteDeadline(time.Now().Add(maxSend)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// Run reports that this process is ready, feeds the watchdog if one waits, and
// reports that it stops when ctx ends. It returns the first failure.
//
// The watchdog learns that this process runs goroutines, and no more. A request
// to the listeners would prove more, but one that serves as many clients as it
// may, or whose store hangs, would be ended although it serves.
func (n Notifier) Run(ctx context.Context) error {
	err := n.Send(Ready)
	if n.watchdog > 0 && n.socket != "" {
		tick := time.NewTicker(max(n.watchdog/2, time.Millisecond))
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				if failed := n.Send(alive); err == nil {
					err = failed
				}
			}
		}
	}
	<-ctx.Done()
	if failed := n.Send(Stopping); err == nil {
		err = failed
	}
	return err
}
