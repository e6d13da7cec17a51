package proxy

import (
	"bytes"
	"testing"
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
		if held := len(c.pieces); step == 1 && held < 10 {
			t.Errorf("%d pieces, so they must be large ones", held)
		}
		if got := c.join(); !bytes.Equal(got, want) || !bytes.Equal(c.join(), want) {
			t.Errorf("steps of %d: got %d bytes, want %d, or others", step, len(got), len(want))
		}
		c.release()
		if b.used.Load() != 0 {
			t.Fatalf("%d bytes stay charged", b.used.Load())
		}
	}
	if got := (&tee{}).join(); got != nil {
		t.Errorf("of nothing: got %d bytes", len(got))
	}
}

func TestTeeOverItsBounds(t *testing.T) {
	for name, c := range map[string]*tee{
		"own":    {limit: 10, budget: &budget{limit: 1 << 20}},
		"global": {limit: 1 << 20, budget: &budget{limit: teeStep}},
	} {
		c.write(make([]byte, 10))
		if c.over {
			t.Errorf("%s: over too early", name)
		}
		c.write(make([]byte, teeStep))
		c.write([]byte("x"))
		if !c.over || c.budget.used.Load() != 0 || c.join() != nil {
			t.Errorf("%s: got over=%v, %d bytes charged", name, c.over, c.budget.used.Load())
		}
	}
}
