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
)

// tee keeps a copy of an answer, made after the client has its bytes. Beyond
// its own limit or the global budget it drops the copy, and the answer is not
// remembered.
//
// It grows by pieces. A thousand concurrent streams would hold twice what they
// copied if each doubled its buffer.
type tee struct {
	limit   int64
	budget  *budget
	pieces  [][]byte // all except the last are full
	size    int64
	charged int64
	over    bool
}

// teeStep is how much of the budget a tee takes at once. Pieces have from
// teePiece to maxTeePiece bytes.
const (
	teeStep     = 16 << 10
	teePiece    = 2 << 10
	maxTeePiece = 256 << 10
)

func (t *tee) write(p []byte) {
	if t.over {
		return
	}
	n := t.size + int64(len(p))
	if n > t.charged {
		more := (n - t.charged + teeStep - 1) / teeStep * teeStep
		if n > t.limit || !t.budget.acquire(more) {
			t.over = true
			t.release()
			return
		}
		t.charged += more
	}
	t.size = n
	for len(p) > 0 {
		last := len(t.pieces) - 1
		if last < 0 || len(t.pieces[last]) == cap(t.pieces[last]) {
			t.pieces = append(t.pieces, takeBuffer(int(min(max(t.size/8, teePiece), maxTeePiece))))
			last++
		}
		room := t.pieces[last]
		c := min(len(p), cap(room)-len(room))
		t.pieces[last] = append(room, p[:c]...)
		p = p[c:]
	}
}

// join returns all pieces as one. It holds both meanwhile, outside the budget.
func (t *tee) join() []byte {
	if len(t.pieces) > 1 {
		whole := takeBuffer(int(t.size))
		for _, p := range t.pieces {
			whole = append(whole, p...)
			giveBuffer(p)
		}
		t.pieces = append(t.pieces[:0], whole)
	}
	if len(t.pieces) == 0 {
		return nil
	}
	return t.pieces[0]
}

func (t *tee) release() {
	t.budget.release(t.charged)
	for _, p := range t.pieces {
		giveBuffer(p)
	}
	t.pieces, t.size, t.charged = nil, 0, 0
}

// decodeAnswer returns the decoded bytes of an answer, at most limit. It is
// never used on what the client gets.
func decodeAnswer(h http.Header, b []byte, limit int64) ([]byte, error) {
	z, err := openAnswer(h, b)
	if err != nil {
		return nil, err
	}
	if z == nil {
		return b, nil
	}
	defer z.Close()
	return readBounded(z, limit)
}

// decodeBeginning is decodeAnswer for the first bytes of an answer: it returns
// what they decode to, possibly nothing.
func decodeBeginning(h http.Header, b []byte, limit int64) []byte {
	z, err := openAnswer(h, b)
	if err != nil {
		return nil
	}
	if z == nil {
		return b
	}
	defer z.Close()
	plain, _ := io.ReadAll(io.LimitReader(z, limit))
	return plain
}

// openAnswer returns a decoder of b, or nil if b is not encoded.
func openAnswer(h http.Header, b []byte) (io.ReadCloser, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ",")))
	switch encoding {
	case "", "identity":
		return nil, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, errEncoding
		}
		return z, nil
	case "deflate": // zlib by the RFC, raw deflate by some servers
		if z, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return z, nil
		}
		return flate.NewReader(bytes.NewReader(b)), nil
	case "br":
		return io.NopCloser(brotli.NewReader(bytes.NewReader(b))), nil
	case "zstd":
		z, _, err := newZstd(b)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, errEncoding
}
