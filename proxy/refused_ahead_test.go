package proxy

import (
	"io"
	"strings"
	"testing"
)

// panicking is a body that panics after its beginning.
type panicking struct{ io.Reader }

func (p panicking) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err == io.EOF {
		panic("body")
	}
	return n, err
}

func (panicking) Close() error { return nil }

// What panics while a refusal is read ahead cuts the refusal off, not the
// process.
func TestReadingAheadIsGuarded(t *testing.T) {
	r := newRig(t)
	whole, head, _ := peekBody(r.h, panicking{strings.NewReader("no")}, refusalTimeout, nil)
	got, err := io.ReadAll(whole)
	if string(head) != "no" || string(got) != "no" || err != io.ErrUnexpectedEOF {
		t.Errorf("peeked %q, read %q, %v", head, got, err)
	}
	if got := r.h.stats.Panics.Load(); got != 1 {
		t.Errorf("%d panics are counted, want 1", got)
	}
}
