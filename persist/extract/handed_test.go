package extract

import (
	_ "embed"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/handed.txt
var handedText string

// TestHandedOver reads testdata/handed.txt: no text that is handed over, and
// nothing that a program says, makes a fact; what people say of themselves
// beside it does.
func TestHandedOver(t *testing.T) {
	lineBreaks := strings.NewReplacer(`\n`, "\n")
	section, language := "", ""
	bodies := map[string]string{}
	for line := range strings.Lines(handedText) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") && section != "machine" || strings.HasPrefix(line, "# What") {
			continue
		}
		if strings.HasPrefix(line, ":") {
			name, rest, _ := strings.Cut(line[1:], " ")
			if name == "body" {
				language, rest, _ = strings.Cut(rest, " ")
				bodies[language] = rest
				continue
			}
			if section = name; name == "handed" {
				language = rest
			}
			continue
		}
		switch section {
		case "own":
			want, text, _ := strings.Cut(line, " | ")
			found := factsIn(lineBreaks.Replace(text))
			if !strings.Contains(strings.Join(found, "\n"), want) {
				t.Errorf("%q: %q is not in the facts %q", text, want, found)
			}
		default:
			text := lineBreaks.Replace(strings.ReplaceAll(line, "$", bodies[language]))
			if found := factsIn(text); len(found) > 0 {
				t.Errorf("%s: %q makes the facts %q", language, line, found)
			}
		}
	}
}

func factsIn(text string) (quotes []string) {
	for _, sp := range spansOf(text, time.Now(), 0) {
		if sp.candidate != nil {
			quotes = append(quotes, sp.candidate.Quote)
		}
	}
	return quotes
}
