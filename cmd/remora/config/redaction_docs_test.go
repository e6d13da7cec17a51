package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/redact"
)

const redactionRulesHead = "<!-- Generated from the table of rules in redact/rules.go by `make docs`. -->\n" + `
# Redaction rules

The built-in rules of [redaction](redaction.md). Their ids are those of ` + "`redact.disable`" + `.
`

// redactionServices ends in the middle of a row.
const redactionServices = `
## Keys recognised by their vendor's name

A value that is assigned to a name with one of these words, has the length and alphabet of that vendor's keys and looks
random becomes ` + "`[API_KEY]`" + `. The table is rule data of [gitleaks](https://github.com/gitleaks/gitleaks) 8.30.1 (MIT,
` + "`redact/gitleaks/LICENSE`" + `).

| The name has | Ids |
| --- | ---`

// redactionRules returns docs/redaction-rules.md.
func redactionRules() string {
	var b strings.Builder
	b.WriteString(redactionRulesHead)
	table := func(title string, of func(redact.Rule) bool) {
		fmt.Fprintf(&b, "\n## %s\n\n| Id | Finds | Checked | Placeholder |\n|---|---|---|---|\n", title)
		for _, r := range redact.Rules() {
			if of(r) {
				fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", r.ID, r.Finds, r.Checked, r.Placeholder)
			}
		}
	}
	const named = "keys assigned to a name with "
	service := func(r redact.Rule) bool { return strings.HasPrefix(r.Finds, named) }
	table("Personal data", func(r redact.Rule) bool { return r.Personal })
	table("Secrets", func(r redact.Rule) bool { return !r.Personal && !service(r) })
	b.WriteString(redactionServices)
	before := ""
	for _, r := range redact.Rules() {
		switch {
		case !service(r):
			continue
		case r.Finds == before:
			fmt.Fprintf(&b, ", `%s`", r.ID)
		default:
			fmt.Fprintf(&b, " |\n| %s | `%s`", strings.TrimPrefix(r.Finds, named), r.ID)
		}
		before = r.Finds
	}
	b.WriteString(" |\n")
	return b.String()
}

func TestRedactionRulesPage(t *testing.T) {
	generated(t, "docs/redaction-rules.md", []byte(redactionRules()))
}
