package listener

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Hijack takes over the connection from the server, with the bytes that it had
// read ahead.
func Hijack(w http.ResponseWriter) (net.Conn, error) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over connection: %w", err)
	}
	ahead, _ := rw.Reader.Peek(rw.Reader.Buffered())
	if len(ahead) == 0 {
		return conn, nil
	}
	return &aheadConn{Conn: conn, ahead: bytes.Clone(ahead)}, nil
}

// aheadConn returns what was read ahead before what the connection still has.
type aheadConn struct {
	net.Conn
	ahead []byte // owned by the reader
}

func (c *aheadConn) Read(p []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
			c.ahead = nil // the connection may live for hours
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite closes the sending half.
func (c *aheadConn) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite half-closes w, if it can.
func CloseWrite(w io.Writer) error {
	if c, ok := w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// KeepAhead returns w for code that would drop the bytes read ahead when it
// takes over the connection.
func KeepAhead(w http.ResponseWriter) http.ResponseWriter { return keepAhead{w} }

type keepAhead struct{ http.ResponseWriter }

// Hijack returns only the connection, which returns what was read ahead first.
func (w keepAhead) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, err := Hijack(w.ResponseWriter)
	return conn, nil, err
}
