package main

import (
	"fmt"
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

// bounds finds what is too large. What is too small for its purpose the packages know.
func (l *loader) bounds(table []setting) {
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
