package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of a message: a longer head, line or body is an error, not a bigger
// buffer.
const (
	wireBuffer  = 64 << 10
	maxWireBody = 64 << 20
)

var errWire = errors.New("malformed HTTP message")

// wireHead is what load needs to know of the head of an HTTP/1.1 message.
type wireHead struct {
	start   []byte // the request or status line, valid until the next read
	length  int64  // of the body; -1 = not told
	chunked bool
	close   bool   // the connection ends with this message
	remora  []byte // value of X-Remora-Status, valid until the next read
}

// wireReader reads HTTP/1.1 messages from a connection with one buffer and no
// allocation per message. net/http would cost the generator and the mock
// upstream as much as some of the proxies that they measure.
type wireReader struct {
	src      io.Reader
	buf      []byte
	r, w     int       // the unread part of buf
	lastRead time.Time // when the newest bytes came in
}

func newWireReader(src io.Reader, size int) *wireReader {
	return &wireReader{src: src, buf: make([]byte, size)}
}

// fill reads more from the connection. The unread part may move; it is never
// overwritten.
func (r *wireReader) fill() error {
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	if r.w == len(r.buf) {
		if r.r == 0 {
			return fmt.Errorf("%w: head or line longer than %d bytes", errWire, len(r.buf))
		}
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	n, err := r.src.Read(r.buf[r.w:])
	r.w += n
	if n > 0 {
		r.lastRead = time.Now()
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// head reads up to and including the empty line. Before the first byte of a
// message the error of the connection is returned as it is, later ones say that
// the message was cut.
func (r *wireReader) head() (wireHead, error) {
	searched := 0
	for {
		if end := bytes.Index(r.buf[r.r+searched:r.w], []byte("\r\n\r\n")); end >= 0 {
			raw := r.buf[r.r : r.r+searched+end+2]
			r.r += searched + end + 4
			return parseWireHead(raw)
		}
		searched = max(r.w-r.r-3, 0)
		started := r.w > r.r
		if err := r.fill(); err != nil {
			if started && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return wireHead{}, err
		}
	}
}

// parseWireHead reads raw, lines that each end in CRLF.
func parseWireHead(raw []byte) (wireHead, error) {
	h := wireHead{length: -1}
	var ok bool
	if h.start, raw, ok = bytes.Cut(raw, []byte("\r\n")); !ok || len(h.start) == 0 {
		return h, errWire
	}
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte("\r\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return h, fmt.Errorf("%w: header line without a colon", errWire)
		}
		value = bytes.TrimSpace(value)
		switch {
		case isHeader(name, "content-length"):
			n, ok := parseDigits(value)
			if !ok || n > maxWireBody {
				return h, fmt.Errorf("%w: content length", errWire)
			}
			h.length = n
		case isHeader(name, "transfer-encoding"):
			h.chunked = isHeader(value, "chunked")
		case isHeader(name, "connection"):
			h.close = h.close || isHeader(value, "close")
		case isHeader(name, "x-remora-status"):
			h.remora = value
		}
	}
	return h, nil
}

// isHeader compares without case and without allocating; lower is in lower
// case.
func isHeader(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func parseDigits(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// status is the code of a response, 0 where the start line is not one.
func (h wireHead) status() int {
	if len(h.start) < len("HTTP/1.1 200") || !bytes.HasPrefix(h.start, []byte("HTTP/1.1 ")) {
		return 0
	}
	code, _ := parseDigits(h.start[9:12])
	return int(code)
}

// body reads the body that h announces and hands each piece to sink as it
// comes; the piece is valid during the call. A message without a length has no
// body if it is a request and ends with the connection if it is a response.
func (r *wireReader) body(h wireHead, response bool, sink func(piece []byte)) error {
	switch {
	case h.chunked:
		return r.chunks(sink)
	case h.length >= 0:
		return r.exactly(h.length, sink)
	case !response:
		return nil
	}
	for total := 0; total <= maxWireBody; {
		if r.r < r.w {
			total += r.w - r.r
			sink(r.buf[r.r:r.w])
			r.r = r.w
		}
		if err := r.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return fmt.Errorf("%w: body too long", errWire)
}

func (r *wireReader) exactly(n int64, sink func([]byte)) error {
	for n > 0 {
		if r.r == r.w {
			if err := r.fillBody(); err != nil {
				return err
			}
		}
		piece := r.buf[r.r:min(r.w, r.r+int(n))]
		sink(piece)
		r.r += len(piece)
		n -= int64(len(piece))
	}
	return nil
}

func (r *wireReader) chunks(sink func([]byte)) error {
	for total := int64(0); total <= maxWireBody; {
		line, err := r.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, ok := parseHex(bytes.TrimSpace(size))
		if !ok {
			return fmt.Errorf("%w: chunk size", errWire)
		}
		if n == 0 {
			for { // trailers
				if line, err = r.line(); err != nil || len(line) == 0 {
					return err
				}
			}
		}
		if err := r.exactly(n, sink); err != nil {
			return err
		}
		if line, err = r.line(); err != nil {
			return err
		} else if len(line) != 0 {
			return fmt.Errorf("%w: no line end after a chunk", errWire)
		}
		total += n
	}
	return fmt.Errorf("%w: body too long", errWire)
}

// line reads up to the next CRLF and returns what stands before it, valid until
// the next read.
func (r *wireReader) line() ([]byte, error) {
	for {
		if end := bytes.Index(r.buf[r.r:r.w], []byte("\r\n")); end >= 0 {
			line := r.buf[r.r : r.r+end]
			r.r += end + 2
			return line, nil
		}
		if err := r.fillBody(); err != nil {
			return nil, err
		}
	}
}

func (r *wireReader) fillBody() error {
	err := r.fill()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func parseHex(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 8 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | int64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | int64(c-'a'+10)
		case 'A' <= c && c <= 'F':
			n = n<<4 | int64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, n <= maxWireBody
}
