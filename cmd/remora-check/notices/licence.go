package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// phrases identify the licences that allow distribution under Apache-2.0. The first that matches
// decides, so a licence comes before those whose text is a part of its own.
var phrases = []struct {
	licence string
	words   []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "endorse or promote products"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the above copyright notice and this permission notice"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software", "copyright notice and this permission notice appear"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software", "copyright notice and this permission notice appear"}},
	{"0BSD", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"}},
}

// refused are licences that are recognised and may not be linked.
var refused = []string{"MPL-2.0"}

// classify returns the SPDX names of a component's licences, joined by AND.
func classify(c component) (string, error) {
	var names []string
	for _, t := range c.texts {
		upper := strings.ToUpper(t.file)
		if strings.Contains(upper, "PATENTS") || strings.Contains(upper, "NOTICE") {
			continue
		}
		found := identify(t.content)
		if len(found) == 0 {
			return "", fmt.Errorf("%s: %s is a licence that is not known here: read it, then add its words to phrases or drop the module", c.name, t.file)
		}
		for _, name := range found {
			if slices.Contains(refused, name) {
				return "", fmt.Errorf("%s: %s is %s, which may not be linked", c.name, t.file, name)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%s has no licence", c.name)
	}
	slices.Sort(names)
	return strings.Join(names, " AND "), nil
}

// identify returns the licences whose words a text has. A file may hold several, one for each
// part; BSD-2-Clause and 0BSD are parts of other texts and count only alone.
func identify(content string) (names []string) {
	plain := strings.ToLower(strings.Join(strings.Fields(content), " "))
	for _, p := range phrases {
		if slices.Contains(names, p.licence) || len(names) > 0 && (p.licence == "BSD-2-Clause" || p.licence == "0BSD") {
			continue
		}
		if !slices.ContainsFunc(p.words, func(word string) bool { return !strings.Contains(plain, word) }) {
			names = append(names, p.licence)
		}
	}
	return names
}

// render returns the table and the texts. A text that several components share is there once.
func render(all []component) []byte {
	var b bytes.Buffer
	b.WriteString(`# Third-party notices

Remora is under the Apache License 2.0. Its binaries contain the following works of others.
This file is generated: go generate ./cmd/remora/notices

`)
	name, version := 0, 0
	for _, c := range all {
		name, version = max(name, len(c.name)), max(version, len(c.version))
	}
	for _, c := range all {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", name, c.name, version, c.version, c.licence)
	}
	b.WriteString("\n# The texts\n")
	users := map[string][]string{}
	var order []string
	for _, c := range all {
		for _, t := range c.texts {
			if users[t.content] == nil {
				order = append(order, t.content)
			}
			if user := c.name + t.where(); !slices.Contains(users[t.content], user) {
				users[t.content] = append(users[t.content], user)
			}
		}
	}
	for _, content := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(users[content], "\n"), strings.Repeat("-", 80), content)
	}
	return b.Bytes()
}

// where names the folder of a text, if it is not the root.
func (t text) where() string {
	if dir := path.Dir(t.file); dir != "." {
		return ", " + dir
	}
	return ""
}
