//go:build unix

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
)

// BenchmarkHop compares the plane with httputil.ReverseProxy, tuned as far as
// it goes, on real sockets: the same bodies, upstream and client. The ratio of
// their requests/s is what docs/benchmarks.md reports, measured there by
// remora-bench.
func BenchmarkHop(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
		payload := bytes.Repeat([]byte("x"), size)
		upstream := hopListen(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(1<<10))
			_, _ = w.Write(payload[:1<<10])
		}))
		targets := []struct {
			name    string
			handler http.Handler
		}{
			{"direct", nil},
			{"reverseproxy", tunedReverseProxy(b, upstream)},
			{"plane", benchPlane(b, upstream)},
		}
		for _, t := range targets {
			door := upstream
			if t.handler != nil {
				door = hopListen(b, t.handler)
			}
			for _, conns := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s/%dKiB/conns=%d", t.name, size>>10, conns), func(b *testing.B) {
					hammer(b, door, payload, conns)
				})
			}
		}
	}
}

func hammer(b *testing.B, door string, payload []byte, conns int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, DisableCompression: true}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	b.SetParallelism((conns + 1) / 2)
	var failed atomic.Int64
	b.ResetTimer()
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(door+"/v1/chat/completions", "application/json", bytes.NewReader(payload))
			if err != nil {
				failed.Add(1)
				continue
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-us/op")
	if n := failed.Load(); n > 0 {
		b.Fatalf("%d requests failed", n)
	}
}

// cpuTime is what the process has used of all cores: client, door and upstream
// together.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchPlane(b *testing.B, upstream string) http.Handler {
	p, err := openPlane([]httpclient.UpstreamConfig{{Name: "up", URL: upstream, Paths: []string{"/"}}}, httpclient.DefaultTransportConfig(), DefaultStreamConfig())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.router.CloseIdle)
	buffers := make(chan []byte, 64)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var buf []byte
		select {
		case buf = <-buffers:
		default:
			buf = make([]byte, 256<<10)
		}
		l := new(httpclient.Lease).Begin(benchBuffer{buf, buffers})
		defer l.Release()
		n, err := io.ReadFull(p.requestBody(w, r), buf[:r.ContentLength])
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		up := p.choose(r)
		resp, err := up.RoundTrip(w, r, httpclient.NewBody(l, buf[:n]))
		if err != nil {
			if failed, tell := problemFor(r, up, err); tell {
				failed.Write(w)
			}
			return
		}
		p.relay(w, r, resp, nil, nil).abort()
	})
}

// benchBuffer goes back to buffers once nobody reads it.
type benchBuffer struct {
	buf     []byte
	buffers chan []byte
}

func (b benchBuffer) Free() {
	select {
	case b.buffers <- b.buf:
	default:
	}
}

type benchBuffers chan []byte

func (p benchBuffers) Get() []byte {
	select {
	case b := <-p:
		return b
	default:
		return make([]byte, 32<<10)
	}
}

func (p benchBuffers) Put(b []byte) {
	select {
	case p <- b:
	default:
	}
}

func tunedReverseProxy(b *testing.B, upstream string) http.Handler {
	target, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	t := &http.Transport{
		MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true, WriteBufferSize: 64 << 10, ReadBufferSize: 64 << 10,
	}
	b.Cleanup(t.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: t, FlushInterval: -1,
		BufferPool: make(benchBuffers, 512), ErrorLog: log.New(io.Discard, "", 0),
	}
}
