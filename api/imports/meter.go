package imports

import (
	"errors"
	"fmt"
	"io"
)

// meter counts what is read of a file, and fails at the first bound.
type meter struct {
	from    io.Reader
	file    io.Closer
	at      int64 // bytes read
	maxFile int64

	until    int64 // where the value that is being read has to end, 0 is no limit
	maxValue int64 // how much that allows, for the error

	left     *int64 // of the zip, nil if there is no such limit
	maxTotal int64
}

// Read fills p unless the file ends or fails, or a bound is near: a reader of
// JSON that gets little at a time scans blanks again and again. It reads one
// byte more than a bound allows, which shows that there is more.
func (m *meter) Read(p []byte) (int, error) {
	room := m.maxFile + 1 - m.at
	if room <= 0 {
		return 0, m.tooLarge("the file", m.maxFile)
	}
	if m.until > 0 {
		room = min(room, m.until+1-m.at)
		if room <= 0 {
			return 0, m.tooLarge("a value", m.maxValue)
		}
	}
	if m.left != nil {
		room = min(room, *m.left+1)
		if room <= 0 {
			return 0, m.tooLarge("what is to be read of the zip", m.maxTotal)
		}
	}
	if int64(len(p)) > room {
		p = p[:room]
	}
	n, err := io.ReadFull(m.from, p)
	if errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
		err = nil // the next call gets the reason
	}
	m.at += int64(n)
	if m.left != nil {
		*m.left -= int64(n)
	}
	return n, err
}

// Close closes the file.
func (m *meter) Close() error { return m.file.Close() }

func (m *meter) tooLarge(what string, limit int64) error {
	return fmt.Errorf("%s is larger than %s, which is the most that is read", what, size(limit))
}
