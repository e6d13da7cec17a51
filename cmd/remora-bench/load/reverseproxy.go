package load

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/remora-proxy/remora/cmd/remora-bench/cli"
)

func RunReverseProxy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("reverseproxy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	to := flags.String("upstream", "", "URL to pass requests on to")
	ca := flags.String("ca", "", "PEM `file` of the authorities to trust for the upstream (default: the system's)")
	cert := flags.String("cert", "", "PEM `file` of the certificate to serve TLS with (default: plain HTTP)")
	key := flags.String("key", "", "PEM `file` of its key")
	if err := cli.ParseFlags(flags, args); err != nil {
		return err
	}
	target, err := url.Parse(*to)
	if err != nil || target.Host == "" {
		return cli.UsageError("-upstream: must be a URL with a host")
	}
	var trust *tls.Config
	if *ca != "" {
		if trust, err = clientTLS(*ca, ""); err != nil {
			return err
		}
	}
	secure, err := serverTLS(*cert, *key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(stdout, listeningPrefix+l.Addr().String())
	server := &http.Server{Handler: newBareProxy(target, trust, stderr), ReadHeaderTimeout: 10 * time.Second, TLSConfig: secure}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	if secure != nil {
		err = server.ServeTLS(l, "", "")
	} else {
		err = server.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// newBareProxy is the 1 of all ratios: the standard library's ReverseProxy with
// what makes it fast (pooled copy buffers, an idle pool larger than any
// concurrency measured here, no decompression, every write flushed) and nothing
// else. It forges no header. Of streams whose first byte comes back at once it
// loses some (golang/go#40747: the server closes a request body that the
// Transport has not seen the end of); load counts them as errors.
func newBareProxy(target *url.URL, trust *tls.Config, errorLog io.Writer) http.Handler {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConns:        4096,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		TLSClientConfig:     trust,
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if _, ok := r.In.Header["User-Agent"]; !ok {
				r.Out.Header["User-Agent"] = nil // or the Transport adds its own
			}
		},
		Transport:     transport,
		FlushInterval: -1,
		BufferPool:    &copyBuffers{pool: sync.Pool{New: func() any { return new([copyBufferSize]byte) }}},
		ErrorLog:      log.New(errorLog, "reverseproxy: ", 0),
	}
}

const copyBufferSize = 32 << 10

// copyBuffers is a httputil.BufferPool. It pools arrays: a slice in a sync.Pool
// costs an allocation each time.
type copyBuffers struct{ pool sync.Pool }

func (b *copyBuffers) Get() []byte  { return b.pool.Get().(*[copyBufferSize]byte)[:] }
func (b *copyBuffers) Put(p []byte) { b.pool.Put((*[copyBufferSize]byte)(p)) }
