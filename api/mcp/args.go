package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/remora-proxy/remora/api"
	"github.com/remora-proxy/remora/api/request"
)

// args are the arguments of a call, by name. Models give what a schema asks for
// in many forms, so each is read by several names, and a value may be in a
// string.
type args map[string]json.RawMessage

// Names under which an argument is looked for.
var (
	namesQuery = []string{"query", "q", "question", "search", "text"}
	namesID    = []string{"id", "memory_id", "memoryId"}
	namesIDs   = []string{"ids", "memory_ids", "memoryIds", "id", "memory_id", "memoryId"}
	namesText  = []string{"text", "content", "memory", "data", "messages"}
	namesLimit = []string{"limit", "top_k", "topK", "k", "page_size", "pageSize"}
	namesTags  = []string{"tags", "categories"}
)

func wrong(field, why string) error { return &api.FieldError{Field: field, Why: why} }

// readArgs reads the arguments of a call: an object, or one in a string.
func readArgs(raw json.RawMessage) (args, error) {
	raw = bytes.TrimSpace(raw)
	if inner, ok := unquoted(raw); ok {
		raw = []byte(strings.TrimSpace(inner))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return args{}, nil
	}
	var out args
	if err := request.DecodeBytes(raw, false, &out); err != nil {
		if field, ok := errors.AsType[*api.FieldError](err); ok && field.Field == "body" {
			return nil, wrong("arguments", field.Why)
		}
		return nil, wrong("arguments", "must be an object")
	}
	return out, nil
}

// unquoted returns the string that a JSON value is.
func unquoted(raw []byte) (s string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// find returns the first of the named arguments that there is, and its name.
func (a args) find(names []string) (raw json.RawMessage, name string) {
	for _, name := range names {
		if raw := bytes.TrimSpace(a[name]); len(raw) > 0 && string(raw) != "null" {
			return raw, name
		}
	}
	return nil, names[0]
}

// has reports whether one of the named arguments is there.
func (a args) has(names ...string) bool {
	raw, _ := a.find(names)
	return raw != nil
}

// text returns a string, "" if it is not there.
func (a args) text(names ...string) (string, error) {
	raw, name := a.find(names)
	if raw == nil {
		return "", nil
	}
	if s, ok := scalar(raw); ok {
		return s, nil
	}
	if all, ok := texts(raw); ok && len(all) == 1 {
		return all[0], nil
	}
	return "", wrong(name, "must be a string")
}

// required is text for an argument that must be there.
func (a args) required(names ...string) (string, error) {
	s, err := a.text(names...)
	if err == nil && strings.TrimSpace(s) == "" {
		return "", wrong(names[0], "is required")
	}
	return s, err
}

// scalar returns a string, a number, true or false as a string.
func scalar(raw json.RawMessage) (string, bool) {
	if s, ok := unquoted(raw); ok {
		return s, true
	}
	if len(raw) == 0 || raw[0] == '[' || raw[0] == '{' || raw[0] == 'n' || raw[0] == '"' {
		return "", false
	}
	return string(raw), true
}

// texts returns the strings that a value has: it is one, or a message with one,
// or a list of these. Of messages, those of an assistant count only if there
// are no others.
func texts(raw json.RawMessage) (out []string, ok bool) {
	type message struct {
		Role, Text, Content, Memory, Value json.RawMessage
	}
	var list []json.RawMessage
	if raw[0] == '[' {
		if json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
	} else {
		list = []json.RawMessage{raw}
	}
	var theirs []string
	for _, e := range list {
		if s, ok := scalar(e); ok {
			out = append(out, s)
			continue
		}
		var m message
		if len(e) == 0 || e[0] != '{' || json.Unmarshal(e, &m) != nil {
			return nil, false
		}
		said, ok := said(m.Content, m.Text, m.Memory, m.Value)
		if !ok {
			return nil, false
		}
		if role, _ := unquoted(m.Role); role == "assistant" || role == "system" || role == "tool" {
			theirs = append(theirs, said)
		} else {
			out = append(out, said)
		}
	}
	if len(out) == 0 {
		out = theirs
	}
	return out, true
}

// said returns the first of the texts of a message: a string, or parts with
// texts of their own.
func said(fields ...json.RawMessage) (string, bool) {
	for _, f := range fields {
		if s, ok := scalar(f); ok {
			return s, true
		}
		var parts []struct{ Text string }
		if len(f) > 0 && json.Unmarshal(f, &parts) == nil {
			var b strings.Builder
			for _, p := range parts {
				b.WriteString(p.Text)
			}
			return b.String(), true
		}
	}
	return "", false
}

// list returns strings: a list of them, one of them, or a list in a string, as
// JSON or, with split, with commas between.
func (a args) list(split bool, names ...string) ([]string, error) {
	raw, name := a.find(names)
	if raw == nil {
		return nil, nil
	}
	if s, ok := unquoted(raw); ok {
		inner := strings.TrimSpace(s)
		if inner != "" && (inner[0] == '[' || inner[0] == '{') && json.Valid([]byte(inner)) {
			if out, ok := texts([]byte(inner)); ok {
				return out, nil
			}
		} else if split {
			between := func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }
			return strings.FieldsFunc(s, between), nil
		}
		return []string{s}, nil
	}
	out, ok := texts(raw)
	if !ok {
		return nil, wrong(name, "must be a list of strings")
	}
	return out, nil
}

// number returns a whole number, also from a string; def if it is not there.
func (a args) number(def int, names ...string) (int, error) {
	raw, name := a.find(names)
	if raw == nil {
		return def, nil
	}
	s, ok := scalar(raw)
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if !ok || err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<31 {
		return 0, wrong(name, "must be a whole number")
	}
	return int(v), nil
}

// between is number, brought into bounds.
func (a args) between(low, high, def int, names ...string) (int, error) {
	n, err := a.number(def, names...)
	return min(max(n, low), high), err
}

// decode reads an argument, or the JSON in its string, into v.
func (a args) decode(v any, what string, names ...string) error {
	raw, name := a.find(names)
	if raw == nil {
		return nil
	}
	if s, ok := unquoted(raw); ok && json.Valid([]byte(s)) {
		raw = []byte(s)
	}
	if json.Unmarshal(raw, v) != nil {
		return wrong(name, "must be "+what)
	}
	return nil
}
