package proxy

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// zstdOf is text in a frame with this window, in two blocks, so that the frame
// does not tell how little it holds.
func zstdOf(t *testing.T, window int, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range []string{text[:len(text)/2], text[len(text)/2:]} {
		if _, err := w.Write([]byte(half)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A frame's window is room that the decoder takes whatever the frame holds: one
// over the bound is not decoded, and each is charged to what all bodies share
// while it is.
func TestZstdWindowsAreBounded(t *testing.T) {
	r := newRig(t)
	body := chat("user: hello")
	for _, tt := range []struct {
		name, body string
		want       Status
	}{
		{"the largest window", zstdOf(t, maxZstdWindow, body), StatusEmpty},
		{"a larger one", zstdOf(t, 2*maxZstdWindow, body), StatusTooLarge},
		{"one that the second frame has", zstdOf(t, zstd.MinWindowSize, body[:4]) + zstdOf(t, maxZstdWindow, body[4:]), StatusUnsupported},
		{"two frames alike", zstdOf(t, 1<<20, body[:4]) + zstdOf(t, 1<<20, body[4:]), StatusEmpty},
		{"a segment of its own length", string([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 1}), StatusTooLarge},
		{"behind a frame to skip", "\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstdOf(t, 1<<20, body), StatusEmpty},
		{"no frame", "{}", StatusUnsupported},
	} {
		if got := r.post(tt.body, "Content-Encoding", "zstd"); got.status != tt.want || r.one().body != tt.body {
			t.Errorf("%s: status %s, want %s and the bytes as they came", tt.name, got.status, tt.want)
		}
	}
	if used := r.h.bodies.used.Load(); used != 0 {
		t.Errorf("%d bytes are still charged", used)
	}
}

func TestZstdWindowsAreCharged(t *testing.T) {
	small := []byte(zstdOf(t, maxZstdWindow, chat("user: hello")))
	b := &budget{limit: maxZstdWindow}
	if _, err := decodeRequest("zstd", small, 32<<20, b); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v where the budget has no room for the window", err)
	}
	b = &budget{limit: 64 << 20}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plain, err := decodeRequest("zstd", small, 32<<20, b)
	runtime.ReadMemStats(&after)
	if err != nil || !strings.Contains(string(plain.bytes), "hello") {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > maxZstdWindow+zstdBlocks+1<<20 {
		t.Errorf("%d bytes were allocated for a window of %d", took, maxZstdWindow)
	}
	plain.lease.Release()
	if b.used.Load() != 0 {
		t.Error("the budget was not given back")
	}
}
