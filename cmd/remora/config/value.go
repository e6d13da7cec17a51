package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remora-proxy/remora/redact"
)

// value reads and shows one setting. It points into the Config that the program
// runs with, so that no second copy can differ from it.
type value interface {
	// kind names the type for readers of docs/configuration.md.
	kind() string
	// decode takes the value from the configuration file; key is its path.
	decode(n *node, key string, r *report)
	// parse takes the value from text: the environment or a mounted file.
	parse(text string) error
	// encode returns the value for JSON. A secret is a placeholder.
	encode() any
	// target points to the value in the Config.
	target() any
}

// number is a value that can be compared and has limits.
type number interface {
	value
	amount() float64
	minimum() float64
	// limits describes what the value may be, "" where only the limits of its
	// kind apply.
	limits() string
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
func (s scalar[T]) target() any  { return s.to }
func (s scalar[T]) encode() any  { return s.show(*s.to) }

func (s scalar[T]) decode(n *node, key string, r *report) {
	err := fmt.Errorf("must be %s", s.expects)
	if n.kind == s.token {
		err = s.parse(n.text)
	}
	if err != nil {
		r.addFrom(key, n.origin(), err.Error())
	}
}

func (s scalar[T]) parse(text string) error {
	v, err := s.read(text)
	if err != nil {
		return fmt.Errorf("must be %s", s.expects)
	}
	*s.to = v
	return nil
}

// limited is a scalar that is a number within limits.
type limited[T any] struct {
	scalar[T]
	toFloat func(T) float64
	lowest  float64
	allowed string
}

func (l limited[T]) amount() float64  { return l.toFloat(*l.to) }
func (l limited[T]) minimum() float64 { return l.lowest }
func (l limited[T]) limits() string   { return l.allowed }

var errOutOfRange = errors.New("out of range")

// within restricts s to minimum..maximum. A maximum of kindMax is the one that
// all numbers of its kind have.
func within[T, N cmp.Ordered](s scalar[T], convert func(T) N, minimum, maximum, kindMax N, show func(N) string) limited[T] {
	l := limited[T]{scalar: s}
	l.expects = fmt.Sprintf("%s between %s and %s", s.expects, show(minimum), show(maximum))
	l.read = func(text string) (T, error) {
		v, err := s.read(text)
		if n := convert(v); err == nil && !(minimum <= n && n <= maximum) { // refuses NaN, too
			err = errOutOfRange
		}
		return v, err
	}
	var zero N
	switch {
	case maximum != kindMax:
		l.allowed = show(minimum) + " to " + show(maximum)
	case minimum > zero:
		l.allowed = "at least " + show(minimum)
	}
	return l
}

func integer[T ~int | ~int64 | ~uint64](to *T, minimum, maximum int64) value {
	return whole(to, "integer", "an integer", minimum, maximum, maxInteger, groupDigits)
}

func size[T ~int | ~int64 | ~uint64](to *T, minimum, maximum int64) value {
	return whole(to, "bytes", "a number of bytes", minimum, maximum, maxBytes, formatBytes)
}

func whole[T ~int | ~int64 | ~uint64](to *T, name, expects string, minimum, maximum, kindMax int64, show func(int64) string) value {
	l := within(scalar[T]{to, name, tokenNumber, expects, func(text string) (T, error) {
		v, err := strconv.ParseInt(text, 10, 64)
		if err == nil && (int64(T(v)) != v || T(v) > 0 != (v > 0)) {
			err = errOutOfRange // T is too short, or has no negative numbers
		}
		return T(v), err
	}, func(v T) any { return int64(v) }}, func(v T) int64 { return int64(v) }, minimum, maximum, kindMax, show)
	l.toFloat, l.lowest = func(v T) float64 { return float64(v) }, float64(minimum)
	return l
}

func float(to *float64, minimum, maximum float64) value {
	same := func(v float64) float64 { return v }
	l := within(scalar[float64]{to, "number", tokenNumber, "a number",
		func(text string) (float64, error) { return strconv.ParseFloat(text, 64) },
		func(v float64) any { return v }}, same, minimum, maximum, maxNumber, formatFloat)
	l.toFloat, l.lowest = same, minimum
	return l
}

func duration(to *time.Duration, minimum, maximum time.Duration) value {
	l := within(scalar[time.Duration]{to, "duration", tokenString, `a duration such as "30ms", "1m30s" or "24h"`,
		time.ParseDuration, func(v time.Duration) any { return formatDuration(v) }},
		func(v time.Duration) time.Duration { return v }, minimum, maximum, maxDuration, formatDuration)
	l.toFloat, l.lowest = func(v time.Duration) float64 { return float64(v) }, float64(minimum)
	return l
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
			if !slices.Contains(choices, T(s)) {
				return "", errors.New("unknown")
			}
			return T(s), nil
		}, func(v T) any { return string(v) }}
}

