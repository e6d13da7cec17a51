package proxy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/remora-proxy/remora/proxy/httpclient"
)

// buffers pools byte slices with power-of-two capacities from 1 KiB to 4 MiB;
// larger ones are not pooled. The pools hold pointers to slices, and boxes
// holds empty ones, so that returning a buffer allocates nothing.
var (
	buffers [13]sync.Pool
	boxes   = sync.Pool{New: func() any { return new([]byte) }}
)

const (
	smallestBuffer = 10 // log2
	largestBuffer  = smallestBuffer + len(buffers) - 1
)

// bufferClass returns the binary logarithm of the capacity of a buffer for n
// bytes.
func bufferClass(n int) int { return max(bits.Len(uint(max(n, 1)-1)), smallestBuffer) }

// bufferSize returns the capacity of a buffer for n bytes.
func bufferSize(n int64) int64 {
	if c := bufferClass(int(n)); c <= largestBuffer {
		return 1 << c
	}
	return n
}

func takeBuffer(n int) []byte {
	c := bufferClass(n)
	if c > largestBuffer {
		return make([]byte, 0, n)
	}
	if box, ok := buffers[c-smallestBuffer].Get().(*[]byte); ok {
		b := (*box)[:0]
		*box = nil
		boxes.Put(box)
		return b
	}
	return make([]byte, 0, 1<<c)
}

