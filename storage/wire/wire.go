// Package wire encodes values in the compact form that stores keep on disk and
// send over sockets.
//
// One [Coder] both writes and reads. A type has one function that passes each
// of its fields by pointer, so the two directions cannot drift apart:
//
//	func code(c *wire.Coder, p *point) {
//		wire.Int(c, &p.x)
//		wire.String(c, &p.name)
//	}
//
// Strings, byte slices and lists are preceded by their length as a uvarint;
// signed numbers are varints; floats are IEEE 754, little-endian. The form has
// no tags and no version: those belong to the caller.
//
// A reader trusts nothing. It never allocates more than a small multiple of the
// bytes it was given, and after the first fault it returns zero values: callers
// check [Coder.Done] once, at the end.
package wire

import (
	"encoding/binary"
	"math"
)

// Coder writes or reads a sequence of values. It is used by one goroutine.
type Coder struct {
	buf     []byte // what was written, or what is still to be read
	reading bool
	failed  bool
	text    string // after ShareStrings: a copy of buf, which strings are slices of
	shared  bool
}

// Writer returns a Coder that appends to b.
func Writer(b []byte) *Coder { return &Coder{buf: b} }

// Reader returns a Coder that reads b. What it reads is copied.
func Reader(b []byte) *Coder { return &Coder{buf: b, reading: true} }

// Reading reports whether c reads.
func (c *Coder) Reading() bool { return c.reading }

// Bytes returns what a writer has written, or what a reader has not read yet.
func (c *Coder) Bytes() []byte { return c.buf }

// Done reports whether a reader has read everything without a fault.
func (c *Coder) Done() bool { return !c.failed && len(c.buf) == 0 }

// Failed reports whether a reader has met a fault.
func (c *Coder) Failed() bool { return c.failed }

// Fail makes a reader fail: the caller has found a fault in what it read.
func (c *Coder) Fail() { c.failed, c.buf = true, nil }

// ShareStrings lets the strings that follow share one allocation of all that is
// left. It suits values that are mostly text.
func (c *Coder) ShareStrings() {
	if c.reading {
		c.text, c.shared = string(c.buf), true
	}
}

// Byte codes one byte.
func (c *Coder) Byte(v *byte) {
	switch {
	case !c.reading:
		c.buf = append(c.buf, *v)
	case len(c.buf) == 0:
		c.Fail()
		*v = 0
	default:
		*v, c.buf = c.buf[0], c.buf[1:]
	}
}

// Bool codes a bool as one byte.
func (c *Coder) Bool(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	c.Byte(&b)
	*v = b == 1
}

// Float codes 8 bytes.
func (c *Coder) Float(v *float64) {
	switch {
	case !c.reading:
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
	case len(c.buf) < 8:
		c.Fail()
		*v = 0
	default:
		*v = math.Float64frombits(binary.LittleEndian.Uint64(c.buf))
		c.buf = c.buf[8:]
	}
}

// Len codes a length, n when writing, of something whose elements take at least
// size bytes each, and returns it. A length that cannot fit what is left to
// read is a fault.
func (c *Coder) Len(n, size int) int {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, uint64(n))
		return n
	}
	v, used := binary.Uvarint(c.buf)
	if used <= 0 || v > uint64((len(c.buf)-used)/size) {
		c.Fail()
		return 0
	}
	c.buf = c.buf[used:]
	return int(v)
}

// Blob codes a byte slice. The empty one reads as nil.
func (c *Coder) Blob(v *[]byte) {
	if c.BlobInPlace(v); c.reading && *v != nil {
		*v = append([]byte(nil), *v...)
	}
}

// BlobInPlace is Blob without the copy: what it reads is part of the reader's
// bytes.
func (c *Coder) BlobInPlace(v *[]byte) {
	n := c.Len(len(*v), 1)
	if !c.reading {
		c.buf = append(c.buf, *v...)
		return
	}
	if *v = nil; n > 0 {
		*v, c.buf = c.buf[:n:n], c.buf[n:]
	}
}

// Nested codes what code does as a value of its own, preceded by its length in
// 4 bytes. A reader fails unless code reads all of it.
func (c *Coder) Nested(code func(c *Coder)) {
	if !c.reading {
		at := len(c.buf)
		c.buf = append(c.buf, 0, 0, 0, 0)
		code(c)
		binary.LittleEndian.PutUint32(c.buf[at:], uint32(len(c.buf)-at-4))
		return
	}
	if len(c.buf) < 4 || uint64(binary.LittleEndian.Uint32(c.buf)) > uint64(len(c.buf)-4) {
		c.Fail()
		return
	}
	end := 4 + int(binary.LittleEndian.Uint32(c.buf))
	inner := Coder{buf: c.buf[4:end], reading: true}
	c.buf = c.buf[end:]
	if code(&inner); !inner.Done() {
		c.Fail()
	}
}

// Int codes a signed number.
func Int[T ~int | ~int64](c *Coder, v *T) {
	if !c.reading {
		c.buf = binary.AppendVarint(c.buf, int64(*v))
		return
	}
	n, used := binary.Varint(c.buf)
	if used <= 0 {
		c.Fail()
		*v = 0
		return
	}
	*v, c.buf = T(n), c.buf[used:]
}

// Uint codes a number that is not negative.
func Uint[T ~int | ~uint64](c *Coder, v *T) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, uint64(*v))
		return
	}
	n, used := binary.Uvarint(c.buf)
	if used <= 0 {
		c.Fail()
		*v = 0
		return
	}
	*v, c.buf = T(n), c.buf[used:]
}

// String codes a string.
func String[T ~string](c *Coder, v *T) {
	n := c.Len(len(*v), 1)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *v...)
	case n == 0:
		*v = ""
	case c.shared:
		start := len(c.text) - len(c.buf)
		*v = T(c.text[start : start+n])
		c.buf = c.buf[n:]
	default:
		*v = T(c.buf[:n])
		c.buf = c.buf[n:]
	}
}

// maxCapacity bounds what a list allocates before its elements have been read.
const maxCapacity = 1024

// List codes a list, each element by code, which takes at least size bytes. The
// empty list reads as nil.
func List[T any](c *Coder, list *[]T, size int, code func(c *Coder, element *T)) {
	n := c.Len(len(*list), size)
	if !c.reading {
		for i := range *list {
			code(c, &(*list)[i])
		}
		return
	}
	if *list = nil; n == 0 {
		return
	}
	read := make([]T, 0, min(n, maxCapacity))
	for i := range n {
		var zero T
		read = append(read, zero)
		if code(c, &read[i]); c.failed {
			return
		}
	}
	*list = read
}

// Strings codes a list of strings. It does not call List, so that the Coder
// stays on the caller's stack.
func Strings[T ~string](c *Coder, list *[]T) {
	n := c.Len(len(*list), 1)
	if !c.reading {
		for i := range *list {
			String(c, &(*list)[i])
		}
		return
	}
	if *list = nil; n == 0 {
		return
	}
	read := make([]T, 0, min(n, maxCapacity))
	for range n {
		var s T
		if String(c, &s); c.failed {
			return
		}
		read = append(read, s)
	}
	*list = read
}
