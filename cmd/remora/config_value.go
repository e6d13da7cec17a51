package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/redact"
)

// value reads and shows one setting. It points into the config that the program runs with, so that there is no second
// copy of a setting to keep in step.
type value interface {
	// kind names the type for the reader of docs/configuration.md.
	kind() string
	// decode takes the value from the configuration file; at is its key path.
	decode(n *node, at string, found *problems)
	// parse takes the value from text: the environment, a mounted file, a flag.
	parse(text string) error
	// encode gives the value for JSON. A secret gives a placeholder, never itself.
	encode() any
}

// scalar is a value that is one JSON token.
type scalar[T any] struct {
	to      *T
	name    string
	token   tokenKind
	expects string // completes "must be ..."
	read    func(string) (T, error)
	show    func(T) any
}

func (s scalar[T]) kind() string { return s.name }
func (s scalar[T]) encode() any  { return s.show(*s.to) }

func (s scalar[T]) decode(n *node, at string, found *problems) {
	if n.kind != s.token {
		found.add(at, n.origin(), "must be "+s.expects)
		return
	}
	if err := s.parse(n.text); err != nil {
		found.add(at, n.origin(), err.Error())
	}
}

func (s scalar[T]) parse(text string) error {
	v, err := s.read(text)
	switch {
	case errors.Is(err, strconv.ErrRange) && strings.HasPrefix(text, "-"):
		return errors.New("is too small")
	case errors.Is(err, strconv.ErrRange):
		return errors.New("is too large")
	case err != nil:
		return errors.New("must be " + s.expects)
	}
	*s.to = v
	return nil
}

func text[T ~string](to *T) value {
	return scalar[T]{to, "string", tokenString, "a string",
		func(s string) (T, error) { return T(s), nil }, func(v T) any { return string(v) }}
}

// choice is a string of a closed set.
func choice[T ~string](to *T, choices ...T) value {
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	return scalar[T]{to, strings.Join(names, " \\| "), tokenString, "one of " + strings.Join(names, ", "),
		func(s string) (T, error) {
			for _, c := range choices {
				if string(c) == s {
					return c, nil
				}
			}
			return "", errors.New("unknown")
		}, func(v T) any { return string(v) }}
}

func boolean(to *bool) value {
	return scalar[bool]{to, "boolean", tokenBool, "true or false", strconv.ParseBool, func(v bool) any { return v }}
}

func integer[T ~int | ~int64 | ~uint64](to *T) value { return whole(to, "integer", "an integer") }

func size[T ~int | ~int64 | ~uint64](to *T) value {
	return whole(to, "bytes", "a number of bytes, as an integer")
}

func whole[T ~int | ~int64 | ~uint64](to *T, name, expects string) value {
	return scalar[T]{to, name, tokenNumber, expects, func(s string) (T, error) {
		v, err := strconv.ParseInt(s, 10, 64)
		if err == nil && (int64(T(v)) != v || T(v) > 0 != (v > 0)) {
			err = strconv.ErrRange // too long for T, or negative where T has no sign
		}
		return T(v), err
	}, func(v T) any { return int64(v) }}
}

func number(to *float64) value {
	return scalar[float64]{to, "number", tokenNumber, "a number", func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if math.IsNaN(v) {
			err = strconv.ErrSyntax // it compares as neither too small nor too large
		}
		return v, err
	}, func(v float64) any { return v }}
}

func duration(to *time.Duration) value {
	return scalar[time.Duration]{to, "duration", tokenString, `a duration such as "30ms", "1m30s" or "24h"`,
		time.ParseDuration, func(v time.Duration) any { return showDuration(v) }}
}

// showDuration is Duration.String without the zero units at the end: "24h", not "24h0m0s".
func showDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// secret never leaves the process: it encodes as "" or as the placeholder.
func secret(to *redact.Secret) value {
	return scalar[redact.Secret]{to, "secret", tokenString, "a string",
		func(s string) (redact.Secret, error) { return redact.Secret(s), nil },
		func(v redact.Secret) any {
			if v == "" {
				return ""
			}
			return v.String()
		}}
}

// list is a list of strings; in text its elements are separated by commas.
type list[T ~string] struct{ to *[]T }

func names[T ~string](to *[]T) value { return list[T]{to} }

func (l list[T]) kind() string { return "list of strings" }

func (l list[T]) encode() any {
	out := make([]string, len(*l.to))
	for i, v := range *l.to {
		out[i] = string(v)
	}
	return out
}

func (l list[T]) decode(n *node, at string, found *problems) {
	if n.kind != tokenArray {
		found.add(at, n.origin(), "must be a list of strings")
		return
	}
	out := make([]T, 0, len(n.items))
	for i, item := range n.items {
		if item.kind != tokenString {
			found.add(fmt.Sprintf("%s[%d]", at, i), item.origin(), "must be a string")
			continue
		}
		out = append(out, T(item.text))
	}
	*l.to = out
}

// parse of "" is the empty list, and "," the list of one empty string has no spelling: nothing needs one.
func (l list[T]) parse(text string) error {
	out := []T{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, T(part))
		}
	}
	*l.to = out
	return nil
}

// encodeJSON is json.Marshal without the escaping of <, > and &, which would make a configuration unreadable.
func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