func giveBuffer(b []byte) {
	c := bits.Len(uint(cap(b))) - 1
	if c < smallestBuffer || c > largestBuffer || cap(b) != 1<<c {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = b
	buffers[c-smallestBuffer].Put(box)
}

// body is a body in memory. All memory that it takes is charged to a budget
// until its lease is free.
type body struct {
	bytes   []byte
	full    [][]byte // pieces before bytes, while it is read
	charged int64    // for bytes and full
	also    int64    // for what else is held because of it, see charge and spare
	room    []byte   // for other bytes of the request, see spare
	budget  *budget
	lease   httpclient.Lease // the holder has one reference
}

func newBody(budget *budget) *body {
	b := &body{budget: budget}
	b.lease.Begin(b)
	return b
}

// Free releases the memory. The lease calls it.
func (b *body) Free() {
	b.budget.release(b.charged + b.also)
	giveBuffer(b.bytes)
	for _, p := range b.full {
		giveBuffer(p)
	}
	if b.room != nil {
		giveBuffer(b.room)
	}
	b.bytes, b.full, b.room = nil, nil, nil
}

// charge charges n bytes more, for what is read out of b and held as long. It
// reports false if the budget does not allow them. The owner of b calls it.
func (b *body) charge(n int64) bool {
	if !b.budget.acquire(n) {
		return false
	}
	b.also += n
	return true
}

// uncharge ends what charge and spare have charged.
func (b *body) uncharge() {
	b.budget.release(b.also)
	b.also = 0
}

// spare returns empty memory for about n bytes that are sent with b's and held
// as long. It is given out once. It is charged even if that exceeds the budget,
// by one block.
func (b *body) spare(n int) []byte {
	if b.room == nil {
		b.room = takeBuffer(n)
		b.also += int64(cap(b.room))
		b.budget.used.Add(int64(cap(b.room)))
	}
	return b.room[:0]
}

// more gets b room for more bytes, at most limit in all, and reports false if
// the budget has none. Both the old and the new memory are charged while one is
// copied to the other.
func (b *body) more(limit int64) bool {
	size := 2 * b.charged
	switch b.charged {
	case 0:
		size = firstRoom
	case firstRoom:
		size = firstMore * firstRoom
	}
	size = bufferSize(min(size, limit))
	if !b.budget.acquire(size) {
		return false
	}
	bigger := append(takeBuffer(int(size)), b.bytes...)
	giveBuffer(b.bytes) // nothing, at first
	b.budget.release(b.charged)
	b.bytes, b.charged = bigger, size
	return true
}

// Memory for a body is allocated, and charged, as the body arrives, whatever
// length it announces. Otherwise clients that announce much and send nothing
// would use up the budget. It begins with firstRoom, or the body's length if
// that is less. When that is full it gets firstMore times as much, so that
// little of most bodies is copied, and then piece after piece of that size,
// which become one when all of the body is there: so a body that turns out to
// be too large leaves nothing behind but what others use again.
const (
	firstRoom = 16 << 10
	firstMore = 16
	pieceRoom = firstMore * firstRoom
)

// next gets b room for more of a body of which at most limit bytes are kept,
// and reports false if the budget has none.
func (b *body) next(limit int64) bool {
	if cap(b.bytes) < pieceRoom {
		return b.more(limit)
	}
	if !b.budget.acquire(pieceRoom) {
		return false
	}
	b.charged += pieceRoom
	b.full = append(b.full, b.bytes)
	b.bytes = takeBuffer(pieceRoom)
	return true
}

// join makes all pieces one, and reports false if the budget does not allow
// both to be held meanwhile.
func (b *body) join() bool {
	if len(b.full) == 0 {
		return true
	}
	length := len(b.bytes)
	for _, p := range b.full {
		length += len(p)
	}
	size := bufferSize(int64(length))
	if !b.budget.acquire(size) {
		return false
	}
	whole := takeBuffer(int(size))
	for _, p := range append(b.full, b.bytes) {
		whole = append(whole, p...)
		giveBuffer(p)
	}
	b.budget.release(b.charged)
	b.bytes, b.full, b.charged = whole, nil, size
	return true
}

// readBody reads a body. If it exceeds limit or the budget, b is nil and rest
// returns all of it as a stream, which begins with what was read: that stays in
// memory, and charged, until it has been read or rest is closed. length is the
// body's, -1 = unknown.
func readBody(src io.ReadCloser, length, limit int64, budget *budget) (b *body, rest io.ReadCloser, err error) {
	if length > limit {
		return nil, src, nil
	}
	announced := length
	if length < 0 {
		announced = math.MaxInt64
	}
	b = newBody(budget)
	if !b.more(min(announced, limit)) {
		return nil, src, nil
	}
	for got := int64(0); got < announced; {
		if got == limit || len(b.bytes) == cap(b.bytes) && !b.next(min(announced, limit)) {
			return nil, newStartedBody(b, src), nil
		}
		room := min(int64(cap(b.bytes)-len(b.bytes)), limit-got)
		n, err := src.Read(b.bytes[len(b.bytes) : len(b.bytes)+int(room)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		got += int64(n)
		if errors.Is(err, io.EOF) && (length < 0 || got == length) {
			break
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			b.lease.Release()
			return nil, nil, err
		}
	}
	if !b.join() {
		return nil, newStartedBody(b, src), nil
	}
	return b, nil, nil
}

// startedBody is a body of which the beginning has been read. Close may be called at
// any time, from any goroutine.
type startedBody struct {
	head io.ReadCloser // holds the beginning
	src  io.ReadCloser
	read bool // all of head has been read
}

// newStartedBody takes over the caller's reference to b.
func newStartedBody(b *body, src io.ReadCloser) *startedBody {
	defer b.lease.Release()
	return &startedBody{head: httpclient.NewBody(&b.lease, append(b.full, b.bytes)...).Open(), src: src}
}

func (b *startedBody) Read(p []byte) (int, error) {
	if !b.read {
		n, err := b.head.Read(p)
		if err != io.EOF {
			return n, err
		}
		b.read = true
		_ = b.head.Close()
	}
	return b.src.Read(p)
}

// leave gives back what is left of the beginning.
func (b *startedBody) leave() {
	if b != nil {
		_ = b.head.Close()
	}
}

func (b *startedBody) Close() error {
	b.leave()
	return b.src.Close()
}

// errEncoding is returned for a content encoding that is not supported.
var errEncoding = errors.New("unreadable content encoding")

// decodeRequest returns the decoded bytes of a request body as a body of its
// own, within limit and budget. The decoder's memory is charged to the budget
// while it works.
func decodeRequest(encoding string, b []byte, limit int64, budget *budget) (*body, error) {
	switch encoding {
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, errEncoding
		}
		return readWhole(z, limit, budget)
	case "zstd":
		z, holds, err := newZstd(b)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		if !budget.acquire(holds) {
			return nil, errTooLarge
		}
		defer budget.release(holds)
		return readWhole(z.IOReadCloser(), limit, budget)
	}
	return nil, errEncoding
}

// readWhole reads what a decoder returns, within limit and budget.
func readWhole(decoder io.ReadCloser, limit int64, budget *budget) (*body, error) {
	plain, rest, err := readBody(decoder, -1, limit, budget)
	switch {
	case err != nil:
		return nil, errEncoding
	case rest != nil:
		_ = rest.Close()
		return nil, errTooLarge
	}
	return plain, nil
}

// readBounded reads all of src, which must end within limit bytes.
func readBounded(src io.Reader, limit int64) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(src, limit+1))
	if err != nil || int64(len(out)) > limit {
		return nil, errEncoding
	}
	return out, nil
}
