package redact

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/redact/checkdigit"
)

// CustomRule is a rule of the configuration. What it finds is treated as a
// secret: its original is never kept.
type CustomRule struct {
	ID string
	// Pattern is RE2. If it has a group, the match of the first one is
	// replaced, else the whole match.
	Pattern     string
	Placeholder string // [NAME]
	// Validator checks the value, "" = ValidateNone.
	Validator Validator
	// Keywords save time: the pattern runs only over texts with one of them, in
	// any case. None = over all texts.
	Keywords []string
}

// Validator names a check of a value that a pattern has matched.
type Validator string

const (
	ValidateNone    Validator = "none"
	ValidateLuhn    Validator = "luhn"    // check digit of ISO/IEC 7812 over the digits
	ValidateMod97   Validator = "mod97"   // check digits of ISO 13616 over letters and digits
	ValidateEntropy Validator = "entropy" // at least MinEntropy
)

// Validators returns all of them.
func Validators() []Validator {
	return []Validator{ValidateNone, ValidateLuhn, ValidateMod97, ValidateEntropy}
}

// MinEntropy is the minimum of ValidateEntropy, in bits per byte (Shannon).
const MinEntropy = 3.0

// Limits of custom rules. A configuration beyond one of them is refused. They
// limit the keyword automaton to some 40,000 states and 8 MiB.
const (
	MaxCustom         = 100
	MaxPattern        = 1000 // bytes
	MaxCustomID       = 64
	MaxCustomKeywords = 10 // of one rule
	MaxKeyword        = 32 // bytes
)

type compiledRule struct {
	id          ruleID
	pattern     *regexp.Regexp
	validate    func(string) bool // nil = none
	hasKeywords bool
}

// compileCustom returns the rules ready to run, or all their problems.
func compileCustom(rules []CustomRule) ([]compiledRule, []error) {
	var errs []error
	wrong := func(i int, field, format string, a ...any) {
		errs = append(errs, fmt.Errorf("rules[%d].%s: %s", i, field, fmt.Sprintf(format, a...)))
	}
	if len(rules) > MaxCustom {
		return nil, []error{fmt.Errorf("rules: %d given, the limit is %d", len(rules), MaxCustom)}
	}
	usedBy := map[string]string{}
	for id := range ids(builtIn()) {
		usedBy[id] = "a built-in rule"
	}
	compiled := make([]compiledRule, 0, len(rules))
	for i, r := range rules {
		switch by := usedBy[r.ID]; {
		case r.ID == "" || len(r.ID) > MaxCustomID || strings.Trim(r.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			wrong(i, "id", "must be 1 to %d of a-z, 0-9 and -", MaxCustomID)
		case by != "":
			wrong(i, "id", "%q is already used by %s", r.ID, by)
		default:
			usedBy[r.ID] = fmt.Sprintf("rules[%d]", i)
		}
		if n := len(r.Placeholder); n == 0 || placeholderForm(r.Placeholder, 0) != n {
			wrong(i, "placeholder", "must be [NAME], where NAME is %d to %d of A-Z and _", minPlaceholder, maxPlaceholder)
		}
		pattern, err := compilePattern(r.Pattern)
		if err != nil {
			wrong(i, "pattern", "%v", err)
		}
		c := compiledRule{id: familyCustom + ruleID(i), pattern: pattern, hasKeywords: len(r.Keywords) > 0}
		validate, ok := validators[r.Validator]
		if c.validate = validate; !ok {
			wrong(i, "validator", "must be one of %s", join(Validators()))
		}
		if len(r.Keywords) > MaxCustomKeywords {
			wrong(i, "keywords", "%d given, the limit is %d", len(r.Keywords), MaxCustomKeywords)
		}
		for k, word := range r.Keywords {
			if len(word) < 2 || len(word) > MaxKeyword {
				wrong(i, fmt.Sprintf("keywords[%d]", k), "must have 2 to %d bytes", MaxKeyword)
			}
		}
		compiled = append(compiled, c)
	}
	return compiled, errs
}

func join(all []Validator) string {
	var names []string
	for _, v := range all {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

// compilePattern refuses patterns that can match the empty string. Its errors
// never quote the pattern, which may contain what it is meant to hide.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	switch {
	case pattern == "":
		return nil, errors.New("is missing")
	case len(pattern) > MaxPattern:
		return nil, fmt.Errorf("has %d bytes, the limit is %d", len(pattern), MaxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("is not a regular expression (RE2): %s", e.Code)
	} else if err != nil {
		return nil, errors.New("is not a regular expression (RE2)")
	}
	if value := firstGroup(parsed); matchesEmpty(parsed) || value != nil && matchesEmpty(value) {
		return nil, errors.New("must not match the empty string")
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errors.New("is not a regular expression (RE2)")
	}
	return compiled, nil
}

func firstGroup(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpCapture {
		return re.Sub[0]
	}
	for _, sub := range re.Sub {
		if found := firstGroup(sub); found != nil {
			return found
		}
	}
	return nil
}

// matchesEmpty reports whether re can match the empty string.
func matchesEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return matchesEmpty(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesEmpty(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesEmpty(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesEmpty)
	}
	return true // stars, question marks, anchors
}

// scanCustom runs the patterns of the configuration. A match next to a
// placeholder of its own rule is the rest of an earlier one and stays;
// otherwise a text would lose another piece each time it is redacted.
func (s *scanner) scanCustom() {
	for i := range s.redactor.custom {
		c := &s.redactor.custom[i]
		if c.hasKeywords && s.keywordsSeen[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		own := s.redactor.rule(c.id).Placeholder
		for _, m := range c.pattern.FindAllStringSubmatchIndex(s.text, -1) {
			start, end := m[0], m[1]
			if len(m) > 2 {
				start, end = m[2], m[3] // -1 if the group took no part
			}
			if start < 0 || start == end || strings.HasSuffix(s.text[:start], own) || strings.HasPrefix(s.text[end:], own) {
				continue
			}
			if c.validate == nil || c.validate(s.text[start:end]) {
				s.add(c.id, start, end)
			}
		}
	}
}

// validators are the checks by name.
var validators = map[Validator]func(value string) bool{
	"":           nil,
	ValidateNone: nil,
	ValidateLuhn: func(value string) bool {
		digits := only(value, isDigit)
		return len(digits) > 1 && checkdigit.Luhn(digits)
	},
	ValidateMod97: func(value string) bool {
		compact := only(strings.ToLower(value), isAlnum)
		return len(compact) > 4 && checkdigit.Mod97(compact)
	},
	ValidateEntropy: func(value string) bool { return entropy(value) >= MinEntropy },
}

// only returns the bytes of value that satisfy in.
func only(value string, in func(byte) bool) []byte {
	return slices.DeleteFunc([]byte(value), func(c byte) bool { return !in(c) })
}
