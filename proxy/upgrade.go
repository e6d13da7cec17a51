package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/remora-proxy/remora/proxy/httpclient"
	"github.com/remora-proxy/remora/proxy/listener"
)

// isUpgrade reports whether in asks to leave HTTP, as WebSocket does. An offer
// of h2c does not count: Java's client makes it with every plain HTTP/1.1
// request, and declining it costs nothing.
func isUpgrade(in *http.Request) bool {
	protocols := in.Header["Upgrade"]
	return len(protocols) > 0 && in.ProtoMajor == 1 && in.ProtoMinor >= 1 &&
		httpclient.HasToken(in.Header["Connection"], "upgrade") && !httpclient.HasToken(protocols, "h2c")
}

// Values of Config.WebSocket: how a WebSocket for the Responses API is handled.
// All other upgrades are tunnelled.
const (
	// WebSocketFallback answers 426 to known clients that then continue over
	// HTTP at once, and tunnels the others'.
	WebSocketFallback = "fallback"
	WebSocketPass     = "pass" // tunnels: without memory
	// WebSocketEnrich gives memory to the responses that are requested over it;
	// see socket.
	WebSocketEnrich = "enrich"
)

func isResponsesSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/responses") && httpclient.HasToken(r.Header["Upgrade"], "websocket")
}

// upgrade sends in to up and, once up has switched protocols, lets carry carry
// the bytes until both sides are done. A refusal is relayed like any other
// response. It returns when everything has ended, so waiting for handlers waits
// for tunnels too. It ends at once when in's context does.
func (p *plane) upgrade(w http.ResponseWriter, in *http.Request, up *httpclient.Upstream, carry listener.Carrier) relayed {
	protocol := in.Header["Upgrade"]
	resp, err := up.Upgrade(in, httpclient.StreamBody(p.requestBody(w, in), in.ContentLength))
	if err != nil {
		return p.refuse(w, in, up, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		r := p.relay(w, in, resp, nil, nil)
		r.abort()
		return r
	}
	upstream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(strings.Join(resp.Header["Upgrade"], ","), strings.Join(protocol, ",")) &&
		!httpclient.HasToken(protocol, strings.Join(resp.Header["Upgrade"], ",")) {
		resp.Body.Close()
		return p.refuse(w, in, up, httpclient.ErrBadResponse)
	}
	defer upstream.Close()

	client, err := listener.Hijack(w)
	if err != nil {
		return p.refuse(w, in, up, err)
	}
	defer client.Close()
	r := relayed{Status: http.StatusSwitchingProtocols}
	_ = client.SetDeadline(time.Time{})
	if err := writeSwitching(client, w.Header(), resp); err != nil {
		r.fail(failedClient, fmt.Errorf("write to client: %w", err))
		return r
	}
	_, r.Bytes = carry(in.Context(), client, upstream)
	r.Complete = true
	return r
}

// refuse answers an upgrade that could not be carried.
func (p *plane) refuse(w http.ResponseWriter, in *http.Request, up *httpclient.Upstream, err error) relayed {
	failed, tell := problemFor(in, up, err)
	if !tell {
		panic(http.ErrAbortHandler)
	}
	failed.Write(w)
	return relayed{Status: failed.Status, Err: err}
}

// writeSwitching sends the head of a 101 with the headers of own and the
// upstream's.
func writeSwitching(w io.Writer, own http.Header, resp *http.Response) error {
	httpclient.CopyResponse(own, resp.Header)
	own["Connection"], own["Upgrade"] = []string{"Upgrade"}, resp.Header["Upgrade"]
	delete(own, "Content-Length") // meaningless here (RFC 9110, 8.6), and a client that believes it would cut the stream short
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	if err := own.Write(&head); err != nil {
		return err
	}
	head.WriteString("\r\n")
	_, err := w.Write(head.Bytes())
	return err
}
