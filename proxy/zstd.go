package proxy

import (
	"bytes"
	"errors"

	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the maximum window of a zstd frame that is decoded, in
// bytes: what RFC 8878 (3.1.1.1.2) asks decoders to support. The encoder
// chooses the window, whatever the frame contains, and the decoder allocates
// all of it.
const maxZstdWindow = 8 << 20

// errTooLarge is returned if decoding would take too much memory.
var errTooLarge = errors.New("content encoding takes too much memory")

// newZstd returns a decoder of b and how many bytes it holds at most, in
// addition to its output. Later frames must do with the first one's window.
func newZstd(b []byte) (z *zstd.Decoder, holds int64, err error) {
	var h zstd.Header
	if h.Decode(b) != nil {
		return nil, 0, errEncoding
	}
	window := h.WindowSize
	switch {
	case h.Skippable:
		window = maxZstdWindow // of later frames
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

// zstdBlocks is what a decoder needs for blocks, of at most 128 KiB each, in
// addition to the window.
const zstdBlocks = 512 << 10
