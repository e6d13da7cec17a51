package imports

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// list is an array of at most maxElements elements. What is no array is an
// empty list.
type list[T any] []T

// UnmarshalJSON fails if there are more.
func (l *list[T]) UnmarshalJSON(b []byte) error {
	*l = nil
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		if len(*l) == maxElements {
			return errMany
		}
		var v T
		if err := lenient(dec.Decode(&v)); err != nil {
			return err
		}
		*l = append(*l, v)
	}
	return nil
}

// table is an object of at most maxElements members. What is no object is an
// empty table.
type table[T any] struct {
	keys   []string // in the order of the file, each once
	values map[string]T
}

// UnmarshalJSON fails if there are more.
func (t *table[T]) UnmarshalJSON(b []byte) error {
	*t = table[T]{values: map[string]T{}}
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := name.(string)
		var v T
		if err := lenient(dec.Decode(&v)); err != nil {
			return err
		}
		if _, twice := t.values[key]; !twice {
			if len(t.keys) == maxElements {
				return errMany
			}
			t.keys = append(t.keys, key)
		}
		t.values[key] = v
	}
	return nil
}

// errMany is the error of an array or object that is decoded whole.
var errMany = fmt.Errorf("a list has more than %d elements, which is the most that is read", maxElements)

// elementsOf calls fn for each element of an array in memory. raw is valid
// until fn returns.
func elementsOf(b []byte, fn func(raw json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	var raw json.RawMessage
	for dec.More() {
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		if err := fn(raw); err != nil {
			return err
		}
	}
	return nil
}

// object decodes an object into v, and reports false if raw is something else.
func object(raw []byte, v any) (bool, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return false, nil
	}
	return true, decode(raw, v)
}
