package proxy

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// doorWriter is the http.ResponseWriter of a request on a doorConn. What it writes is what net/http does, byte for byte
// (TestDoorWritesAsNetHTTPDoes); what no handler here asks for it does not know: a Transfer-Encoding, hijacking. It serves the next request
// of the connection, too: a handler must not let others keep it.
type doorWriter struct {
	c      *doorConn
	body   *doorBody
	header http.Header

	code     int
	length   int64 // as announced; -1 = it was not
	written  int64
	trailers []string // as announced
	late     bool     // the body is chunked, whatever its length: there may be trailers
	bare     bool     // the status allows no body
	framed   bool     // the head is complete
	chunked  bool
	close    bool  // the connection ends with this answer
	said     bool  // and the handler's head says so
	dated    bool  // the handler's head has, or holds open, a Date
	typed    bool  // the same for a Content-Type
	gently   bool  // the connection does not end before the client has had time to read the answer
	duplex   bool  // the body is read while the answer is written
	guarded  bool  // a write deadline is set
	failed   error // of writing

	out    []byte // what waits to be sent
	held   []byte // of the body, before it is known how long that is
	pieces net.Buffers
	room   [4][]byte
	fields [24]headField
}

// mostHeld is how much of a body without a length is held back until the handler flushes, or returns, in bytes. It is net/http's.
const mostHeld = 2 << 10

func (w *doorWriter) begin(a *doorRequest) {
	w.body, w.length = &a.body, -1
}

// end makes w ready for another request.
func (w *doorWriter) end() {
	if w.guarded {
		_ = w.c.tcp.SetWriteDeadline(time.Time{})
	}
	giveBuffer(w.out)
	giveBuffer(w.held)
	if len(w.header) > mostFields {
		w.header = http.Header{} // a cleared one is as large as it ever was
	}
	clear(w.header)
	*w = doorWriter{c: w.c, header: w.header}
}

// Header implements http.ResponseWriter.
func (w *doorWriter) Header() http.Header { return w.header }

// SetReadDeadline is for http.ResponseController.
func (w *doorWriter) SetReadDeadline(t time.Time) error {
	w.c.setReadDeadline(t)
	return nil
}

// SetWriteDeadline is for http.ResponseController. It holds until the answer's end.
func (w *doorWriter) SetWriteDeadline(t time.Time) error {
	w.guarded = true
	return w.c.tcp.SetWriteDeadline(t)
}

// EnableFullDuplex is for http.ResponseController.
func (w *doorWriter) EnableFullDuplex() error {
	w.duplex = true
	return nil
}

// WriteHeader implements http.ResponseWriter.
func (w *doorWriter) WriteHeader(code int) {
	if w.code != 0 {
		return
	}
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	w.status(code)
	if code < 200 && code != http.StatusSwitchingProtocols {
		w.sendFields(func(name string) bool { return name == "Content-Length" || name == "Transfer-Encoding" })
		w.out = append(w.out, "\r\n"...)
		w.send()
		return
	}
	w.code, w.bare = code, code < 200 || code == http.StatusNoContent || code == http.StatusNotModified
	if v := w.header["Content-Length"]; len(v) > 0 {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		} else { // net/http counts none for such a handler, either
			delete(w.header, "Content-Length")
			w.late = true
		}
	}
	for _, list := range w.header["Trailer"] {
		w.late = true
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); isTrailer(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
	w.said = listed(w.header["Connection"], "close")
	w.close = w.said
	_, w.dated = w.header["Date"]
	_, w.typed = w.header["Content-Type"]
	w.typed = w.typed || len(w.header["Content-Encoding"]) > 0
	w.sendFields(func(name string) bool {
		switch name {
		case "Transfer-Encoding":
			return true
		case "Connection":
			return !w.said
		case "Content-Length":
			return w.bare
		case "Content-Type":
			return code == http.StatusNotModified
		}
		if strings.HasPrefix(name, http.TrailerPrefix) {
			w.late = true
			return true
		}
		return false
	})
}

// Write implements http.ResponseWriter.
func (w *doorWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if w.bare {
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if !w.framed {
		if w.length < 0 && len(w.held)+len(p) <= mostHeld {
			if w.held == nil {
				w.held = takeBuffer(mostHeld)
			}
			w.held = append(w.held, p...)
			return len(p), nil
		}
		first := p
		if len(w.held) > 0 {
			first = w.held
		}
		if w.frame(false, first); len(w.held) > 0 {
			w.piece(w.held)
			w.held = w.held[:0]
		}
	}
	w.piece(p)
	if w.failed != nil {
		return 0, w.failed
	}
	return len(p), nil
}

// FlushError is for http.ResponseController.
func (w *doorWriter) FlushError() error {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.complete(false)
	w.send()
	return w.failed
}

// complete completes the head and appends what was held back. last says that nothing follows.
func (w *doorWriter) complete(last bool) {
	if !w.framed {
		w.frame(last, w.held)
	}
	if len(w.held) > 0 {
		w.piece(w.held)
		w.held = w.held[:0]
	}
}

// finish sends what is left when the handler has returned, and says whether the connection may serve another request.
func (w *doorWriter) finish() bool {
	if w.code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.complete(true)
	if w.chunked {
		w.makeRoom(len("0\r\n"))
		w.out = w.appendTrailers(append(w.out, "0\r\n"...))
	}
	w.send()
	w.c.stopReading()
	w.drain()
	if w.gently && w.failed == nil {
		w.c.closeGently()
	}
	return !w.close && w.failed == nil && (w.bare || w.length < 0 || w.length == w.written)
}

// drain takes what is left of the request's body. Where some stays on the connection, that ends with the answer.
func (w *doorWriter) drain() {
	if left := w.body.drain(); left > 0 {
		w.close, w.gently = true, w.gently || left > mostDrained
	}
}
