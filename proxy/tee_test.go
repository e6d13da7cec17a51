package proxy

import (
	"bytes"
	"testing"

	"github.com/andybalholm/brotli"
)

func TestTeeCopiesWhole(t *testing.T) {
	b := &budget{limit: 1 << 20}
	for _, step := range []int{1, 300, 5000, 70_000} {
		var want []byte
		c := &tee{limit: 1 << 20, budget: b}
		for i := 0; len(want) < 150_000; i++ {
			p := bytes.Repeat([]byte{byte(i)}, step)
			want = append(want, p...)
			c.write(p)
			clear(p) // the tee must not keep it
		}
		if n := len(c.pieces); step == 1 && n < 10 {
			t.Errorf("%d pieces, so they must be large ones", n)
		}
		if pieceMemory(c) > b.used.Load() {
			t.Errorf("steps of %d: %d bytes are held and %d charged", step, pieceMemory(c), b.used.Load())
		}
		got, ok := c.join()
		again, _ := c.join()
		if !ok || !bytes.Equal(got, want) || !bytes.Equal(again, want) {
			t.Errorf("steps of %d: got %d bytes, want %d, or others", step, len(got), len(want))
		}
		if pieceMemory(c) > b.used.Load() {
			t.Errorf("steps of %d, joined: %d bytes are held and %d charged", step, pieceMemory(c), b.used.Load())
		}
		c.release()
		if b.used.Load() != 0 {
			t.Fatalf("%d bytes stay charged", b.used.Load())
		}
	}
	if got, ok := (&tee{}).join(); got != nil || !ok {
		t.Errorf("of nothing: got %d bytes", len(got))
	}
}

// pieceMemory returns the memory of a tee's pieces.
func pieceMemory(c *tee) (n int64) {
	for _, p := range c.pieces {
		n += int64(cap(p))
	}
	return n
}

func TestTeeOverItsBounds(t *testing.T) {
	for name, c := range map[string]*tee{
		"own":    {limit: 10, budget: &budget{limit: 1 << 20}},
		"global": {limit: 1 << 20, budget: &budget{limit: teePiece}},
	} {
		c.write(make([]byte, 10))
		if c.over {
			t.Errorf("%s: over too early", name)
		}
		c.write(make([]byte, teePiece))
		c.write([]byte("x"))
		if !c.over || c.budget.used.Load() != 0 || len(c.pieces) > 0 {
			t.Errorf("%s: got over=%v, %d bytes charged", name, c.over, c.budget.used.Load())
		}
	}
}

// The window of a stream is what its encoder was told.
func TestBrotliWindow(t *testing.T) {
	for bits := 10; bits <= 24; bits++ {
		var b bytes.Buffer
		w := brotli.NewWriterOptions(&b, brotli.WriterOptions{Quality: 5, LGWin: bits})
		_, _ = w.Write(bytes.Repeat([]byte("window "), 100))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := brotliWindow(b.Bytes()); got != 1<<bits {
			t.Errorf("2^%d: got %d", bits, got)
		}
	}
}
