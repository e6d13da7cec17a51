package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// tee keeps a copy of an answer, made after the client has its bytes. Over its own or the global bound it lets go of
// what it has and the answer is not remembered.
type tee struct {
	limit   int64
	budget  *budget
	bytes   []byte
	charged int64
	over    bool
}

// teeStep is how much of the budget a tee asks for at once.
const teeStep = 16 << 10

func (t *tee) write(p []byte) {
	if t.over {
		return
	}
	n := int64(len(t.bytes) + len(p))
	if n > t.charged {
		more := (n - t.charged + teeStep - 1) / teeStep * teeStep
		if n > t.limit || !t.budget.acquire(more) {
			t.over = true
			t.release()
			return
		}
		t.charged += more
	}
	if t.bytes == nil {
		t.bytes = takeBuffer(len(p))
	}
	t.bytes = append(grow(t.bytes, len(p)), p...)
}

func (t *tee) release() {
	t.budget.release(t.charged)
	giveBuffer(t.bytes)
	t.bytes, t.charged = nil, 0
}

// decodeAnswer returns the plain bytes of an answer, at most limit of them. It is never used on what the client gets.
func decodeAnswer(h http.Header, b []byte, limit int64) ([]byte, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ",")))
	switch encoding {
	case "", "identity":
		return b, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, errEncoding
		}
		return readBounded(z, limit)
	case "deflate": // zlib by the RFC, raw deflate by some servers
		if z, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return readBounded(z, limit)
		}
		return readBounded(flate.NewReader(bytes.NewReader(b)), limit)
	case "br":
		return readBounded(brotli.NewReader(bytes.NewReader(b)), limit)
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1<<20))
		if err != nil {
			return nil, errEncoding
		}
		defer z.Close()
		return readBounded(io.Reader(z), limit)
	}
	return nil, errEncoding
}
