package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
)

// inJSON answers with a value, and with the same as text.
func inJSON(v any) (reply, error) { return written(v, v, "") }

// indented answers with text in indented JSON, and with data.
func indented(said, data any) (reply, error) { return written(said, data, "  ") }

func written(said, data any, indent string) (reply, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(said)
	return reply{strings.TrimSuffix(b.String(), "\n"), data}, err
}

// plainly answers with a text that other servers answer with.
func plainly(text string) (reply, error) {
	return reply{text, map[string]any{"result": text}}, nil
}
