package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tidwall/sjson"
)

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

// writeConfig writes the settings as a configuration file, with secrets hidden.
func writeConfig(w io.Writer, table []setting) error {
	data, err := encodeJSON(nested(table))
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
