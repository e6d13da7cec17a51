package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// object is a JSON object that keeps the order of its fields.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encodeJSON(f.key)
		if err != nil {
			return nil, err
		}
		value, err := encodeJSON(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// tree nests the settings by their key paths, in the order of the table.
func tree(table []setting) object {
	var root object
	for _, s := range table {
		at := &root
		key := s.key
		for {
			section, rest, nested := strings.Cut(key, ".")
			if !nested {
				break
			}
			at, key = at.section(section), rest
		}
		*at = append(*at, field{key, s.at.encode()})
	}
	return root
}

func (o *object) section(key string) *object {
	for _, f := range *o {
		if f.key == key {
			return f.value.(*object)
		}
	}
	s := &object{}
	*o = append(*o, field{key, s})
	return s
}

// writeConfig writes the settings as a configuration file, secrets hidden.
func writeConfig(w io.Writer, table []setting) error {
	data, err := encodeJSON(tree(table))
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
