package proxy

import (
	"bytes"
	"errors"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the largest window of a zstd frame that is decoded, in
// bytes: what RFC 8878 (3.1.1.1.2) asks decoders to support. The window is for
// the encoder to choose, whatever the frame holds, and the decoder makes room
// for all of it.
const maxZstdWindow = 8 << 20

// errTooLarge: reading it would take more memory than there may be.
var errTooLarge = errors.New("content encoding takes too much memory")

// newZstd returns a decoder of b and how many bytes it holds at most, beside
// what it gives. Frames behind the first must do with the first one's window.
func newZstd(b []byte) (z *zstd.Decoder, holds int64, err error) {
	var h zstd.Header
	if h.Decode(b) != nil {
		return nil, 0, errEncoding
	}
	window := h.WindowSize
	switch {
	case h.Skippable:
		window = maxZstdWindow // of what follows
	case h.SingleSegment:
		window = h.FrameContentSize
	}
	if window > maxZstdWindow {
		return nil, 0, errTooLarge
	}
	window = max(window, zstd.MinWindowSize)
	z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, 0, errEncoding
	}
	return z, int64(window) + zstdBlocks, nil
}

// zstdBlocks is what a decoder needs for blocks, of at most 128 KiB each,
// beside the window.
const zstdBlocks = 512 << 10
