package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What a setting may be at most where its row names nothing else. More is a slip of the pen, and would overflow a sum or a timer, or ask
// the system for what it does not have.
const (
	mostInteger  = 1 << 20
	mostBytes    = 1 << 40
	mostNumber   = 1e9
	mostDuration = 100 * 365 * 24 * time.Hour
)

// tooLarge finds what is. What is too small for its purpose the packages know.
func (l *loader) tooLarge(table []setting) {
	for _, s := range table {
		if most, ok := s.exceeds(); ok {
			l.found.add(s.key, originOf(s.key, l.origins), "must be at most "+most)
		}
	}
}

// exceeds says what the setting is to be at most, if it is more.
func (s setting) exceeds() (most string, ok bool) {
	switch to := s.at.(type) {
	case scalar[time.Duration]:
		return showDuration(mostDuration), *to.to > mostDuration
	case scalar[float64]:
		return fmt.Sprintf("%.0f", mostNumber), *to.to > mostNumber
	}
	v, ok := s.at.encode().(int64)
	if !ok {
		return "", false
	}
	bound := s.most
	if bound == 0 {
		bound = map[string]int64{"integer": mostInteger, "bytes": mostBytes}[s.at.kind()]
	}
	return fmt.Sprint(bound), v > bound
}

// bounds is the sentence that tells what a number may be, where that is not what the documentation says of its kind and not in its words already.
func (s setting) bounds() string {
	from, to := s.from, s.to
	if to == 0 {
		to = s.most
	}
	if most := s.amount(to); to == 0 || strings.Contains(s.doc, "to "+most) {
		return ""
	} else if from > 0 || s.at.kind() == "number" {
		return " " + s.amount(from) + " to " + most + "."
	} else {
		return " At most " + most + "."
	}
}

// amount writes a number as people do.
func (s setting) amount(n int64) string {
	if s.at.kind() == "bytes" {
		for _, unit := range []struct {
			name  string
			bytes int64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if n >= unit.bytes && n%unit.bytes == 0 {
				return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
			}
		}
	}
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
