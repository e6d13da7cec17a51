package httpclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// request is a request while it is sent, once: its head and the pieces of a
// body in memory, in one system call and without copying the body.
type request struct {
	head    bytes.Buffer  // also what frames the pieces
	pieces  net.Buffers   // left to send: head, body, framing
	room    [8][]byte     // memory for pieces
	fields  [24]headField // memory for appendFields
	body    Body
	in      *http.Request
	chunked bool
	waits   bool // for 100 Continue
}

var h1Requests = sync.Pool{New: func() any { return new(request) }}

// maxKeptHead is the maximum memory that a pooled request keeps for heads, in
// bytes.
const maxKeptHead = 16 << 10

// newRequest composes the head.
func newRequest(in *http.Request, uri, host string, body Body) *request {
	r := h1Requests.Get().(*request)
	r.in, r.body = in, body
	present := body.stream != nil || body.length > 0
	r.chunked = present && (body.length < 0 || len(in.Trailer) > 0)
	r.waits = present && expectsContinue(in)

	b := &r.head
	b.WriteString(in.Method)
	b.WriteByte(' ')
	b.WriteString(uri)
	b.WriteString(" HTTP/1.1\r\nHost: ")
	b.WriteString(host)
	b.WriteString("\r\n")
	if agent := in.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" {
		b.WriteString("User-Agent: ")
		b.WriteString(strings.TrimSpace(oneLine.Replace(agent[0])))
		b.WriteString("\r\n")
	}
	switch {
	case r.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		if len(in.Trailer) > 0 {
			if names := slices.DeleteFunc(slices.Sorted(maps.Keys(in.Trailer)), func(n string) bool { return !IsTrailer(n) }); len(names) > 0 {
				b.WriteString("Trailer: ")
				b.WriteString(strings.Join(names, ","))
				b.WriteString("\r\n")
			}
		}
	case present, in.Method == http.MethodPost, in.Method == http.MethodPut, in.Method == http.MethodPatch:
		b.WriteString("Content-Length: ")
		b.Write(strconv.AppendInt(b.AvailableBuffer(), body.length, 10))
		b.WriteString("\r\n")
	}
	b.Write(append(appendFields(b.AvailableBuffer(), in.Header, r.fields[:]), "\r\n"...))
	return r
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// expectsContinue reports whether in waits for 100 Continue before it sends its
// body.
func expectsContinue(in *http.Request) bool { return HasToken(in.Header["Expect"], "100-continue") }

// release returns r to its pool. The sender of its last byte calls it, once.
func (r *request) release() {
	if r.head.Cap() > maxKeptHead {
		r.head = bytes.Buffer{}
	}
	r.head.Reset()
	clear(r.room[:])
	r.pieces, r.body, r.in = nil, Body{}, nil
	h1Requests.Put(r)
}

// Limits of sending on the handler's goroutine, which reads no answer
// meanwhile.
const (
	copiedBody = 8 << 10               // head and body up to this size are sent as one piece
	inlineWait = 20 * time.Millisecond // for what the socket does not take at once; a goroutine sends the rest
)

// sendHead sends the head alone and reports whether any of it left.
func (r *request) sendHead(c *conn) (sent bool, err error) {
	n, err := c.tcp.Write(r.head.Bytes())
	r.head.Reset()
	return n > 0, err
}

// send sends what has not been sent yet, and returns how much of it left. If a
// goroutine sends the rest, c.upload is that goroutine's, and it owns r.
func (r *request) send(c *conn) (int64, error) {
	if r.body.stream != nil {
		n := 0
		if r.head.Len() > 0 {
			var err error
			if n, err = c.tcp.Write(r.head.Bytes()); err != nil {
				return int64(n), err
			}
		}
		r.upload(c)
		return int64(n), nil
	}
	if !r.chunked && int64(r.head.Len())+r.body.length <= copiedBody {
		for _, p := range r.body.pieces {
			r.head.Write(p)
		}
		n, err := c.tcp.Write(r.head.Bytes())
		return int64(n), err
	}
	r.pieces = append(r.room[:0], r.head.Bytes())
	if r.chunked {
		for _, p := range r.body.pieces {
			if len(p) > 0 {
				r.pieces = append(r.pieces, fmt.Appendf(nil, "%x\r\n", len(p)), p, crlf)
			}
		}
		r.pieces = append(r.pieces, lastChunk(r.in.Trailer))
	} else {
		r.pieces = append(r.pieces, r.body.pieces...)
	}
	size := r.left()
	_ = c.tcp.SetWriteDeadline(time.Now().Add(inlineWait)) // a later write meets the same error
	_, err := r.pieces.WriteTo(c.tcp)
	_ = c.tcp.SetWriteDeadline(time.Time{})
	n := size - r.left()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.upload(c)
		return n, nil
	}
	return n, err
}

