package proxytest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostileMemory is how much memory a call to a hostile server may take, in
// bytes.
const hostileMemory = 32 << 20

// Hostile has call make a call to servers that do everything but answer: drip,
// flood, send bombs, stay silent. The call must return an error, and take
// little memory.
func Hostile(t *testing.T, call func(t *testing.T, url string) error) {
	for name, serve := range hostile {
		t.Run(name, func(t *testing.T) {
			address := ServeConns(t, func(_ int, c net.Conn, br *bufio.Reader) {
				if r, err := http.ReadRequest(br); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					serve(c)
				}
			})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if err := call(t, "http://"+address); err == nil {
				t.Error("the call succeeded")
			}
			runtime.ReadMemStats(&after)
			if after.HeapInuse > before.HeapInuse+hostileMemory {
				t.Errorf("it took %d MiB", (after.HeapInuse-before.HeapInuse)>>20)
			}
		})
	}
}

// hostile is what a server may do on a connection besides answering, by name.
var hostile = map[string]func(c net.Conn){
	"a byte a time": func(c net.Conn) {
		for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("[", 1000000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	},
	"endless headers": func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		endless(c, "X-More: "+strings.Repeat("x", 1000)+"\r\n")
	},
	"endless interim answers": func(c net.Conn) { endless(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") },
	"endless chunks": func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		endless(c, "400\r\n"+strings.Repeat("[", 1024)+"\r\n")
	},
	"a bomb": func(c net.Conn) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		for range 1 << 10 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", b.Len())
		_, _ = c.Write(b.Bytes())
	},
	"silence": func(c net.Conn) { time.Sleep(3 * time.Second) },
	"garbage": func(c net.Conn) { endless(c, "\x00\xff\x16\x03") },
}

func endless(c net.Conn, piece string) {
	many := []byte(strings.Repeat(piece, 1+(64<<10)/len(piece)))
	for {
		if _, err := c.Write(many); err != nil {
			return
		}
	}
}
