package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
	"github.com/remora-proxy/remora/proxy/problem"
)

// Problems without a detail of the case.
var (
	problemOwnPath    = problem.New(http.StatusNotFound, "own-path", "Remora serves nothing there, and sends nothing below /.remora to an upstream")
	problemNoUpstream = problem.New(http.StatusNotFound, "no-upstream", "no configured upstream covers the path of this request")
	problemBody       = problem.New(http.StatusBadRequest, "request-body", "the request body ended early or could not be read")
	problemTooSlow    = problem.New(http.StatusRequestTimeout, "request-timeout", "the client stopped sending the request body")
	problemFallback   = problem.New(http.StatusUpgradeRequired, "websocket-fallback", "memory needs HTTP; the setting websocket: pass lets WebSockets through without memory")
	problemTarget     = problem.New(http.StatusBadRequest, "bad-target", "the request target must be a path")
)

// problemFor turns an error of roundTrip into a problem, which names the
// upstream's host and nothing else that err may hold. present is false if the
// client has left: then nothing can be written, and the handler should abort.
func problemFor(in *http.Request, up *httpclient.Upstream, err error) (p problem.Problem, present bool) {
	return explain(up, err), in.Context().Err() == nil || errors.Is(err, httpclient.ErrSlowBody) // net/http also ends the context of a slow body
}

// environmentProxy describes a proxy without its URL, which may hold a
// password.
const environmentProxy = "the proxy that HTTP_PROXY or HTTPS_PROXY names"

func explain(up *httpclient.Upstream, err error) problem.Problem {
	host := up.URL.Host
	var (
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		netErr    net.Error
		op        *net.OpError
		refusal   httpclient.ProxyRefusal
	)
	switch {
	case errors.As(err, &refusal):
		return problem.New(http.StatusBadGateway, "upstream-unreachable", fmt.Sprintf("%s answered %d on the way to %s", environmentProxy, refusal, host))
	case errors.As(err, &op) && op.Op == "proxyconnect" && op.Timeout(): // so http.Transport marks what came of a proxy
		return problem.New(http.StatusGatewayTimeout, "upstream-timeout", "connecting to "+environmentProxy+", on the way to "+host+", took too long")
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return problem.New(http.StatusBadGateway, "upstream-unreachable", environmentProxy+" could not be reached on the way to "+host)
	case errors.Is(err, httpclient.ErrBadTarget):
		return problemTarget
	case errors.Is(err, httpclient.ErrSlowBody):
		return problemTooSlow
	case errors.Is(err, httpclient.ErrClientBody):
		return problemBody
	case errors.Is(err, httpclient.ErrBadResponse):
		return problem.New(http.StatusBadGateway, "upstream-protocol", host+" answered with a status that the request did not ask for")
	case errors.Is(err, httpclient.ErrNotHTTP), strings.Contains(err.Error(), ": malformed HTTP "): // http.Transport has no error of its own for it
		return problem.New(http.StatusBadGateway, "upstream-protocol", host+" sent a response that is not HTTP/1.1; check the scheme and port of its URL")
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" does not speak TLS; is its URL http instead of https?")
	case errors.As(err, &authority):
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" has a certificate of an unknown authority; set the upstream's caFile to trust it")
	case errors.As(err, &name):
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" has a certificate for another name")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" has a certificate that is expired or not yet valid")
	case errors.As(err, &invalid), errors.As(err, &verify):
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" has a certificate that does not verify")
	case errors.As(err, &alert), errors.As(err, &op) && op.Op == "remote error": // so crypto/tls marks alerts
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" refused the TLS handshake")
	case errors.As(err, &dns):
		return problem.New(http.StatusBadGateway, "upstream-unreachable", "the name of "+host+" does not resolve")
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return problem.New(http.StatusGatewayTimeout, "upstream-timeout", "connecting to "+host+" took too long")
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return problem.New(http.StatusGatewayTimeout, "upstream-timeout", host+" did not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return problem.New(http.StatusBadGateway, "upstream-unreachable", host+" refused the connection")
	case errors.As(err, &op) && op.Op == "dial":
		return problem.New(http.StatusBadGateway, "upstream-unreachable", host+" could not be reached")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return problem.New(http.StatusBadGateway, "upstream-failed", host+" closed the connection before it answered")
	case errors.As(err, &op) && op.Op == "local error", strings.Contains(err.Error(), "tls: "): // other faults of a handshake have no type
		return problem.New(http.StatusBadGateway, "upstream-tls", host+" speaks no TLS that can be used")
	}
	return problem.New(http.StatusBadGateway, "upstream-failed", "the exchange with "+host+" failed")
}

// Causes of failure in the log, in addition to the kinds of problems. The text
// of an error is never logged: it may quote what a peer sent.
const (
	causeClientLeft    = "client left"
	causeUpstreamEarly = "upstream closed early"
)

// causeOfLeaving returns why a request's context has ended, or why its client
// takes nothing more.
func causeOfLeaving(ctx context.Context, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), listener.ErrCut):
		return listener.ErrCut.Error()
	case errors.Is(err, errTakesNothing):
		return errTakesNothing.Error()
	}
	return causeClientLeft
}

// causeOfBreak returns what ended an answer that had begun.
func causeOfBreak(up *httpclient.Upstream, err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return causeUpstreamEarly
	}
	return explain(up, err).Kind()
}
