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

// Pieces have from teePiece to maxTeePiece bytes.
const (
	teePiece    = 2 << 10
	maxTeePiece = 256 << 10
)

func (t *tee) write(p []byte) {
	if t.over {
		return
	}
	if t.size+int64(len(p)) > t.limit {
		t.giveUp()
		return
	}
	t.size += int64(len(p))
	for len(p) > 0 {
		last := len(t.pieces) - 1
		if last < 0 || len(t.pieces[last]) == cap(t.pieces[last]) {
			piece := bufferSize(min(max(t.size/8, teePiece), maxTeePiece))
			if !t.budget.acquire(piece) {
				t.giveUp()
				return
			}
			t.charged += piece
			t.pieces = append(t.pieces, takeBuffer(int(piece)))
			last++
		}
		room := t.pieces[last]
		c := min(len(p), cap(room)-len(room))
		t.pieces[last] = append(room, p[:c]...)
		p = p[c:]
	}
}

func (t *tee) giveUp() {
	t.over = true
	t.release()
}

// join returns all pieces as one, or false if the budget does not allow both to
// be held meanwhile.
func (t *tee) join() ([]byte, bool) {
	if len(t.pieces) > 1 {
		size := bufferSize(t.size)
		if !t.budget.acquire(size) {
			return nil, false
		}
		whole := takeBuffer(int(size))
		for _, p := range t.pieces {
			whole = append(whole, p...)
			giveBuffer(p)
		}
		t.pieces = append(t.pieces[:0], whole)
		t.budget.release(t.charged)
		t.charged = size
	}
	if len(t.pieces) == 0 {
		return nil, true
	}
	return t.pieces[0], true
}

func (t *tee) release() {
	t.budget.release(t.charged)
	for _, p := range t.pieces {
		giveBuffer(p)
	}
	t.pieces, t.size, t.charged = nil, 0, 0
}

// decode returns the decoded bytes of the answer, at most the tee's limit, and
// what releases them.
func (t *tee) decode(h http.Header) (plain []byte, release func(), err error) {
	whole, ok := t.join()
	if !ok {
		return nil, nil, errTooLarge
	}
	z, holds, err := openAnswer(h, whole)
	if z == nil {
		return whole, func() {}, err
	}
	defer z.Close()
	if !t.budget.acquire(holds) {
		return nil, nil, errTooLarge
	}
	defer t.budget.release(holds)
	b, err := readWhole(z, t.limit, t.budget)
	if err != nil {
		return nil, nil, err
	}
	return b.bytes, b.lease.Release, nil
}

// decodeAnswer returns the decoded bytes of an answer, at most limit. It is
// never used on what the client gets.
func decodeAnswer(h http.Header, b []byte, limit int64) ([]byte, error) {
	z, _, err := openAnswer(h, b)
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
	z, _, err := openAnswer(h, b)
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

// openAnswer returns a decoder of b and how much memory it holds at most, or
// nil if b is not encoded.
func openAnswer(h http.Header, b []byte) (z io.ReadCloser, holds int64, err error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ",")))
	switch encoding {
	case "", "identity":
		return nil, 0, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, 0, errEncoding
		}
		return z, flateHolds, nil
	case "deflate": // zlib by the RFC, raw deflate by some servers
		if z, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return z, flateHolds, nil
		}
		return flate.NewReader(bytes.NewReader(b)), flateHolds, nil
	case "br":
		return io.NopCloser(brotli.NewReader(bytes.NewReader(b))), brotliWindow(b) + brotliTables, nil
	case "zstd":
		z, holds, err := newZstd(b)
		if err != nil {
			return nil, 0, err
		}
		return z.IOReadCloser(), holds, nil
	}
	return nil, 0, errEncoding
}

// What decoders hold in addition to their output: the window of deflate with
// tables, and the tables of brotli.
const (
	flateHolds   = 64 << 10
	brotliTables = 512 << 10
)

// brotliWindow returns the window of a brotli stream (RFC 7932, section 9.1),
// in bytes.
func brotliWindow(b []byte) int64 {
	bits := 24 // at most
	switch {
	case len(b) == 0:
	case b[0]&1 == 0:
		bits = 16
	case b[0]>>1&7 != 0:
		bits = 17 + int(b[0]>>1&7)
	case b[0]>>4&7 == 0:
		bits = 17
	default:
		bits = 8 + int(b[0]>>4&7)
	}
	return 1 << bits
}
