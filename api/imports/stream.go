package imports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// stream reads the JSON of one file, token by token.
type stream struct {
	name  string
	dec   *json.Decoder
	in    *meter
	skips int64 // bytes before the first value
	max   int64 // of one value
	array bool  // whether the file begins with an array
	raw   json.RawMessage
}

// stream opens a file of JSON, whose values have at most limit bytes. Its
// caller closes it.
func (r *reading) stream(name string, limit int64) (*stream, error) {
	in, err := r.open(name)
	if err != nil {
		return nil, err
	}
	s := &stream{name: name, in: in, max: limit}
	// The buffer is between the meter and the decoder, so it must not hold more
	// than what it peeks at.
	b := bufio.NewReaderSize(in, 16)
	s.skips, err = skipBlanks(b)
	if err != nil {
		_ = in.Close()
		return nil, s.fail(err)
	}
	if first, err := b.Peek(1); err == nil {
		s.array = first[0] == '['
	}
	s.dec = json.NewDecoder(b)
	return s, nil
}

// file is stream for a file that is imported.
func (r *reading) file(name string, limit int64) (*stream, error) {
	r.report.Files++
	return r.stream(name, limit)
}

// skipBlanks skips a byte order mark and the blanks after it.
func skipBlanks(b *bufio.Reader) (n int64, err error) {
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := b.Discard(3); err != nil {
			return 0, err
		}
		n = 3
	}
	for ; n < maxBlank; n++ {
		c, err := b.ReadByte()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return n, b.UnreadByte()
		}
	}
	return n, fmt.Errorf("the file begins with more than %s of blanks, which is the most that is read", size(maxBlank))
}

func (s *stream) close() { _ = s.in.Close() }

// fail returns err with its place.
func (s *stream) fail(err error) error {
	at := s.skips
	if s.dec != nil {
		at += s.dec.InputOffset()
	}
	if f, ok := errors.AsType[*foundError](err); ok {
		return f
	}
	return fmt.Errorf("%s, after byte %d: %w", quoted(s.name), at, plain(err))
}

// allow lets the next value, or token, be as large as it may.
func (s *stream) allow() {
	s.in.until, s.in.maxValue = s.skips+s.dec.InputOffset()+s.max, s.max
}

// token returns the next token, or io.EOF after the last value of the file.
func (s *stream) token() (json.Token, error) {
	s.allow()
	t, err := s.dec.Token()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return t, nil
}

// inside returns the next token of an array or object.
func (s *stream) inside() (json.Token, error) {
	t, err := s.token()
	if err == io.EOF {
		return nil, s.fail(io.ErrUnexpectedEOF)
	}
	return t, err
}

// more reports whether the array or object that was begun has more.
func (s *stream) more() bool {
	s.allow()
	return s.dec.More()
}

// value returns the next value. It is valid until the next call.
func (s *stream) value() (json.RawMessage, error) {
	s.allow()
	err := s.dec.Decode(&s.raw)
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, s.fail(err)
	}
	return s.raw, nil
}

// placed adds the place to an error that has none.
func (s *stream) placed(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*foundError](err); ok {
		return err
	}
	return s.fail(err)
}