// left returns how much of the pieces has not been sent.
func (r *request) left() (n int64) {
	for _, p := range r.pieces {
		n += int64(len(p))
	}
	return n
}

var crlf = []byte("\r\n")

// lastChunk returns the end of a chunked body.
func lastChunk(trailer http.Header) []byte {
	b := bytes.NewBufferString("0\r\n")
	if len(trailer) > 0 {
		passed := http.Header{}
		passTrailers(passed, trailer)
		_ = passed.Write(b) // to memory
	}
	b.Write(crlf)
	return b.Bytes()
}

// uploadBufferSize is the size of the buffers with which streamed bodies are
// sent.
const uploadBufferSize = 32 << 10

var uploadBuffers = sync.Pool{New: func() any { return new([uploadBufferSize]byte) }}

// upload is the rest of a request that is being sent. It ends when everything
// has been sent, when the body breaks off, which closes the connection, or when
// the connection is closed. With a nil receiver nothing is being sent.
type upload struct {
	done   chan struct{} // closed at the end, after the fields below are written
	at     time.Time
	failed error // the error with which the body broke off
	whole  bool
}

func (r *request) upload(c *conn) {
	u := &upload{done: make(chan struct{})}
	c.upload = u
	r.body.lease.take()
	go func() {
		lease := r.body.lease
		defer lease.Release()
		err := r.rest(c.tcp, u)
		u.at, u.whole = time.Now(), err == nil
		r.release()
		close(u.done)
		if u.failed != nil {
			c.close()
		}
	}()
}

// rest sends what is left of the body.
func (r *request) rest(tcp *net.TCPConn, u *upload) error {
	if r.body.stream == nil {
		_, err := r.pieces.WriteTo(tcp)
		return err
	}
	buf := uploadBuffers.Get().(*[uploadBufferSize]byte)
	defer uploadBuffers.Put(buf)
	left := r.body.length
	for left != 0 {
		p := buf[:]
		if left > 0 {
			p = p[:min(int64(len(p)), left)]
		}
		n, err := r.body.stream.Read(p)
		if n > 0 {
			r.pieces = append(r.room[:0], p[:n])
			if r.chunked {
				r.pieces = append(r.room[:0], fmt.Appendf(nil, "%x\r\n", n), p[:n], crlf)
			}
			if _, werr := r.pieces.WriteTo(tcp); werr != nil {
				return werr
			}
			if left > 0 {
				left -= int64(n)
			}
		}
		if err == io.EOF {
			if left <= 0 {
				break
			}
			err = fmt.Errorf("%w: %w", ErrClientBody, io.ErrUnexpectedEOF)
		}
		if err != nil {
			u.failed = err
			return err
		}
	}
	if r.chunked {
		if left == 0 { // the trailers follow the end, which has not been read yet
			if _, err := io.Copy(io.Discard, r.body.stream); err != nil {
				u.failed = err
				return err
			}
		}
		_, err := tcp.Write(lastChunk(r.in.Trailer))
		return err
	}
	return nil
}

// ended reports whether the upload has ended, and when.
func (u *upload) ended() (at time.Time, ok bool) {
	select {
	case <-u.done:
		return u.at, true
	default:
		return time.Time{}, false
	}
}

// uploadGrace is how long a complete answer, or an error, waits for its request
// to be sent.
const uploadGrace = 50 * time.Millisecond

// sent reports whether the request has been sent whole, now or after a moment.
func (u *upload) sent() bool {
	if u == nil {
		return true
	}
	timer := time.NewTimer(uploadGrace)
	defer timer.Stop()
	select {
	case <-u.done:
		return u.whole
	case <-timer.C:
		return false
	}
}

// failure returns the error with which the body broke off, or nil. The
// connection's own error may come first.
func (u *upload) failure() error {
	if u == nil || u.sent() {
		return nil
	}
	if _, ok := u.ended(); !ok {
		return nil
	}
	return u.failed
}
