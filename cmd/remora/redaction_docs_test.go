package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/remora-proxy/remora/redact"
)

const redactionDocsHead = "<!-- Generated from the table of rules in redact/rules.go by `make docs`. -->\n" + `
# Redaction

Secrets and personal data are taken out of every text before anything else may see it: before the spool, the store, the index,
the log and traces. What recall finds is redacted once more before it is shown, so a rule that is added today holds for what was
stored yesterday. (Blocks that a running conversation was given already are replayed as they were, for at most
` + "`injection.ttl`" + `: changing them would cost the upstream's prompt cache.)

Requests and answers themselves are never changed: the model sees what its user sends.

## How it works

One pass of an automaton finds the keywords of all rules, and one look at each digit, dot, colon and @ finds where personal data
can begin. Only there does a rule look closer, with a pattern (RE2, linear time) or code, and with checks: check digits, entropy,
lengths, what the identifier before a value says. Rules for secrets come first: a text that a secret is a part of counts as secret.
A text with signs of a URL (%40), of HTML (&quot;), of typesetting (no-break spaces, dashes), full-width or invisible characters is looked at
in plain writing, too.

- **Placeholders are stable.** A redacted text has no findings; nothing inside a placeholder is touched. A text that is nothing
  but placeholders is not stored (counted as ` + "`redactedAll`" + `).
- **Not taken for secrets**: variables and templates (` + "`${TOKEN}`, `<your key>`, `os.environ`" + `), masks (` + "`xxxx`, `****`" + `), EXAMPLE keys, names that
  say that a value is made up (` + "`fake_token`, `nonMatchingToken`" + `) or only about a secret (` + "`token_url`, `secret_name`" + `), tokens of a page (CSRF),
  words and paths, UUIDs of version 1, checksummed addresses, simple passwords of the machine itself (` + "`admin:pass@localhost`" + `).
- **Originals.** Those of secrets are never kept. Those of personal data are, unless ` + "`redact.keepOriginals`" + ` is off: beside the memory, sealed
  with it under its user's key, as a map from a salted hash to original, placeholder, rule and places. The salt is one per
  installation and user. At most 1,000 originals and 64 KiB of them are kept of one message; the index has none.

## Rules of your own

` + "`redact.disable`" + ` switches rules off by id. ` + "`redact.rules`" + ` adds some ([configuration](configuration.md#redact)):

    {"redact": {"rules": [
      {"id": "ticket", "pattern": "\\bTCK-\\d{6}\\b", "placeholder": "[TICKET]", "keywords": ["tck-"]},
      {"id": "member", "pattern": "member no\\. (\\d{10})", "placeholder": "[MEMBER]", "validator": "luhn"}
    ]}}

What they find is treated as a secret. A match that touches a placeholder of its own rule is left alone. If a text still has findings
after eight rounds, which takes rules made for it, the whole of it becomes one placeholder. Bounds: 100 rules, patterns of 1,000 bytes,
10 keywords of 2 to 32 bytes each; a configuration beyond them is refused.

## Limits

- Names and postal addresses are out of reach without a model, as is anything that is private by its meaning alone.
- In our own samples (redact/testdata): of 246 texts with a secret the rules miss 4, of a second set of 88 one, of 102 texts with personal data none; of 163 and 116
  texts with neither they flag none. A third set, of 35 and 22, has what a hostile reader found, and its like: nothing of it is missed or flagged.
  The rules have learnt from these sets: of the second, when nobody had looked at it, they missed one in five. On the public fixtures of secret scanners 99.7 % of 627
  secrets are found and 9.4 % of 160 non-secrets flagged (8.6 % of the half that rules were not made on). Most of the latter that we looked at are
  keys of the right form that a test of another vendor's rule calls none.
- One-time codes, PINs, recovery codes and security codes of cards are taken out only behind a word that says so ("your code is 123456" stays).
- An IPv6 address of few, short groups of digits (12:34:56::78) is taken for a time or ratio unless a prefix, a zone or a word says what it is.
- Nine digits in the groups of a social security number are one, unless a word for what is counted follows ("123-45-6789 points").
- A password that contains "your", or that has a blank and stands in a sentence, stays; so does "anna / Kestrel88".
- A password of letters only that stands in a sentence without quotes is taken for a word.
- A random value that nothing around it calls a key, and that has no form of its own, stays.
- A vendor's name alone does not make a key of the value behind it; ` + "`HEROKU_TOKEN=`" + ` does, ` + "`heroku:`" + ` does not.
- Values behind assignments end at white space; what looks like a call, an index or a template is code.
- National ids are found where their check digits are right. Those without check digits (British National Insurance numbers, Danish
  CPR numbers, passports) are not looked for.
- Binary data is not looked into.

` + "`remora-bench redact -secrets FILE -pii FILE`" + ` measures reach and cost on data of yours.
`

// redactionServices ends in the middle of a row.
const redactionServices = `
## Keys told by their vendor's name

A value that is assigned to a name which holds one of these words, has the length and alphabet of that vendor's keys and looks
random becomes ` + "`[API_KEY]`" + `. The table is rule data of [gitleaks](https://github.com/gitleaks/gitleaks) 8.30.1 (MIT,
` + "`redact/gitleaks/LICENSE`" + `).

| The name holds | Ids |
| --- | ---`

// redactionDocs is docs/redaction.md.
func redactionDocs() string {
	var b strings.Builder
	b.WriteString(redactionDocsHead)
	table := func(title string, of func(redact.Rule) bool) {
		fmt.Fprintf(&b, "\n## %s\n\n| Id | Finds | Checked | Placeholder |\n|---|---|---|---|\n", title)
		for _, r := range redact.Rules() {
			if of(r) {
				fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", r.ID, r.Finds, r.Checked, r.Placeholder)
			}
		}
	}
	const named = "keys assigned to a name that holds "
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

func TestRedactionDocs(t *testing.T) {
	generated(t, "docs/redaction.md", []byte(redactionDocs()))
}
