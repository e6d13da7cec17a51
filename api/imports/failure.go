package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var (
	errCut       = fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)
	errMalformed = errors.New("malformed JSON")
	errShape     = errors.New("JSON of another shape than this format has")
)

// plain returns err without the content that errors of encoding/json quote.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		// It has no other mark of this case.
		if s.Error() == "unexpected end of JSON input" {
			return errCut
		}
		return errMalformed
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errShape
	}
	return err
}

// decode decodes a value into v, see lenient.
func decode(raw []byte, v any) error { return plain(lenient(json.Unmarshal(raw, v))) }

// lenient drops the error that a member has another type than expected, which
// leaves that member out. Exports change in what does not matter here.
func lenient(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// inFile adds the file to an error that has no place in it.
func inFile(name string, err error) error {
	if _, ok := errors.AsType[*foundError](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", quoted(name), err)
}
