package load

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// message is what a wireReader made of one message.
type message struct {
	Start   string
	Status  int
	Remora  string
	Close   bool
	Body    string
	Err     error
	HeadErr bool
}

func readMessage(r *wireReader, response bool) message {
	h, err := r.head()
	if err != nil {
		return message{Err: err, HeadErr: true}
	}
	m := message{Start: string(h.start), Status: h.status(), Remora: string(h.remora), Close: h.close}
	var body strings.Builder
	m.Err = r.body(h, response, func(p []byte) { body.Write(p) })
	m.Body = body.String()
	return m
}

func TestWireReader(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, tc := range []struct {
		name     string
		in       string
		response bool
		want     []message
	}{
		{
			name: "content length, two responses", response: true,
			in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Remora-Status: injected\r\n\r\nhello" +
				"HTTP/1.1 404 Not Found\r\ncontent-length:0\r\nConnection: Close\r\n\r\n",
			want: []message{
				{Start: "HTTP/1.1 200 OK", Status: 200, Remora: "injected", Body: "hello"},
				{Start: "HTTP/1.1 404 Not Found", Status: 404, Close: true},
			},
		},
		{
			name: "chunks with extension and trailer", response: true,
			in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n \r\n12c\r\n" + long + "\r\n0\r\nTrailer: x\r\n\r\n" +
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			want: []message{
				{Start: "HTTP/1.1 200 OK", Status: 200, Body: "hello " + long},
				{Start: "HTTP/1.1 200 OK", Status: 200, Body: "ok"},
			},
		},
		{
			name: "until the end", response: true,
			in:   "HTTP/1.1 200 OK\r\n\r\n" + long,
			want: []message{{Start: "HTTP/1.1 200 OK", Status: 200, Body: long}},
		},
		{
			name: "request without a body",
			in:   "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n\r\n",
			want: []message{{Start: "GET / HTTP/1.1"}, {Start: "GET /b HTTP/1.1"}},
		},
		{
			name: "cut body", response: true,
			in:   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
			want: []message{{Start: "HTTP/1.1 200 OK", Status: 200, Body: "hel", Err: io.ErrUnexpectedEOF}},
		},
		{
			name: "cut chunk", response: true,
			in:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
			want: []message{{Start: "HTTP/1.1 200 OK", Status: 200, Body: "hello", Err: io.ErrUnexpectedEOF}},
		},
		{
			name: "cut head", response: true,
			in:   "HTTP/1.1 200 OK\r\nContent-Le",
			want: []message{{Err: io.ErrUnexpectedEOF, HeadErr: true}},
		},
		{
			name: "bad chunk size", response: true,
			in:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
			want: []message{{Start: "HTTP/1.1 200 OK", Status: 200, Err: errWire}},
		},
		{
			name: "no line end after a chunk", response: true,
			in:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX\r\n",
			want: []message{{Start: "HTTP/1.1 200 OK", Status: 200, Body: "ab", Err: errWire}},
		},
		{
			name: "bad length", response: true,
			in:   "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
			want: []message{{Err: errWire, HeadErr: true}},
		},
		{
			name: "head longer than the buffer", response: true,
			in:   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n",
			want: []message{{Err: errWire, HeadErr: true}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for how, src := range map[string]io.Reader{
				"whole":        strings.NewReader(tc.in),
				"byte by byte": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				r := newWireReader(src, 256)
				var got []message
				for range tc.want {
					got = append(got, readMessage(r, tc.response))
				}
				same := cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || errors.Is(b, a) })
				if diff := cmp.Diff(tc.want, got, same); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", how, diff)
				}
			}
		})
	}
}

func TestWireReaderEndsBetweenMessages(t *testing.T) {
	if _, err := newWireReader(strings.NewReader(""), 256).head(); err != io.EOF {
		t.Errorf("head of nothing: %v, want io.EOF", err)
	}
}
