package imports

import (
	"encoding/json"
	"fmt"
	"io"
)

// each calls fn for each value of the file, or for each element of the array
// that the file is.
func (s *stream) each(fn func(raw json.RawMessage) error) error {
	if s.array {
		if _, err := s.inside(); err != nil {
			return err
		}
		if err := s.elements(fn); err != nil {
			return err
		}
		return s.end()
	}
	for {
		raw, err := s.value()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = s.placed(fn(raw))
		}
		if err != nil {
			return err
		}
	}
}

// end fails unless the file has ended.
func (s *stream) end() error {
	if _, err := s.token(); err != io.EOF {
		return s.fail(errMalformed)
	}
	return nil
}

// elements calls fn for the elements of an array that was begun.
func (s *stream) elements(fn func(raw json.RawMessage) error) error {
	for s.more() {
		raw, err := s.inner()
		if err == nil {
			err = s.placed(fn(raw))
		}
		if err != nil {
			return err
		}
	}
	_, err := s.inside()
	return err
}

// members calls fn for the members of an object that was begun. fn reads the
// value.
func (s *stream) members(fn func(key string) error) error {
	for s.more() {
		t, err := s.inside()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return s.fail(errMalformed)
		}
		if err := fn(key); err != nil {
			return err
		}
	}
	_, err := s.inside()
	return err
}

// inner is value in an array or object.
func (s *stream) inner() (json.RawMessage, error) {
	raw, err := s.value()
	if err == io.EOF {
		return nil, s.fail(io.ErrUnexpectedEOF)
	}
	return raw, err
}

// member decodes the next value into v.
func (s *stream) member(v any) error {
	raw, err := s.inner()
	if err != nil {
		return err
	}
	return s.placed(decode(raw, v))
}

// list calls fn for the elements of the next value, if it is an array.
func (s *stream) list(fn func(raw json.RawMessage) error) error {
	t, err := s.inside()
	switch {
	case err != nil:
		return err
	case t == json.Delim('['):
		return s.elements(fn)
	}
	return s.rest(t)
}

// skip reads over the next value.
func (s *stream) skip() error {
	t, err := s.inside()
	if err != nil {
		return err
	}
	return s.rest(t)
}

// rest reads over the rest of a value that began with t.
func (s *stream) rest(t json.Token) error {
	for depth := 0; ; {
		switch t {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth > maxDepth {
				return s.fail(fmt.Errorf("JSON is nested deeper than %d, which is the most that is read", maxDepth))
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth <= 0 {
			return nil
		}
		var err error
		if t, err = s.inside(); err != nil {
			return err
		}
	}
}
