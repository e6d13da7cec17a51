package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lines calls fn for each line of a file that is not blank. A line has at most
// limit bytes. It is valid until fn returns.
func (r *reading) lines(name string, limit int64, fn func(line []byte) error) error {
	in, err := r.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	r.report.Files++
	b := bufio.NewReaderSize(in, 64<<10)
	var buffer []byte
	for n := 1; ; n++ {
		line, err := nextLine(b, buffer[:0], limit)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			buffer = line
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			err = fn(line)
		}
		if _, ok := errors.AsType[*foundError](err); ok {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", quoted(name), n, plain(err))
		}
	}
}

// nextLine appends the next line to buffer. Of an empty rest it returns io.EOF.
func nextLine(b *bufio.Reader, buffer []byte, limit int64) ([]byte, error) {
	for {
		part, err := b.ReadSlice('\n')
		buffer = append(buffer, part...)
		if int64(len(buffer)) > limit+1 { // the line's end does not count
			return nil, fmt.Errorf("the line is longer than %s, which is the most that is read", size(limit))
		}
		switch {
		case err == io.EOF && len(buffer) > 0:
			return buffer, nil
		case err == nil:
			return buffer, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
