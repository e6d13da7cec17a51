package export

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with TLS and with the endpoint is told over both protocols,
// without the password in a URL and without what a server answers.
func TestConnectionFailures(t *testing.T) {
	const key = "the-collectors-key"
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of handshakes
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	other := answersWith(t, "not HTTP, "+key+"\r\n\r\n")
	silent := answersWith(t, "")
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(trusted, block, 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(secure.Listener.Addr().String())
	for _, test := range []struct {
		name, protocol, endpoint, certificate, want string
	}{
		{"unknown authority", protocolHTTP, secure.URL, "", "the collector's certificate is signed by an unknown authority"},
		{"another host", protocolHTTP, "https://localhost:" + port, trusted, "the collector's certificate is for another host"},
		{"no TLS", protocolHTTP, "https://" + plain.Listener.Addr().String(), "", "the endpoint is https, and the collector answers without TLS"},
		{"neither TLS nor HTTP", protocolHTTP, "https://" + other, "", "the endpoint is https, and the collector does not speak TLS"},
		{"not HTTP", protocolHTTP, "http://" + other, "", "the collector does not answer in HTTP/1.1"},
		{"no answer", protocolHTTP, "http://" + silent, "", "the collector closes the connection without an answer"},
		{"unknown authority", protocolGRPC, secure.URL, "", "TLS with the collector: handshake failed: tls: failed to verify certificate"},
		{"no TLS", protocolGRPC, "https://" + other, "", "TLS with the collector: handshake failed: tls: first record does not look like a TLS handshake"},
	} {
		t.Run(test.name+" over "+test.protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
			if test.certificate != "" {
				t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", test.certificate)
			}
			endpoint := strings.Replace(test.endpoint, "://", "://user:"+key+"@", 1)
			if got := exportOne(t, endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL", test.protocol); strings.Contains(got, key) || !strings.Contains(got, test.want) {
				t.Errorf("the log says %s, want %s", got, test.want)
			}
		})
	}
}

// answersWith listens, answers whatever comes with a text, and closes.
func answersWith(t *testing.T, text string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(c, text)
			_ = c.(*net.TCPConn).CloseWrite() // a close before all is read is a reset
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// Errors are found in those that join and wrap them.
func TestFailuresThatAreJoined(t *testing.T) {
	const key = "the-key"
	address := "https://user:" + key + "@collector/"
	wrapped := func(err error) error {
		return fmt.Errorf("traces export: %w", errors.Join(nil, &url.Error{Op: "Post", URL: address, Err: err}))
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{wrapped(tls.RecordHeaderError{Msg: key}), "the endpoint is https, and the collector does not speak TLS"},
		{wrapped(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: key}}), "the collector's certificate has expired or is not valid yet"},
		{wrapped(&tls.CertificateVerificationError{Err: errors.New(key)}), "the collector's certificate can't be verified"},
		{wrapped(os.ErrDeadlineExceeded), "the collector takes too long"},
		{wrapped(errors.New("unsupported protocol scheme \"" + key + "\"")), "the endpoint is neither http nor https"},
		{wrapped(errors.New(key)), "*errors.errorString"},
		{wrapped(&net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New(key)}), "to the proxy: *errors.errorString"},
		{&url.Error{Op: "parse", URL: address, Err: errors.New(key)}, "the endpoint is no URL"},
		{fmt.Errorf("two: %w", errors.Join(errors.New("OTLP partial success: x (3 spans rejected)"), errors.New(key))), "the collector rejected 3 spans; *errors.errorString"},
	} {
		if got := Failure(test.err); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
