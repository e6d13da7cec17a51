package httpclient

import (
	"io"
	"testing"
	"time"
)

// patience bounds waits that only a failing test sits out.
const patience = time.Minute

// unjoin returns the errors that errors.Join has joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	return err.(interface{ Unwrap() []error }).Unwrap()
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("write: got %d, %v, want %d", n, err, len(s))
	}
}
