package badger

import (
	"bufio"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// A backup and an exported keyring have the same form: a magic line, a format
// byte, then frames of type 1 | number of fields 1 | for each field: length as
// uvarint | field. The last frame is the trailer: the number of frames before
// it, and an HMAC-SHA256 of everything before it under a key derived from the
// keyring's HMAC secret. It detects files that are truncated, altered or of
// another store.
const (
	frameTrailer = 'Z'

	maxFields = 4
	maxField  = 4 << 20
)

type frameWriter struct {
	w      *bufio.Writer
	mac    hash.Hash
	frames uint64
}

func newFrameWriter(w io.Writer, mac hash.Hash, head []byte) (*frameWriter, error) {
	f := &frameWriter{w: bufio.NewWriterSize(w, 256<<10), mac: mac}
	return f, f.put(head)
}

func (f *frameWriter) put(b []byte) error {
	f.mac.Write(b)
	_, err := f.w.Write(b)
	return err
}

func (f *frameWriter) frame(kind byte, fields ...[]byte) error {
	f.frames++
	if err := f.put([]byte{kind, byte(len(fields))}); err != nil {
		return err
	}
	for _, field := range fields {
		if err := f.put(binary.AppendUvarint(nil, uint64(len(field)))); err != nil {
			return err
		}
		if err := f.put(field); err != nil {
			return err
		}
	}
	return nil
}

// end writes the trailer. The file is complete once it returns nil.
func (f *frameWriter) end() error {
	sum, n := f.mac.Sum(nil), binary.BigEndian.AppendUint64(nil, f.frames)
	if err := f.frame(frameTrailer, n, sum); err != nil {
		return err
	}
	return f.w.Flush()
}

var (
	errTruncated = errors.New("it is truncated")
	errAltered   = errors.New("it is damaged: its checksum or form is wrong")
)

type frameReader struct {
	r      *bufio.Reader
	mac    hash.Hash
	read   []byte // of the current frame
	frames uint64
}

func (f *frameReader) byte() (byte, error) {
	b, err := f.r.ReadByte()
	if err != nil {
		return 0, truncated(err)
	}
	f.read = append(f.read, b)
	return b, nil
}

func (f *frameReader) field() ([]byte, error) {
	size := uint64(0)
	for shift := 0; ; shift += 7 {
		b, err := f.byte()
		if err != nil {
			return nil, err
		}
		size |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift > 21 {
			return nil, errAltered
		}
	}
	if size > maxField {
		return nil, errAltered
	}
	field := make([]byte, size)
	if _, err := io.ReadFull(f.r, field); err != nil {
		return nil, truncated(err)
	}
	f.read = append(f.read, field...)
	return field, nil
}

// next returns a frame, and io.EOF after a valid trailer at the end of the
// file.
func (f *frameReader) next() (kind byte, fields [][]byte, err error) {
	f.read = f.read[:0]
	if kind, err = f.byte(); err != nil {
		return 0, nil, err
	}
	n, err := f.byte()
	if err != nil {
		return 0, nil, err
	}
	if n > maxFields {
		return 0, nil, errAltered
	}
	for range n {
		field, err := f.field()
		if err != nil {
			return 0, nil, err
		}
		fields = append(fields, field)
	}
	if kind != frameTrailer {
		f.mac.Write(f.read)
		f.frames++
		return kind, fields, nil
	}
	if n != 2 || len(fields[0]) != 8 || binary.BigEndian.Uint64(fields[0]) != f.frames || !hmac.Equal(fields[1], f.mac.Sum(nil)) {
		return 0, nil, errAltered
	}
	if _, err := f.r.ReadByte(); !errors.Is(err, io.EOF) {
		return 0, nil, fmt.Errorf("%w: it continues behind its end", errAltered)
	}
	return 0, nil, io.EOF
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
