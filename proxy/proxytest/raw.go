package proxytest

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// TB is the part of testing.TB that ServeConns needs.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// ServeConns runs handle for every connection until the test ends, and returns
// the address. n counts connections from 1. A connection is closed when handle
// returns.
func ServeConns(tb TB, handle func(n int, conn net.Conn, br *bufio.Reader)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(n, conn, bufio.NewReader(conn))
			}()
		}
	}()
	return l.Addr().String()
}

// AnswerEach returns a handler for ServeConns that reads each request of a
// connection and writes what answer returns for it, as it stands. i counts the
// requests from 1. An answer of "" closes the connection.
func AnswerEach(answer func(i int, r *http.Request) string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, conn net.Conn, br *bufio.Reader) {
		for i := 1; ; i++ {
			r, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			a := answer(i, r)
			if _, err := io.WriteString(conn, a); a == "" || err != nil {
				return
			}
		}
	}
}
