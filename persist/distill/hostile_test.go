package distill

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

// hostileServers are what a server may do on a connection besides answering.
var hostileServers = map[string]func(c net.Conn){
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

// A hostile server costs a call its time, and little memory.
func TestHostileServers(t *testing.T) {
	for name, serve := range hostileServers {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
							_, _ = io.Copy(io.Discard, r.Body)
							serve(c)
						}
					}()
				}
			}()
			cfg := DefaultConfig()
			cfg.URL, cfg.Model = "http://"+l.Addr().String()+"/v1", "m"
			cfg.Timeout = 500 * time.Millisecond
			distiller := New(cfg)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if got, err := distiller.Distill(t.Context(), window); err == nil || got != nil {
				t.Errorf("got %v, %v", got, err)
			}
			runtime.ReadMemStats(&after)
			if after.HeapInuse > before.HeapInuse+32<<20 {
				t.Errorf("it took %d MiB", (after.HeapInuse-before.HeapInuse)>>20)
			}
		})
	}
}
