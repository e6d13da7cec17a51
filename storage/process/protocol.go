package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/remora-proxy/remora/storage/wire"
)

// A connection carries frames:
//
//	length of the body, 4 bytes, little-endian | call 4 | kind 1 | more 1 | body
//
// A message is the concatenated bodies of the frames of one call, up to the
// first frame whose more is 0. Frames of several messages may alternate. The
// client numbers the calls; 0 is the connection itself.
//
//	hello    both ways, first: magic, protocol, build, and from the server the reason of a refusal
//	boot     to a new child process, before its hello: what its parent has for it
//	call     to the server: opcode, remaining time, arguments
//	cancel   to the server: the client no longer waits for the answer
//	answer   from the server: a code, then the results or the text of the error
//	data     from the server: a piece of a stream, before the answer
//	credit   to the server: a piece of the stream was consumed, one more may be sent
//	ping     to the server
//	pong     from the server: its Status
//	size     from the server, before an answer of several frames: its length, 4 bytes, little-endian
const (
	kindHello byte = iota + 1
	kindBoot
	kindCall
	kindCancel
	kindAnswer
	kindData
	kindCredit
	kindPing
	kindPong
	kindSize
)

const frameHeadSize = 10

const (
	magic           = "remora store\x00"
	protocolVersion = 5
)

// errProtocol ends a connection.
var errProtocol = errors.New("store socket: the peer violates the protocol")

type frame struct {
	call uint32
	kind byte
	more bool
	body []byte // valid until the next frame is read
}

type frameReader struct {
	r   io.Reader
	buf []byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 16<<10)}
}

func (f *frameReader) next() (frame, error) {
	var head [frameHeadSize]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	got := frame{call: binary.LittleEndian.Uint32(head[4:]), kind: head[8], more: head[9] == 1}
	if n > maxFrame || head[9] > 1 || got.kind < kindHello || got.kind > kindSize {
		return frame{}, errProtocol
	}
	if cap(f.buf) < int(n) {
		f.buf = make([]byte, n)
	}
	got.body = f.buf[:n]
	if _, err := io.ReadFull(f.r, got.body); err != nil {
		return frame{}, err
	}
	return got, nil
}

func appendFrameHead(b []byte, call uint32, kind byte, more bool, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, call)
	b = append(b, kind, 0)
	if more {
		b[len(b)-1] = 1
	}
	return b
}

// writeMessage sends a message on a connection that has no outbox yet.
func writeMessage(w io.Writer, kind byte, body []byte) error {
	for {
		n := min(len(body), maxFrame)
		if _, err := w.Write(append(appendFrameHead(nil, 0, kind, n < len(body), n), body[:n]...)); err != nil {
			return err
		}
		if body = body[n:]; len(body) == 0 {
			return nil
		}
	}
}

// readMessage reads a message of call 0, of at most limit bytes.
func (f *frameReader) readMessage(kind byte, limit int) ([]byte, error) {
	var all []byte
	for {
		got, err := f.next()
		if err != nil {
			return nil, err
		}
		if got.kind != kind || got.call != 0 || len(all)+len(got.body) > limit {
			return nil, errProtocol
		}
		all = append(all, got.body...)
		if !got.more {
			return all, nil
		}
	}
}

// hello is the first message of either side.
type hello struct {
	protocol uint64
	build    string
	refusal  string // the server's; "" = accepted
}

func (h *hello) code(c *wire.Coder) {
	wire.Uint(c, &h.protocol)
	wire.String(c, &h.build)
	wire.String(c, &h.refusal)
}

func (h hello) encode() []byte {
	c := wire.Writer([]byte(magic))
	h.code(c)
	return c.Bytes()
}

// decodeHello accepts trailing bytes, which a later protocol may add.
func decodeHello(b []byte) (h hello, err error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return hello{}, errProtocol
	}
	c := wire.Reader(b[len(magic):])
	if h.code(c); c.Failed() {
		return hello{}, errProtocol
	}
	return h, nil
}

// mismatch returns why two builds cannot talk to each other, "" if they can.
func mismatch(here, there hello) string {
	if here.protocol == there.protocol && here.build == there.build {
		return ""
	}
	return fmt.Sprintf("the store's socket is served by %s (protocol %d), this is %s (protocol %d): both must be the same build",
		there.build, there.protocol, here.build, here.protocol)
}

// greet is the client's side of the handshake.
func greet(conn net.Conn, in *frameReader, build string) error {
	own := hello{protocol: protocolVersion, build: build}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	if err := writeMessage(conn, kindHello, own.encode()); err != nil {
		return fmt.Errorf("greet store: %w", err)
	}
	body, err := in.readMessage(kindHello, maxFrame)
	if err != nil {
		return fmt.Errorf("greet store: %w", err)
	}
	server, err := decodeHello(body)
	if err != nil {
		return err
	}
	if text := mismatch(own, server); text != "" {
		return errors.New(text)
	}
	if server.refusal != "" {
		return errors.New("the store refuses: " + server.refusal)
	}
	return conn.SetDeadline(time.Time{})
}

// welcome is the server's side of the handshake.
func welcome(conn net.Conn, in *frameReader, build string) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	body, err := in.readMessage(kindHello, maxFrame)
	if err != nil {
		return err
	}
	client, err := decodeHello(body)
	if err != nil {
		return err
	}
	own := hello{protocol: protocolVersion, build: build}
	own.refusal = mismatch(own, client)
	if err := writeMessage(conn, kindHello, own.encode()); err != nil {
		return err
	}
	if own.refusal != "" {
		return errors.New(own.refusal)
	}
	return conn.SetDeadline(time.Time{})
}
