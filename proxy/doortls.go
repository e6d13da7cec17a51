package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// secureConn is a client's connection that speaks TLS, at a door. The handshake is over. Its Close tells the client, if the socket is
// still open, and may wait for one that takes nothing; where an answer is cut short, the socket is closed before.
type secureConn struct {
	*tls.Conn
	under *interceptedConn
}

// socketOf returns the socket of what was accepted, with its TLS where it has that. It returns nil for what a door does not serve:
// HTTP/2, and sockets from which more was read than TLS has taken.
func socketOf(conn net.Conn) (*net.TCPConn, *secureConn) {
	switch conn := conn.(type) {
	case *net.TCPConn:
		return conn, nil
	case *tls.Conn:
		under, ok := conn.NetConn().(*interceptedConn)
		if !ok || conn.ConnectionState().NegotiatedProtocol == "h2" {
			return nil, nil
		}
		tcp := under.Conn
		if ahead, ok := tcp.(*aheadConn); ok && len(ahead.ahead) == 0 {
			tcp = ahead.Conn
		}
		if tcp, ok := tcp.(*net.TCPConn); ok {
			return tcp, &secureConn{conn, under}
		}
	}
	return nil, nil
}

// errNothing: nothing waits on the socket. TLS takes it for a deadline that has passed, and goes on at the next read with what it has of
// a record.
var errNothing error = nothingYet{}

type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing to read" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// readNow reads what the client has sent. It waits for nothing. It goes on to the end of a head: some clients cut even short ones into
// records.
func (s *secureConn) readNow(fd uintptr, p []byte) (n int, err error) {
	s.under.now, s.under.fd = true, fd
	defer func() { s.under.now = false }()
	for err == nil && n < len(p) && (n == 0 || !bytes.Contains(p[:n], []byte("\r\n\r\n"))) {
		var m int
		m, err = s.Read(p[n:])
		n += m
	}
	if n > 0 && errors.Is(err, errNothing) {
		err = nil
	}
	return n, err
}

// secureAheadConn is an aheadConn whose requests tell of its TLS.
type secureAheadConn struct {
	aheadConn
	tls *tls.Conn
}

func (c *secureAheadConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }
func (c *secureAheadConn) NetConn() net.Conn                    { return c.tls.NetConn() }

// interceptedConn is the client's end of a tunnel that was taken over, beneath its TLS.
type interceptedConn struct {
	net.Conn
	host    string
	release func()
	idle    time.Duration // ServerConfig.WriteIdle

	// While now, reads are from the socket fd and end with errNothing instead of waiting. Both belong to who reads.
	now bool
	fd  uintptr
}

func newInterceptedConn(conn net.Conn, host string, release func(), idle time.Duration) *interceptedConn {
	return &interceptedConn{Conn: conn, host: host, release: sync.OnceFunc(release), idle: idle}
}

func (c *interceptedConn) Read(p []byte) (int, error) {
	if c.now {
		return readNow(c.fd, p)
	}
	return c.Conn.Read(p)
}

// largestSign is more than the bytes of a record in which TLS speaks for itself.
const largestSign = 64

// Write ends the connection where its client takes nothing for idle of what TLS itself answers while it reads, as the client's wish for
// new keys: no deadline of reading frees who reads from that, and there need be none of writing. What requests are answered has bounds
// of its own.
func (c *interceptedConn) Write(p []byte) (int, error) {
	if len(p) <= largestSign && c.idle > 0 {
		defer time.AfterFunc(c.idle, func() { _ = c.Conn.Close() }).Stop()
	}
	return c.Conn.Write(p)
}

func (c *interceptedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// interceptedHostOf is the host that the client of conn asked a tunnel to. conn speaks TLS on an interceptedConn.
func interceptedHostOf(conn net.Conn) string {
	return conn.(interface{ NetConn() net.Conn }).NetConn().(*interceptedConn).host
}
