package main

import (
	"os"
	"strconv"
	"testing"
)

// nightly returns the length of a test that is short in each run and long at
// night, by an environment variable.
func nightly(t *testing.T, variable string, short int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		if testing.Short() {
			return short / 10
		}
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no number of operations", variable, text)
	}
	return n
}
