package config

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

// maxDepth bounds the recursion of the reader. The deepest setting is four
// levels down.
const maxDepth = 16

// node is a JSON value with its place in the file.
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

// origin returns the place of the value, e.g. "config.json:12".
func (n *node) origin() string { return n.file + ":" + strconv.Itoa(n.line) }

// parseJSON reads a whole file. A syntax error is returned with its line.
// Duplicate keys are reported to r; the first one counts.
func parseJSON(file string, data []byte, r *report) (*node, error) {
	data = []byte(strings.TrimPrefix(string(data), "\ufeff")) // editors on Windows put a byte order mark there
	j := jsonReader{file: file, data: data, dec: json.NewDecoder(strings.NewReader(string(data))), report: r}
	j.dec.UseNumber()
	root, err := j.value("", 0)
	if err == nil {
		if _, err = j.dec.Token(); err == nil {
			return nil, fmt.Errorf("%s:%d: more after the end of the configuration", file, j.line(j.dec.InputOffset()))
		} else if errors.Is(err, io.EOF) {
			return root, nil
		}
	}
	return nil, j.explain(err)
}

type jsonReader struct {
	file   string
	data   []byte
	dec    *json.Decoder
	report *report
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
		if depth == maxDepth {
			return nil, fmt.Errorf("%s:%d: nested deeper than %d levels", r.file, n.line, maxDepth)
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
		if first, duplicate := lines[key]; duplicate {
			r.report.addFrom(join(at, key), v.origin(), fmt.Sprintf("duplicate key, first on line %d", first))
			continue
		}
		lines[key] = line
		n.members = append(n.members, member{key, v})
	}
	_, err := r.dec.Token()
	return err
}

// explain adds the line to a decoder's error. It quotes at most one character
// of the file.
func (r *jsonReader) explain(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%s:%d: not valid JSON: %s", r.file, r.line(syntax.Offset), syntax.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s:%d: not valid JSON: unexpected end", r.file, r.line(int64(len(r.data))))
	}
	return err
}

func (r *jsonReader) line(offset int64) int {
	return 1 + strings.Count(string(r.data[:min(offset, int64(len(r.data)))]), "\n")
}

// join appends a key to a key path.
func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
