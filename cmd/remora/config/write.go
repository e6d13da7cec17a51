package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tidwall/sjson"
)

// Write writes c as a configuration file, with secrets hidden.
func (c *Config) Write(w io.Writer) error {
	data, err := encodeJSON(nested(c.settings()))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// nested encodes settings as one JSON object: their keys are paths, whose
// sections nest in the order of the table.
type nested []setting

func (n nested) MarshalJSON() ([]byte, error) {
	object := []byte("{}")
	for _, s := range n {
		value, err := encodeJSON(s.at.encode())
		if err != nil {
			return nil, err
		}
		if object, err = sjson.SetRawBytes(object, s.key, value); err != nil {
			return nil, fmt.Errorf("set %s: %w", s.key, err)
		}
	}
	return object, nil
}

// encodeJSON is json.Marshal without the escaping of <, > and &, which would
// make a configuration unreadable.
func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