func boolean(to *bool) value {
	return scalar[bool]{to, "boolean", tokenBool, "true or false", strconv.ParseBool, func(v bool) any { return v }}
}

const kindSecret = "secret"

// secret never leaves the process: it encodes as "" or as a placeholder.
func secret(to *redact.Secret) value {
	return scalar[redact.Secret]{to, kindSecret, tokenString, "a string",
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
func (l list[T]) target() any  { return l.to }

func (l list[T]) encode() any { return append([]T{}, *l.to...) }

func (l list[T]) decode(n *node, key string, r *report) {
	if n.kind != tokenArray {
		r.addFrom(key, n.origin(), "must be a list of strings")
		return
	}
	out := make([]T, 0, len(n.items))
	for i, item := range n.items {
		if item.kind != tokenString {
			r.addFrom(fmt.Sprintf("%s[%d]", key, i), item.origin(), "must be a string")
			continue
		}
		out = append(out, T(item.text))
	}
	*l.to = out
}

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

// mapping is an object whose keys are data. In text it is
// "key=value,key=value".
type mapping struct{ to *map[string]string }

func (m mapping) kind() string { return "object of strings" }
func (m mapping) target() any  { return m.to }

func (m mapping) decode(n *node, key string, r *report) {
	if n.kind != tokenObject {
		r.addFrom(key, n.origin(), "must be an object of strings")
		return
	}
	out := map[string]string{}
	for _, member := range n.members {
		if member.node.kind != tokenString {
			r.addFrom(join(key, member.key), member.node.origin(), "must be a string")
			continue
		}
		out[member.key] = member.node.text
	}
	*m.to = out
}

func (m mapping) parse(text string) error {
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return errors.New("must be key=value pairs, separated by commas")
		}
		out[key] = value
	}
	*m.to = out
	return nil
}

func (m mapping) encode() any {
	out := map[string]string{}
	maps.Copy(out, *m.to)
	return out
}

// objects is a list of objects, each with the same fields. It can't be given as
// text.
type objects[T any] struct {
	to      *[]T
	fields  func(*T) []setting
	instead string // what to set in the environment instead, "" = nothing
}

const listOfObjects = "list of objects"

func (l objects[T]) kind() string { return listOfObjects }
func (l objects[T]) target() any  { return l.to }

func (l objects[T]) parse(string) error {
	return errors.New("can't be given as text; use the configuration file" + l.instead)
}

func (l objects[T]) decode(n *node, key string, r *report) {
	if n.kind != tokenArray {
		r.addFrom(key, n.origin(), "must be a list of objects")
		return
	}
	all := make([]T, len(n.items))
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", key, i)
		if item.kind != tokenObject {
			r.addFrom(at, item.origin(), "must be an object")
			continue
		}
		r.object(item, at, "", l.fields(&all[i]))
	}
	*l.to = all
}

func (l objects[T]) encode() any {
	out := make([]any, len(*l.to))
	for i := range *l.to {
		out[i] = nested(l.fields(&(*l.to)[i]))
	}
	return out
}

// each returns the fields of one object, for the documentation.
func (l objects[T]) each() []setting { return l.fields(new(T)) }
