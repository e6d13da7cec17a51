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

func takeBuffer(n int) []byte {
	c := max(bits.Len(uint(max(n, 1)-1)), smallestBuffer)
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

// grow returns b with room for n more bytes.
func grow(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b
	}
	bigger := append(takeBuffer(max(len(b)+n, 2*cap(b))), b...)
	giveBuffer(b)
	return bigger
}

// body is a request body in memory. It is charged to the global budget until
// its lease is free.
type body struct {
	bytes   []byte
	charged int64
	room    []byte // for other bytes of the request, see spare
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
	b.budget.release(b.charged)
	giveBuffer(b.bytes)
	if b.room != nil {
		giveBuffer(b.room)
	}
	b.bytes, b.room = nil, nil
}

// spare returns empty memory for about n bytes that are sent with b's and held
// as long. It is given out once.
func (b *body) spare(n int) []byte {
	if b.room == nil {
		b.room = takeBuffer(n)
	}
	return b.room[:0]
}

// Memory for a body is allocated, and charged, as the body arrives, whatever
// length it announces. Otherwise clients that announce much and send nothing
// would use up the budget. A body that has arrived already gets all of its
// memory at once. Any other begins with firstRoom, or its length if that is
// less. When that is full it gets firstMore times as much, so that little of
// most bodies is copied, and is then doubled.
const (
	firstRoom = 16 << 10
	firstMore = 16
)

// moreRoom returns how much is added to full memory of room bytes, at most
// left.
func moreRoom(room, left int64) int64 {
	if room == firstRoom {
		return min(firstMore*room, left)
	}
	return min(room, left)
}

// readBody reads the request's body. If it exceeds limit or the budget, b is
// nil and rest returns all of it as a stream, starting with what was read.
// length is the body's, -1 = unknown.
func readBody(src io.Reader, length, limit int64, budget *budget) (b *body, rest io.Reader, err error) {
	if length > limit {
		return nil, src, nil
	}
	announced := length
	if length < 0 {
		announced = math.MaxInt64
	}
	most := min(announced, limit)
	size := min(most, firstRoom)
	if !budget.acquire(size) {
		return nil, src, nil
	}
	b = newBody(budget)
	b.charged = size
	b.bytes = takeBuffer(int(size))
	for int64(len(b.bytes)) < announced {
		if int64(len(b.bytes)) >= b.charged {
			more := moreRoom(b.charged, most-b.charged)
			if int64(len(b.bytes)) >= limit || !budget.acquire(more) {
				// What has been read continues as a copy, outside the pool and,
				// at most limit bytes, outside the budget.
				rest = io.MultiReader(bytes.NewReader(bytes.Clone(b.bytes)), src)
				b.lease.Release()
				return nil, rest, nil
			}
			b.charged += more
			b.bytes = grow(b.bytes, int(more))
		}
		room := min(int64(cap(b.bytes)), b.charged)
		n, err := src.Read(b.bytes[len(b.bytes):room])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if errors.Is(err, io.EOF) && (length < 0 || int64(len(b.bytes)) == length) {
			return b, nil, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			b.lease.Release()
			return nil, nil, err
		}
	}
	return b, nil, nil
}

// errEncoding is returned for a content encoding that is not supported.
var errEncoding = errors.New("unreadable content encoding")

// decodeRequest returns the decoded bytes of a request body as a body of its
// own, within limit and budget. The decoder's memory is charged to the budget
// while it works.
func decodeRequest(encoding string, b []byte, limit int64, budget *budget) (*body, error) {
	var src io.Reader
	switch encoding {
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, errEncoding
		}
		src = z
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
		src = z
	default:
		return nil, errEncoding
	}
	plain, rest, err := readBody(src, -1, limit, budget)
	switch {
	case err != nil:
		return nil, errEncoding
	case rest != nil:
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
