package extract

import (
	"strings"
	"testing"
)

func TestQuotationEnd(t *testing.T) {
	for s, want := range map[string]string{
		"„ich wohne hier“ und”":     "„ich wohne hier“",
		"„mieszkam tutaj” i “":      "„mieszkam tutaj”",
		"„offen":                    "",
		"„a" + far + "“":            "",
		"„a“" + far + "”":           "„a“",
		"\"\"\"a \"b\" c\"\"\" d\"": "\"\"\"a \"b\" c\"\"\"",
	} {
		if got := s[:quotationEnd(s, 0)]; got != want {
			t.Errorf("%.40q: got %.40q, want %q", s, got, want)
		}
	}
}

// far is more than a quotation may hold.
var far = strings.Repeat(" x", maxQuoted)
