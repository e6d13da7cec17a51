package extract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSaid reads messages and compares what is kept of them with what should
// be: testdata/said.txt explains itself.
func TestSaid(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "said.txt"))
	if err != nil {
		t.Fatal(err)
	}
	right, wanted, wrong, none, section := 0, 0, 0, 0, ""
	report := func() {
		if section != "" {
			t.Logf("%s: %d of %d kept, %d of %d that should not be", section, right, wanted, wrong, none)
		}
		if wanted*95 > right*100 || wrong*20 > none {
			t.Errorf("%s: %d of %d kept, %d of %d that should not be", section, right, wanted, wrong, none)
		}
		right, wanted, wrong, none = 0, 0, 0, 0
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "== "); ok {
			report()
			section = name
			continue
		}
		sign, rest, _ := strings.Cut(line, " ")
		text, want, given := strings.Cut(rest, " => ")
		var got []string
		requested := false
		Statements(strings.ReplaceAll(text, `\n`, "\n"), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), func(c *Candidate) {
			quote, _, _ := Quotation(c.Text())
			got = append(got, strings.TrimRight(quote, ".!。 "))
			requested = requested || c.Requested
		})
		all := strings.Join(got, " / ")
		if sign == "-" {
			if none++; len(got) > 0 {
				wrong++
				t.Logf("%s: %q becomes %q", section, text, all)
			}
			continue
		}
		if !given {
			want = strings.TrimRight(text, ".!。 ")
		}
		if wanted++; all != want || sign == "!" && !requested {
			t.Logf("%s: %q becomes %q, requested: %v", section, text, all, requested)
		} else {
			right++
		}
	}
	report()
}
