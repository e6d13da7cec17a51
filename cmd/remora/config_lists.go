package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// objectList is a setting that is a list of objects, each with these fields. In text it has no form.
type objectList[T any] struct {
	to      *[]T
	fields  func(*T) []setting
	instead string // what to do in place of giving it as text, "" = nothing
}

const listOfObjects = "list of objects"

func (l objectList[T]) kind() string { return listOfObjects }

func (l objectList[T]) parse(string) error {
	return errors.New("has no form in text; use the configuration file" + l.instead)
}

func (l objectList[T]) decode(n *node, at string, found *problems) {
	if n.kind != tokenArray {
		found.add(at, n.origin(), "must be a list of objects")
		return
	}
	all := make([]T, len(n.items))
	for i, item := range n.items {
		key := fmt.Sprintf("%s[%d]", at, i)
		if item.kind != tokenObject {
			found.add(key, item.origin(), "must be an object")
			continue
		}
		fields := l.fields(&all[i])
		for _, m := range item.members {
			f := slices.IndexFunc(fields, func(s setting) bool { return s.key == m.key })
			if f < 0 {
				found.add(join(key, m.key), m.node.origin(), unknownKey(m.key, "", fields))
				continue
			}
			fields[f].at.decode(m.node, join(key, m.key), found)
		}
	}
	*l.to = all
}

func (l objectList[T]) encode() any {
	out := make([]any, len(*l.to))
	for i := range *l.to {
		out[i] = nested(l.fields(&(*l.to)[i]))
	}
	return out
}

// mapping is an object whose keys are data. In text it is "key=value,key=value".
type mapping struct{ to *map[string]string }

func (m mapping) kind() string { return "object of strings" }

func (m mapping) decode(n *node, at string, found *problems) {
	if n.kind != tokenObject {
		found.add(at, n.origin(), "must be an object of strings")
		return
	}
	out := map[string]string{}
	for _, member := range n.members {
		if member.node.kind != tokenString {
			found.add(join(at, member.key), member.node.origin(), "must be a string")
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
			return fmt.Errorf("must be key=value pairs, separated by commas")
		}
		out[key] = value
	}
	*m.to = out
	return nil
}

func (m mapping) encode() any {
	if *m.to == nil {
		return map[string]string{}
	}
	return *m.to
}
