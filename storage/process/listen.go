package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// Names of sockets in the directory of the store.
const (
	// StoreSocket is served by whoever has the store open.
	StoreSocket = "remora.sock"
	// FrontSocket is served by who uses it, for what the store alone can't do.
	FrontSocket = "serve.sock"
)

// maxPath is the longest address of a socket that every system takes, without the zero byte at its end.
const maxPath = 103

// maxPeers bounds connections to the socket. More are hung up on.
const maxPeers = 16

// Listen serves commands on a socket of that name in dir until ctx ends. Whoever calls it has the store open, by itself or by
// its child, and with that the only right to dir, so a socket that is there was left behind.
func (s *Server) Listen(ctx context.Context, dir, name string) error {
	path := filepath.Join(dir, name)
	l, err := listen(path)
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	slots := make(chan struct{}, maxPeers)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return os.Remove(path)
			}
			return fmt.Errorf("accept command: %w", err)
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			if err := s.admit(conn); err != nil {
				s.Log.Warn("refused a peer on the store's socket", "reason", err.Error())
				_ = conn.Close()
				return
			}
			if err := s.ServeConn(ctx, conn); err != nil && ctx.Err() == nil {
				s.Log.Warn("a connection to the store's socket failed", "error", err)
			}
		})
	}
}

// admit lets in this user and root.
func (s *Server) admit(conn *net.UnixConn) error {
	uid, err := peerUser(conn)
	if err != nil {
		return err
	}
	if uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d", uid)
	}
	return nil
}

func listen(path string) (*net.UnixListener, error) {
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o002 != 0 { // made with 0700; a volume may be the group's
		return nil, fmt.Errorf("everybody may write to %s", dir)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: short})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by a name that may be gone by then
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func dialSocket(dir, name string) (net.Conn, error) {
	path := filepath.Join(dir, name)
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: short})
	if err != nil {
		return nil, fmt.Errorf("no Remora serves %s: %w", dir, err)
	}
	uid, err := peerUser(conn) // nobody else's process is to be told what to do with the keys
	if err == nil && uid != 0 && uid != os.Geteuid() && os.Geteuid() != 0 {
		err = fmt.Errorf("%s belongs to user %d", path, uid)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
