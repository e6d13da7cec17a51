package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

// Limits of what is waited for.
const (
	ProbeTimeout = 10 * time.Second
	liveTimeout  = 2 * time.Second
)

// Address tries to listen on an address. One that is in use may be a Remora's,
// but not another program's. live asks what listens there.
func Address(ctx context.Context, name, address string, live func(ctx context.Context, address string) error) Finding {
	f := Finding{Subject: "address " + address, Status: OK}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if listener.IsInUse(err) {
		if err = live(ctx, address); err == nil {
			f.Text = "in use by a Remora that runs"
			return f
		}
		err = fmt.Errorf("in use, and not by a Remora that serves: %w", err)
	}
	if err != nil {
		f.Status, f.Text = Failed, err.Error()
		f.Fix = "Set " + name + " to another address, or stop the program that has it."
		return f
	}
	_ = l.Close()
	f.Text = "free"
	return f
}

// AskLive returns nil if a Remora serves traffic at address.
func AskLive(ctx context.Context, address string) error {
	return ask(ctx, address, listener.LivePath)
}

// AskControl returns nil if the control plane of a Remora answers at address.
func AskControl(ctx context.Context, address string) error { return ask(ctx, address, "/livez") }

func ask(ctx context.Context, address, path string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	switch ip := net.ParseIP(host); { // a wildcard address includes this one
	case host == "" || ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !listener.IsLive(response) {
		return fmt.Errorf("%s answers %d, and not as a Remora does", url, response.StatusCode)
	}
	return nil
}

// Skew is how far an upstream's clock is from this machine's.
type Skew struct {
	Upstream string
	By       time.Duration // positive if this machine's is behind
}

// Upstreams asks all upstreams at the same time, and returns findings in their
// order, and the clocks of those that answered with a date.
func Upstreams(ctx context.Context, upstreams []httpclient.UpstreamConfig, t httpclient.TransportConfig) ([]Finding, []Skew) {
	findings, clocks := make([]Finding, len(upstreams)), make([]*Skew, len(upstreams))
	var all sync.WaitGroup
	for i, u := range upstreams {
		all.Go(func() {
			f := Finding{Subject: fmt.Sprintf("upstream %s (%s)", u.Name, u.URL), Status: OK}
			text, by, err := probe(ctx, u, t)
			if f.Text = "reachable, " + text; err != nil {
				f.Status, f.Text, f.Fix = Failed, err.Error(), upstreamFix(err)
			} else if by != nil {
				clocks[i] = &Skew{u.Name, *by}
			}
			findings[i] = f
		})
	}
	all.Wait()
	var skews []Skew
	for _, c := range clocks {
		if c != nil {
			skews = append(skews, *c)
		}
	}
	return findings, skews
}

// upstreamFix says what to do about an upstream that can't be reached.
func upstreamFix(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "The name does not resolve: check upstreams for typing errors, and the DNS of this machine."
	}
	unknown, _ := errors.AsType[x509.UnknownAuthorityError](err)
	wrong, other := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	plain, isPlain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case unknown.Cert != nil:
		return "Its certificate is of an authority that this machine does not know: name that authority with upstreams[].caFile."
	case other && wrong.Certificate != nil:
		return "Its certificate is for other names: check the host in upstreams."
	case invalid:
		return "Its certificate is not valid now: check this machine's clock."
	case isPlain && plain.Msg != "", strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "It speaks no TLS there: check the port, or use http:// in upstreams."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Nothing listens there: start the upstream, or check the port in upstreams."
	case errors.Is(err, context.DeadlineExceeded):
		return "It did not answer in time: check the network, firewalls, and whether a proxy is needed (proxyFromEnvironment)."
	}
	return "Check the URL in upstreams, and the network."
}

// probe requests the base path, without credentials. Any HTTP answer will do:
// most are 401 or 404. by is how much later the upstream's clock is, nil =
// unknown.
func probe(ctx context.Context, u httpclient.UpstreamConfig, t httpclient.TransportConfig) (text string, by *time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	roots, err := u.Roots()
	if err != nil {
		return "", nil, err
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	if t.ProxyFromEnvironment {
		transport.Proxy = http.ProxyFromEnvironment
		transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK { // its own words may quote a password
				return fmt.Errorf("the proxy answers %d", answer.StatusCode)
			}
			return nil
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL, nil)
	if err != nil {
		return "", nil, err
	}
	start := time.Now()
	response, err := transport.RoundTrip(request) // follows no redirects
	way := wayOf(transport, request)
	if err != nil {
		if way != "" {
			err = fmt.Errorf("%w (%s)", err, strings.TrimPrefix(way, ", "))
		}
		return "", nil, err
	}
	response.Body.Close()
	took := time.Since(start)
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		late := date.Sub(start.Add(took / 2)) // a date has seconds only
		by = &late
	}
	return fmt.Sprintf("answers %d over %s in %s%s", response.StatusCode, response.Proto, took.Round(time.Millisecond), way), by, nil
}

// wayOf returns the environment's proxy for a request, without its credentials;
// "" = none.
func wayOf(t *http.Transport, r *http.Request) string {
	if t.Proxy == nil {
		return ""
	}
	via, err := t.Proxy(r)
	if err != nil || via == nil {
		return ""
	}
	return fmt.Sprintf(", through the proxy %s, which HTTP_PROXY or HTTPS_PROXY names", via.Host)
}
