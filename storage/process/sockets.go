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
	"time"
)

// Names of sockets in the directory of the store.
const (
	// StoreSocket is served by the process that has the store open.
	StoreSocket = "remora.sock"
	// FrontSocket is served by the process that uses the store, for what the
	// store alone cannot do.
	FrontSocket = "serve.sock"
)

// maxSocketPath is the longest socket address that every system accepts,
// without the final zero byte.
const maxSocketPath = 103

// maxPeers limits the connections to a socket. For a further one, that which
// has been idle for longest is closed; if all have work, the further one is.
const maxPeers = 16

// peers are the connections to a socket.
type peers struct {
	mu  sync.Mutex
	all map[*peer]struct{}
}

// peer is one connection.
type peer struct {
	conn net.Conn

	mu    sync.Mutex
	heard time.Time // when a frame came that is more than a sign of life
	calls int       // that have begun and not ended
}

// hear is called for each frame.
func (p *peer) hear(kind byte) {
	if kind == kindPing {
		return
	}
	p.mu.Lock()
	p.heard = time.Now()
	p.mu.Unlock()
}

// work counts calls that begin (1) or end (-1).
func (p *peer) work(n int) {
	p.mu.Lock()
	p.calls += n
	p.heard = time.Now()
	p.mu.Unlock()
}

// idleSince returns since when the peer has asked for nothing, false if it has
// work.
func (p *peer) idleSince() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard, p.calls == 0
}

// add takes a connection in, and reports false if there is no place for it.
func (s *peers) add(p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= maxPeers {
		var oldest *peer
		var since time.Time
		for other := range s.all {
			if at, idle := other.idleSince(); idle && (oldest == nil || at.Before(since)) {
				oldest, since = other, at
			}
		}
		if oldest == nil {
			return false
		}
		_ = oldest.conn.Close() // its own goroutine ends, too
		delete(s.all, oldest)
	}
	s.all[p] = struct{}{}
	return true
}

func (s *peers) remove(p *peer) {
	s.mu.Lock()
	delete(s.all, p)
	s.mu.Unlock()
}

// Listen serves commands on the named socket in dir until ctx ends. The caller
// has the store open, itself or in its child, and with it the exclusive right
// to dir, so a socket that exists was left behind and is replaced.
func (s *Server) Listen(ctx context.Context, dir, name string) error {
	path := filepath.Join(dir, name)
	l, err := listen(path)
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	connected := &peers{all: map[*peer]struct{}{}}
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
		p := &peer{conn: conn, heard: time.Now()}
		if !connected.add(p) {
			_ = conn.Close()
			continue
		}
		all.Go(func() {
			defer connected.remove(p)
			if err := authorize(conn); err != nil {
				s.Log.Warn("refused a connection to the store's socket", "reason", err.Error())
				_ = conn.Close()
				return
			}
			if err := s.servePeer(ctx, p); err != nil && ctx.Err() == nil {
				s.Log.Warn("a connection to the store's socket failed", "error", err)
			}
		})
	}
}

// authorize accepts this user and root.
func authorize(conn *net.UnixConn) error {
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
	if info.Mode().Perm()&0o002 != 0 { // made with 0700; a volume may be writable by the group
		return nil, fmt.Errorf("%s is writable by everybody", dir)
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
	l.SetUnlinkOnClose(false) // the short name may be gone by then
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
	uid, err := peerUser(conn) // commands about keys must not reach another user's process
	if err == nil && uid != 0 && uid != os.Geteuid() && os.Geteuid() != 0 {
		err = fmt.Errorf("%s belongs to user %d", path, uid)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// inheritedFile is the file descriptor of the socket in a child process.
const inheritedFile = 3

// ErrNotInherited is returned by Inherit in a process that no Client has
// started.
var ErrNotInherited = errors.New("this process was not started by another one that needs a store")

// Inherit takes over the socket to the parent process, and returns it with what
// [Config.Boot] made there. The caller then sets up a server and calls
// [Server.ServeConn]; when that returns, the parent is done or gone.
func Inherit() (net.Conn, []byte, error) {
	f := os.NewFile(inheritedFile, "store socket")
	if f == nil {
		return nil, nil, ErrNotInherited
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, ErrNotInherited
	}
	if err := f.Close(); err != nil {
		return nil, nil, err
	}
	if _, ok := conn.(*net.UnixConn); !ok {
		return nil, nil, errors.Join(ErrNotInherited, conn.Close())
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, nil, err
	}
	boot, err := (&frameReader{r: conn}).readMessage(kindBoot, maxBoot) // unbuffered: a buffer would swallow what follows
	if err != nil {
		return nil, nil, fmt.Errorf("read boot message: %w", err)
	}
	return conn, boot, conn.SetDeadline(time.Time{})
}
