package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokenNull tokenKind = iota
	tokenString
	tokenNumber
	tokenBool
	tokenArray
	tokenObject
)

// maxConfigDepth bounds the recursion of the reader; the deepest setting lies four levels down.
const maxConfigDepth = 16

// node is a JSON value that knows where it stands in its file.
type node struct {
	kind    tokenKind
	text    string // of a string, number or boolean
	items   []*node
	members []member
	file    string
	line    int
}

type member struct {
	key  string
	node *node
}

// origin is where the value was written, e.g. "config.json:12".
func (n *node) origin() string { return n.file + ":" + strconv.Itoa(n.line) }

// parseJSON reads a whole file. What keeps it from being read at all is the error, with its line; keys that stand twice
// are reported in found, and the first of them counts.
func parseJSON(file string, data []byte, found *problems) (*node, error) {
	data = []byte(strings.TrimPrefix(string(data), "\ufeff")) // editors on Windows put a byte order mark there
	r := jsonReader{file: file, data: data, dec: json.NewDecoder(strings.NewReader(string(data))), found: found}
	r.dec.UseNumber()
	root, err := r.value("", 0)
	if err == nil {
		if _, err = r.dec.Token(); err == nil {
			return nil, fmt.Errorf("%s:%d: more after the end of the configuration", file, r.line(r.dec.InputOffset()))
		} else if errors.Is(err, io.EOF) {
			return root, nil
		}
	}
	return nil, r.explain(err)
}

type jsonReader struct {
	file  string
	data  []byte
	dec   *json.Decoder
	found *problems
}

func (r *jsonReader) value(at string, depth int) (*node, error) {
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{file: r.file, line: r.line(r.dec.InputOffset())}
	switch t := token.(type) {
	case string:
		n.kind, n.text = tokenString, t
	case json.Number:
		n.kind, n.text = tokenNumber, t.String()
	case bool:
		n.kind, n.text = tokenBool, strconv.FormatBool(t)
	case json.Delim:
		if depth == maxConfigDepth {
			return nil, fmt.Errorf("%s:%d: nested deeper than %d levels", r.file, n.line, maxConfigDepth)
		}
		if t == '[' {
			err = r.array(n, at, depth)
		} else {
			err = r.object(n, at, depth)
		}
	}
	return n, err
}

func (r *jsonReader) array(n *node, at string, depth int) error {
	n.kind = tokenArray
	for i := 0; r.dec.More(); i++ {
		item, err := r.value(fmt.Sprintf("%s[%d]", at, i), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := r.dec.Token()
	return err
}

func (r *jsonReader) object(n *node, at string, depth int) error {
	n.kind = tokenObject
	lines := map[string]int{}
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return err
		}
		key, line := token.(string), r.line(r.dec.InputOffset())
		v, err := r.value(join(at, key), depth+1)
		if err != nil {
			return err
		}
		v.line = line
		if first, twice := lines[key]; twice {
			r.found.add(join(at, key), v.origin(), fmt.Sprintf("stands twice, first in line %d", first))
			continue
		}
		lines[key] = line
		n.members = append(n.members, member{key, v})
	}
	_, err := r.dec.Token()
	return err
}

// explain turns a decoder's error into one that names the line. It never quotes more of the file than one character.
func (r *jsonReader) explain(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s:%d: not valid JSON: %s", r.file, r.line(syntax.Offset), syntax.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s:%d: not valid JSON: ends too early", r.file, r.line(int64(len(r.data))))
	}
	return err
}

func (r *jsonReader) line(offset int64) int {
	return 1 + strings.Count(string(r.data[:min(offset, int64(len(r.data)))]), "\n")
}

// join makes a key path.
func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
