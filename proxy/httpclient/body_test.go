package httpclient

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// newLease returns a lease with one reference, whose end calls free.
func newLease(free func()) *Lease { return new(Lease).Begin(freeFunc(free)) }

type freeFunc func()

func (f freeFunc) Free() { f() }

func TestPieceReader(t *testing.T) {
	for _, pieces := range [][][]byte{
		{}, {{}}, {[]byte("one")}, {[]byte("a"), {}, []byte("bc"), []byte("def"), {}},
	} {
		want := bytes.Join(pieces, nil)
		body := NewBody(nil, pieces...)
		if got := body.length; got != int64(len(want)) {
			t.Errorf("length: got %d, want %d", got, len(want))
		}
		if err := iotest.TestReader(struct{ io.Reader }{body.open()}, want); err != nil {
			t.Error(err)
		}
		for range 2 { // it can be sent again
			var got bytes.Buffer
			if _, err := body.open().WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("WriteTo: got %q, %v, want %q", got.Bytes(), err, want)
			}
		}
	}
}

func TestLease(t *testing.T) {
	freed := 0
	l := newLease(func() { freed++ })
	body := NewBody(l, []byte("abc"), []byte("def"))
	first, second := body.open(), body.open()
	l.Release()
	first.Close()
	first.Close()
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, errBodyClosed) {
		t.Errorf("read after close: got %v, want %v", err, errBodyClosed)
	}
	if freed != 0 {
		t.Fatal("freed while a reader is open")
	}
	second.Close()
	if freed != 1 {
		t.Errorf("freed %d times, want once", freed)
	}
	var none *Lease
	none.take()
	none.Release()
}

// A transport may close a body while another goroutine reads it. The bytes must
// not go back to their pool before that read is over: they would be another
// request's by then.
func TestLeaseOutlivesReadInProgress(t *testing.T) {
	freed := make(chan struct{})
	l := newLease(func() { close(freed) })
	r := NewBody(l, []byte("abc")).open()
	l.Release()
	closing := writerFunc(func(p []byte) (int, error) {
		r.Close()
		select {
		case <-freed:
			t.Error("freed during a read")
		default:
		}
		return len(p), nil
	})
	if _, err := r.WriteTo(closing); err != nil {
		t.Fatal(err)
	}
	select {
	case <-freed:
	default:
		t.Error("not freed after the read")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
