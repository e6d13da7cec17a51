package load

import (
	"io"
	"math"
	"testing"
	"time"
)

// TestTargetsThatEnd: a target that is told to end right after its last
// response is not waited for until it rests, which audits put off for seconds;
// that of another cell is, as its CPU shows.
func TestTargetsThatEnd(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, err := openBed(t.Context(), loadOptions{upstream: "127.0.0.1:0"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	targets, err := b.targets(t.Context(), []string{targetReverse}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ends := range []bool{false, true} {
		c := cell{api: apis()[0], size: 1 << 10, conns: 2, users: 1, rounds: 1, duration: 50 * time.Millisecond, ends: ends}
		m, f, err := b.measure(t.Context(), c, targets[0])
		for ; err == nil && m.requests == 0 && c.duration < 5*time.Second; c.duration *= 2 { // on a machine that stands still
			m, f, err = b.measure(t.Context(), c, targets[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.requests == 0 || math.IsNaN(float64(f.CPU)) != ends {
			t.Errorf("ends %v: %d requests, CPU %v", ends, m.requests, f.CPU)
		}
	}
}
