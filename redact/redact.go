// Package redact removes secrets and personal data from text before anything
// else sees it.
//
// It hides the detection: keyword automaton, key shapes, value classification,
// check digits and placeholders. A [Redactor] finds secrets (keys, tokens,
// passwords, credentials in URLs and headers) and personal data (email, phone,
// card, social security number, national ids, IBAN, IP address, user names in
// home paths), and replaces each by a placeholder such as [EMAIL]. [Config]
// adds rules. Names and postal addresses would need a model and are not found.
// The write path redacts what it stores, and recall redacts what it shows,
// through a [Cache].
//
// Guarantees:
//
//   - Idempotent: a redacted text has no findings. A placeholder can bring text
//     parts close enough to form a new finding, so the text is scanned until
//     there are none (at most maxRounds times).
//   - Findings never hold a value, only its position. Originals leave the
//     package only through [Redactor.RedactWithOriginals], and those of secrets
//     and custom rules never.
//   - Time is linear in the text, even in hostile text: keywords are found in
//     one pass of an automaton, everything else starts at a trigger byte,
//     regular expressions are RE2 and anchored at a keyword, windows are
//     bounded, and what many keywords share is read once. Of a value that
//     consists of assignments maxBareAssignments are examined; the rest is
//     redacted whole.
//
// A Redactor is immutable after [New] and safe for concurrent use.
package redact

import (
	"errors"
	"fmt"
	"slices"
)

// maxRounds limits how often one text is scanned. Two rounds are enough for
// nearly all texts with a finding. A text that still has findings, which takes
// custom rules made for it, is replaced whole.
const maxRounds = 8

// Config selects what is redacted.
type Config struct {
	// Disable lists ids of rules to disable. [Rules] has the built-in ones.
	Disable []string
	// PhoneRegions are the ISO 3166 regions whose national numbers are
	// recognised without a word such as "phone" before them. International
	// numbers and numbers after such a word need no region.
	PhoneRegions []string
	// Rules are added to the built-in ones, at most MaxCustom.
	Rules []CustomRule
}

// DefaultConfig enables everything.
func DefaultConfig() Config {
	return Config{PhoneRegions: []string{"US", "GB", "DE", "FR", "IT", "ES", "NL", "BE", "CH", "AT", "SE", "AU", "IN", "JP", "BR", "ZA"}}
}

// Validate reports every unknown rule and region, and every problem of the
// custom rules.
func (c Config) Validate() error {
	_, errs := compileCustom(c.Rules)
	known := ids(builtIn())
	for i, id := range c.Disable {
		_, ok := known[id]
		if !ok && !slices.ContainsFunc(c.Rules, func(r CustomRule) bool { return r.ID == id }) {
			errs = append(errs, fmt.Errorf("disable[%d]: unknown rule %q", i, id))
		}
	}
	for i, region := range c.PhoneRegions {
		if !knownRegion(region) {
			errs = append(errs, fmt.Errorf("phoneRegions[%d]: unknown region %q", i, region))
		}
	}
	return errors.Join(errs...)
}

// Finding describes where and why text was redacted, never what it was.
type Finding struct {
	Rule        string
	Placeholder string
	Personal    bool // personal data; else a secret
	Start, End  int  // bytes [Start, End) of the original text
}

// Redactor finds and replaces. It is made with [New].
type Redactor struct {
	rules        [families][]Rule
	enabled      [families][]bool
	placeholders map[string]bool
	secrets      map[string]bool // placeholders of secrets that the built-in rules find
	keywords     *automaton
	actions      []action // by keyword number
	phones       phoneRules
	custom       []compiledRule
}

// New returns a Redactor. Its error is that of [Config.Validate].
func New(cfg Config) (*Redactor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Redactor{rules: builtIn(), placeholders: map[string]bool{}, secrets: map[string]bool{}, phones: phoneRules{regions: slices.Clone(cfg.PhoneRegions)}}
	r.custom, _ = compileCustom(cfg.Rules)
	for _, c := range cfg.Rules {
		r.rules[familyCustom>>8] = append(r.rules[familyCustom>>8], Rule{ID: c.ID, Placeholder: c.Placeholder})
	}
	for family, rules := range r.rules {
		r.enabled[family] = make([]bool, len(rules))
		for i, rule := range rules {
			r.enabled[family][i] = !slices.Contains(cfg.Disable, rule.ID)
			r.placeholders[rule.Placeholder] = true
			if !rule.Personal && family != int(familyCustom>>8) {
				r.secrets[rule.Placeholder] = true
			}
		}
	}
	words, actions := keywordActions(cfg.Rules)
	r.keywords, r.actions = newAutomaton(words), actions
	return r, nil
}

// IsPlaceholder reports whether text is what a rule writes for what it has
// found.
func (r *Redactor) IsPlaceholder(text string) bool { return r.placeholders[text] }

// Redact returns text with a placeholder for each finding, and the findings in
// order, which never overlap. Text without findings is returned unchanged.
func (r *Redactor) Redact(text string) (string, []Finding) {
	out, matches := r.redact(text)
	if len(matches) == 0 {
		return text, nil
	}
	findings := make([]Finding, len(matches))
	for i, s := range matches {
		rule := r.rule(s.rule)
		findings[i] = Finding{Rule: rule.ID, Placeholder: rule.Placeholder, Personal: rule.Personal, Start: s.start, End: s.end}
	}
	return out, findings
}

func (r *Redactor) redact(text string) (string, []match) {
	matches := r.scan(text)
	if len(matches) == 0 {
		return text, nil
	}
	out := r.render(text, matches)
	for range maxRounds - 1 {
		more := r.scan(out)
		if len(more) == 0 {
			return out, matches
		}
		matches = r.mergeRounds(matches, more)
		out = r.render(text, matches)
	}
	if more := r.scan(out); len(more) > 0 {
		matches = []match{{start: 0, end: len(text), rule: more[0].rule}}
		out = r.render(text, matches)
	}
	return out, matches
}

// OnlyPlaceholders reports whether text has at least one placeholder and,
// besides placeholders, no letters or digits.
func (r *Redactor) OnlyPlaceholders(text string) bool {
	any := false
	for i := 0; i < len(text); {
		if n := r.placeholderAt(text, i); n > 0 {
			any = true
			i += n
			continue
		}
		if c := text[i]; isAlnum(c) || c >= 0x80 {
			return false
		}
		i++
	}
	return any
}

// HidesSecret reports whether text has the placeholder of a secret that a
// built-in rule finds. Its original is not kept anywhere.
func (r *Redactor) HidesSecret(text string) bool {
	for from := 0; ; {
		start, end, ok := r.nextPlaceholder(text, from)
		if !ok {
			return false
		}
		if r.secrets[text[start:end]] {
			return true
		}
		from = end
	}
}

// scan returns the matches of one pass, in order and without overlap, none of
// them inside a placeholder of text.
func (r *Redactor) scan(text string) []match {
	matches := r.find(text)
	if w, ok := decodeText(text); ok {
		for _, found := range r.find(w.text) {
			found.start, found.end = int(w.at[found.start]), int(w.at[found.end])
			matches = append(matches, found)
		}
	}
	if len(matches) == 0 {
		return nil
	}
	return r.resolve(text, matches)
}

// find returns the candidates in a text, in no order.
func (r *Redactor) find(text string) []match {
	s := newScanner(text, r)
	s.scanKeywords()
	s.scanTriggers()
	s.scanCustom()
	return s.matches
}
