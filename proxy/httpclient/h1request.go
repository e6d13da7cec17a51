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

// h1Request is a request as it goes out, once: its head, and with it the pieces
// of a body in memory, in one system call and without copying the body.
type h1Request struct {
	head    bytes.Buffer  // and what frames the pieces
	pieces  net.Buffers   // what is left to send: head, body, framing
	room    [8][]byte     // of pieces
	fields  [24]headField // room for appendFields
	body    Body
	in      *http.Request
	chunked bool
	waits   bool // for 100 Continue
}

var h1Requests = sync.Pool{New: func() any { return new(h1Request) }}

// maxKeptHead bounds the memory that a pooled request keeps for heads, in
// bytes.
const maxKeptHead = 16 << 10

// newH1Request composes the head.
func newH1Request(in *http.Request, uri, host string, body Body) *h1Request {
	r := h1Requests.Get().(*h1Request)
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

// expectsContinue says whether in waits to be told that its body is welcome.
func expectsContinue(in *http.Request) bool { return HasToken(in.Header["Expect"], "100-continue") }

// release gives r back to its pool. Whoever sends the last of it does, once.
func (r *h1Request) release() {
	if r.head.Cap() > maxKeptHead {
		r.head = bytes.Buffer{}
	}
	r.head.Reset()
	clear(r.room[:])
	r.pieces, r.body, r.in = nil, Body{}, nil
	h1Requests.Put(r)
}

// Bounds of sending on the handler's goroutine, which reads no answer
// meanwhile.
const (
	copiedBody = 8 << 10               // head and body up to this are sent as one piece
	inlineWait = 20 * time.Millisecond // for what the socket does not take at once; what is left then, a goroutine sends
)

// sendHead sends the head alone and says whether any of it left.
func (r *h1Request) sendHead(c *h1Conn) (sent bool, err error) {
	n, err := c.tcp.Write(r.head.Bytes())
	r.head.Reset()
	return n > 0, err
}

// send sends what has not been sent yet, and returns how much of it left. Where
// the rest is left to a goroutine, c.upload is that, and owns r.
func (r *h1Request) send(c *h1Conn) (int64, error) {
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
	_ = c.tcp.SetWriteDeadline(time.Now().Add(inlineWait)) // a write that follows meets the same error
	_, err := r.pieces.WriteTo(c.tcp)
	_ = c.tcp.SetWriteDeadline(time.Time{})
	n := size - r.left()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.upload(c)
		return n, nil
	}
	return n, err
}

// left is how much of the pieces has not been sent.
func (r *h1Request) left() (n int64) {
	for _, p := range r.pieces {
		n += int64(len(p))
	}
	return n
}

var crlf = []byte("\r\n")

// lastChunk ends a chunked body.
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

// uploadBuffer is the size of the buffers that streamed bodies are sent with.
const uploadBuffer = 32 << 10

var uploadBuffers = sync.Pool{New: func() any { return new([uploadBuffer]byte) }}

// h1Upload is the rest of a request under way. It ends when all has been sent,
// the body breaks off, which closes the connection, or the connection is
// closed. The methods bear a nil receiver: nothing is under way.
type h1Upload struct {
	done   chan struct{} // closed at the end; what follows is written before
	at     time.Time
	failed error // what the body broke off with
	whole  bool
}

func (r *h1Request) upload(c *h1Conn) {
	u := &h1Upload{done: make(chan struct{})}
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
func (r *h1Request) rest(tcp *net.TCPConn, u *h1Upload) error {
	if r.body.stream == nil {
		_, err := r.pieces.WriteTo(tcp)
		return err
	}
	buf := uploadBuffers.Get().(*[uploadBuffer]byte)
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
		if left == 0 { // the trailers follow the end, which nobody has met yet
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

// ended says whether the upload is over, and since when.
func (u *h1Upload) ended() (at time.Time, ok bool) {
	select {
	case <-u.done:
		return u.at, true
	default:
		return time.Time{}, false
	}
}

// uploadGrace is how long an answer that is over, or an error, waits for its
// request to be sent.
const uploadGrace = 50 * time.Millisecond

// sent says whether the request has been sent whole, or is after a moment.
func (u *h1Upload) sent() bool {
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

// failure returns the error that the body broke off with, if it has. The
// connection's own error may come first.
func (u *h1Upload) failure() error {
	if u == nil || u.sent() {
		return nil
	}
	if _, ok := u.ended(); !ok {
		return nil
	}
	return u.failed
}
