package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A frame is
//
//	length of the body, 4 bytes, little-endian | call 4 | kind 1 | more 1 | body
//
// A message is the bodies of the frames with its call's number, up to the one whose more is 0. Frames of several messages
// may alternate. Calls are numbered by the client; 0 is the connection itself.
//
//	hello    both ways, first of all: magic, protocol, build; the server's has a reason to refuse as well
//	boot     to a process that was just started, before its hello: whatever its parent has for it
//	call     to the server: operation, time that is left, arguments
//	cancel   to the server: the answer is not waited for
//	answer   from the server: code, then the results or the text of the error
//	data     from the server: a piece of a stream that comes before the answer
//	credit   to the server: a piece of the stream was taken, one more may come
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

const headSize = 10

const (
	magic    = "remora store"
	protocol = 2
)

// errProtocol ends a connection.
var errProtocol = errors.New("store socket: the peer breaks the protocol")

type frame struct {
	call uint32
	kind byte
	more bool
	body []byte // valid until the next one is read
}

// frames reads frames.
type frames struct {
	r   io.Reader
	buf []byte
}

func newFrames(r io.Reader) *frames { return &frames{r: bufio.NewReaderSize(r, 16<<10)} }

func (f *frames) next() (frame, error) {
	var head [headSize]byte
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

func appendHead(b []byte, call uint32, kind byte, more bool, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, call)
	b = append(b, kind, 0)
	if more {
		b[len(b)-1] = 1
	}
	return b
}

// writeMessage sends a message on a connection that nobody else writes to yet.
func writeMessage(w io.Writer, kind byte, body []byte) error {
	for {
		n := min(len(body), maxFrame)
		if _, err := w.Write(append(appendHead(nil, 0, kind, n < len(body), n), body[:n]...)); err != nil {
			return err
		}
		if body = body[n:]; len(body) == 0 {
			return nil
		}
	}
}

// readMessage reads a message of the connection itself, of at most so many bytes.
func (f *frames) readMessage(kind byte, most int) ([]byte, error) {
	var all []byte
	for {
		got, err := f.next()
		if err != nil {
			return nil, err
		}
		if got.kind != kind || got.call != 0 || len(all)+len(got.body) > most {
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
	refusal  string // the server's; "" = welcome
}

func (h hello) encode() []byte {
	b := append([]byte(magic), 0)
	b = binary.AppendUvarint(b, h.protocol)
	b = appendString(b, h.build)
	return appendString(b, h.refusal)
}

func decodeHello(b []byte) (hello, error) {
	if len(b) <= len(magic) || string(b[:len(magic)+1]) != magic+"\x00" {
		return hello{}, errProtocol
	}
	d := newDecoder(b[len(magic)+1:])
	h := hello{protocol: d.uvarint(), build: d.string(), refusal: d.string()}
	if d.bad { // more may follow in a later protocol
		return hello{}, errProtocol
	}
	return h, nil
}

// mismatch says why two builds do not talk to each other, "" if they do.
func mismatch(here, there hello) string {
	if here.protocol == there.protocol && here.build == there.build {
		return ""
	}
	return fmt.Sprintf("the store's socket is served by %s (protocol %d), this is %s (protocol %d): both must be of one build",
		there.build, there.protocol, here.build, here.protocol)
}

// greet is the client's side of the handshake.
func greet(conn net.Conn, in *frames, build string) error {
	own := hello{protocol: protocol, build: build}
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

// welcome is the server's side.
func welcome(conn net.Conn, in *frames, build string) error {
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
	own := hello{protocol: protocol, build: build}
	own.refusal = mismatch(own, client)
	if err := writeMessage(conn, kindHello, own.encode()); err != nil {
		return err
	}
	if own.refusal != "" {
		return errors.New(own.refusal)
	}
	return conn.SetDeadline(time.Time{})
}
