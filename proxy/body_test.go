package proxy

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A body comes whole into memory, or goes by whole, whatever length it announces and in whatever pieces it comes; and it
// is charged for what it has, not for what it announces.
func TestReadBody(t *testing.T) {
	const limit = 4 << 20
	whole := strings.Repeat("0123456789abcdef", (limit+16)/16)
	for _, n := range []int{1, 1000, trustedLength, trustedLength + 1, 3 << 20, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			b := &budget{limit: 16 << 20}
			length := int64(-1)
			if announced {
				length = int64(n)
			}
			got, rest, err := readBody(iotest.DataErrReader(strings.NewReader(whole[:n])), length, limit, b)
			if err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if rest != nil {
				passed, err := io.ReadAll(rest)
				if n <= limit || err != nil || string(passed) != whole[:n] {
					t.Errorf("%d bytes, announced %v: streamed %d, %v", n, announced, len(passed), err)
				}
				continue
			}
			if n > limit && announced || !bytes.Equal(got.bytes, []byte(whole[:n])) {
				t.Errorf("%d bytes, announced %v: got %d", n, announced, len(got.bytes))
			}
			if charged := b.used.Load(); announced && charged != int64(n) {
				t.Errorf("%d bytes are charged as %d", n, charged)
			}
			got.lease.release()
			if b.used.Load() != 0 {
				t.Errorf("%d bytes: the budget was not given back", n)
			}
		}
	}
}

// Who announces much and sends nothing holds little of what all share.
func TestAnnouncedIsNotHeld(t *testing.T) {
	b := &budget{limit: 64 << 20}
	src, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = readBody(src, 32<<20, 32<<20, b)
	}()
	mustWrite(t, w, "{") // it has begun to read
	if used := b.used.Load(); used > trustedLength {
		t.Errorf("%d bytes are held for one that came", used)
	}
	_ = w.CloseWithError(io.ErrUnexpectedEOF)
	wait(t, ended)
	if b.used.Load() != 0 {
		t.Error("the budget was not given back")
	}
}
