package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/remora-proxy/remora/proxy/httpclient"
)

// problemTypes is the prefix of a problem's type; the page lists every kind.
const problemTypes = "https://github.com/remora-proxy/remora/blob/main/docs/problems.md#"

// problemTitles are the kinds of problems that the listeners answer with, and
// their titles. A kind is stable and has one meaning; the detail is for people.
var problemTitles = map[string]string{
	"bad-target":           "Request target not usable",
	"forward-forbidden":    "Target not allowed",
	"forward-auth":         "Proxy authentication required",
	"forward-busy":         "Too many tunnels",
	"forward-method":       "Only CONNECT is served here",
	"forward-others":       "Host not on the list",
	"no-upstream":          "No upstream for this path",
	"request-body":         "Request body not readable",
	"request-timeout":      "Request body too slow",
	"upstream-failed":      "Upstream broke off",
	"upstream-protocol":    "Upstream does not speak HTTP as expected",
	"upstream-timeout":     "Upstream too slow",
	"upstream-tls":         "Upstream not trusted",
	"upstream-unreachable": "Upstream not reachable",
	"websocket-fallback":   "HTTP is spoken here",
}

// problem is an error of a listener in the form of RFC 9457. Detail never holds
// a key, a query or content.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p problem) kind() string { return strings.TrimPrefix(p.Type, problemTypes) }

func newProblem(code int, kind, detail string) problem {
	return problem{Type: problemTypes + kind, Title: problemTitles[kind], Status: code, Detail: detail}
}

// Problems without a detail of the case.
var (
	problemNoUpstream = newProblem(http.StatusNotFound, "no-upstream", "no configured upstream covers the path of this request")
	problemBody       = newProblem(http.StatusBadRequest, "request-body", "the request body ended early or could not be read")
	problemTooSlow    = newProblem(http.StatusRequestTimeout, "request-timeout", "the client stopped sending the request body")
	problemFallback   = newProblem(http.StatusUpgradeRequired, "websocket-fallback", "memory needs HTTP; the setting websocket: pass lets WebSockets through without memory")
	problemTarget     = newProblem(http.StatusBadRequest, "bad-target", "the request target must be a path")
)

// write sends p as the response.
func (p problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.encode())
}

func (p problem) encode() []byte {
	b, _ := json.Marshal(p) // three strings and an int always encode
	return append(b, '\n')
}

// problemFor turns an error of roundTrip into a problem, which names the
// upstream's host and nothing else that err may hold. present is false if the
// client has left: then nothing can be written, and the handler should abort.
func problemFor(in *http.Request, up *httpclient.Upstream, err error) (p problem, present bool) {
	return explain(up, err), in.Context().Err() == nil || errors.Is(err, httpclient.ErrSlowBody) // net/http also ends the context of a slow body
}

// environmentProxy describes a proxy without its URL, which may hold a
// password.
const environmentProxy = "the proxy that HTTP_PROXY or HTTPS_PROXY names"

func explain(up *httpclient.Upstream, err error) problem {
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
		return newProblem(http.StatusBadGateway, "upstream-unreachable", fmt.Sprintf("%s answered %d on the way to %s", environmentProxy, refusal, host))
	case errors.As(err, &op) && op.Op == "proxyconnect" && op.Timeout(): // so http.Transport marks what came of a proxy
		return newProblem(http.StatusGatewayTimeout, "upstream-timeout", "connecting to "+environmentProxy+", on the way to "+host+", took too long")
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return newProblem(http.StatusBadGateway, "upstream-unreachable", environmentProxy+" could not be reached on the way to "+host)
	case errors.Is(err, httpclient.ErrBadTarget):
		return problemTarget
	case errors.Is(err, httpclient.ErrSlowBody):
		return problemTooSlow
	case errors.Is(err, httpclient.ErrClientBody):
		return problemBody
	case errors.Is(err, httpclient.ErrBadResponse):
		return newProblem(http.StatusBadGateway, "upstream-protocol", host+" answered with a status that the request did not ask for")
	case errors.Is(err, httpclient.ErrNotHTTP), strings.Contains(err.Error(), ": malformed HTTP "): // http.Transport has no error of its own for it
		return newProblem(http.StatusBadGateway, "upstream-protocol", host+" sent a response that is not HTTP/1.1; check the scheme and port of its URL")
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" does not speak TLS; is its URL http instead of https?")
	case errors.As(err, &authority):
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" has a certificate of an unknown authority; set the upstream's caFile to trust it")
	case errors.As(err, &name):
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" has a certificate for another name")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" has a certificate that is expired or not yet valid")
	case errors.As(err, &invalid), errors.As(err, &verify):
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" has a certificate that does not verify")
	case errors.As(err, &alert):
		return newProblem(http.StatusBadGateway, "upstream-tls", host+" refused the TLS handshake")
	case errors.As(err, &dns):
		return newProblem(http.StatusBadGateway, "upstream-unreachable", "the name of "+host+" does not resolve")
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return newProblem(http.StatusGatewayTimeout, "upstream-timeout", "connecting to "+host+" took too long")
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return newProblem(http.StatusGatewayTimeout, "upstream-timeout", host+" did not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return newProblem(http.StatusBadGateway, "upstream-unreachable", host+" refused the connection")
	case errors.As(err, &op) && op.Op == "dial":
		return newProblem(http.StatusBadGateway, "upstream-unreachable", host+" could not be reached")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return newProblem(http.StatusBadGateway, "upstream-failed", host+" closed the connection before it answered")
	}
	return newProblem(http.StatusBadGateway, "upstream-failed", "the exchange with "+host+" failed")
}

// Causes of failure in the log, in addition to the kinds of problems. The text
// of an error is never logged: it may quote what a peer sent.
const (
	causeClientLeft    = "client left"
	causeUpstreamEarly = "upstream closed early"
	causeCutAtShutdown = "cut at shutdown"
)

// errCutAtShutdown is why the context of what outlasts ServerConfig.Drain ends.
var errCutAtShutdown = errors.New(causeCutAtShutdown)

// causeOfLeaving returns why a request's context has ended, or why its client
// takes nothing more.
func causeOfLeaving(ctx context.Context, err error) string {
	switch {
	case errors.Is(context.Cause(ctx), errCutAtShutdown):
		return causeCutAtShutdown
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
	return explain(up, err).kind()
}
