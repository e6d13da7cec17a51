package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const assemblyReason = `While the upper halves of vector registers are in use, an instruction of the old encoding costs up to 200 ns on some processors: they
are put aside and taken back. Its form with a V (VMOVQ for MOVQ) does not.`

// In a file that uses wide registers, what names a narrow one is of the new encoding.
func TestAssemblyDoesNotMixEncodings(t *testing.T) {
	wide, narrow := regexp.MustCompile(`\b[YZ]\d+\b`), regexp.MustCompile(`\b(?:X\d+|tox)\b`)
	instruction := regexp.MustCompile(`^\s+([A-Z][A-Z0-9]+)\s`)
	for _, in := range []string{"*/*.s", "*/*/*.s"} {
		names, err := filepath.Glob(filepath.Join("..", "..", in))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !wide.Match(text) {
				continue
			}
			for i, line := range strings.Split(string(text), "\n") {
				m := instruction.FindStringSubmatch(line)
				if m != nil && narrow.MatchString(line) && !strings.HasPrefix(m[1], "V") && !strings.HasPrefix(m[1], "K") && m[1] != "BYTES" {
					t.Errorf("%s:%d: %s\n%s", name, i+1, strings.TrimSpace(line), assemblyReason)
				}
			}
		}
	}
}
