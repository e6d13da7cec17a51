package redact

import (
	"strings"
	"testing"
)

func custom(t testing.TB, rules ...CustomRule) *Redactor {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Rules = rules
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCustomRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		rule     CustomRule
		in, want string
	}{
		{"whole match", CustomRule{Pattern: `PRJ-\d{4}`}, "see PRJ-1234 and PRJ-12", "see [X] and PRJ-12"},
		{"first group", CustomRule{Pattern: `(?i)project (\w+)`}, "Project Nightfall is late", "Project [X] is late"},
		{"group that takes no part", CustomRule{Pattern: `a(b)?c`}, "ac abc", "ac a[X]c"},
		{"luhn", CustomRule{Pattern: `C\d{6}`, Validator: ValidateLuhn}, "C123455 C123456", "[X] C123456"},
		{"mod97", CustomRule{Pattern: `R[\dA-Z]{23}`, Validator: ValidateMod97}, "RRR", "RRR"},
		{"entropy", CustomRule{Pattern: `k:(\w+)`, Validator: ValidateEntropy}, "k:aaaaaaaaaa k:q7Zk2mXv9L", "k:aaaaaaaaaa k:[X]"},
		{"keyword there", CustomRule{Pattern: `\d{5}`, Keywords: []string{"badge"}}, "BADGE 12345", "BADGE [X]"},
		{"keyword not there", CustomRule{Pattern: `\d{5}`, Keywords: []string{"badge"}}, "room 12345", "room 12345"},
		{"never in a placeholder", CustomRule{Pattern: `[A-Z]+`}, "mail [EMAIL] OK", "mail [EMAIL] [X]"},
		{"anchored patterns end", CustomRule{Pattern: `^[a-z]`}, "abc", "[X]bc"},
		{"a secret wins over personal data", CustomRule{Pattern: `anna@\S+`}, "anna@example.org", "[X]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rule.ID, c.rule.Placeholder = "mine", "[X_]"
			r := custom(t, c.rule)
			want := strings.ReplaceAll(c.want, "[X]", "[X_]")
			got, findings := r.Redact(c.in)
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			checkFindings(t, c.in, got, findings)
			if again, more := r.Redact(got); again != got || len(more) > 0 {
				t.Errorf("not idempotent: %q became %q", got, again)
			}
			if _, originals := r.RedactWithOriginals(c.in); len(originals) > 0 && originals[0].Rule == "mine" {
				t.Error("the original of a custom rule is kept")
			}
			off := DefaultConfig()
			off.Rules, off.Disable = []CustomRule{c.rule}, []string{"mine", "email"}
			if r, err := New(off); err != nil {
				t.Error(err)
			} else if got, _ := r.Redact(c.in); got != c.in {
				t.Errorf("disabled: got %q", got)
			}
		})
	}
}

// TestRoundsEnd checks that a rule whose placeholder brings about the next
// match still leaves a stable text.
func TestRoundsEnd(t *testing.T) {
	r := custom(t, CustomRule{ID: "a", Pattern: `(?:^|\])[a-z]`, Placeholder: "[AA]"}, CustomRule{ID: "b", Pattern: `\][a-z]`, Placeholder: "[BB]"})
	in := strings.Repeat("abc", 40) + " [AA]x"
	out, findings := r.Redact(in)
	checkFindings(t, in, out, findings)
	if again, more := r.Redact(out); again != out || len(more) > 0 {
		t.Errorf("%q became %q", out, again)
	}
}

func TestCustomRuleLimits(t *testing.T) {
	rule := CustomRule{ID: "a", Pattern: "a", Placeholder: "[AA]"}
	for name, c := range map[string]struct {
		rules []CustomRule
		want  string
	}{
		"too many": {make([]CustomRule, MaxCustom+1), "rules: 101 given, the limit is 100"},
		"long pattern": {[]CustomRule{{ID: "a", Pattern: strings.Repeat("a", MaxPattern+1), Placeholder: "[AA]"}},
			"rules[0].pattern: has 1001 bytes, the limit is 1000"},
		"no pattern":         {[]CustomRule{{ID: "a", Placeholder: "[AA]"}}, "rules[0].pattern: is missing"},
		"empty alternative":  {[]CustomRule{{ID: "a", Pattern: "a|", Placeholder: "[AA]"}}, "rules[0].pattern: must not match the empty string"},
		"word border":        {[]CustomRule{{ID: "a", Pattern: `\b`, Placeholder: "[AA]"}}, "rules[0].pattern: must not match the empty string"},
		"empty group":        {[]CustomRule{{ID: "a", Pattern: `a(b*)c`, Placeholder: "[AA]"}}, "rules[0].pattern: must not match the empty string"},
		"repeat":             {[]CustomRule{{ID: "a", Pattern: `(a{1,500}){1,500}`, Placeholder: "[AA]"}}, "rules[0].pattern: is not a regular expression (RE2): invalid repeat count"},
		"twice":              {[]CustomRule{rule, rule}, `rules[1].id: "a" is already used by rules[0]`},
		"id":                 {[]CustomRule{{ID: "My Rule", Pattern: "a", Placeholder: "[AA]"}}, "rules[0].id: must be 1 to 64 of a-z, 0-9 and -"},
		"long placeholder":   {[]CustomRule{{ID: "a", Pattern: "a", Placeholder: "[" + strings.Repeat("A", 20) + "]"}}, "rules[0].placeholder: must be [NAME], where NAME is 2 to 19 of A-Z and _"},
		"nested placeholder": {[]CustomRule{{ID: "a", Pattern: "a", Placeholder: "[AA][BB]"}}, "rules[0].placeholder: must be [NAME], where NAME is 2 to 19 of A-Z and _"},
		"keywords": {[]CustomRule{{ID: "a", Pattern: "a", Placeholder: "[AA]", Keywords: make([]string, 11)}},
			"rules[0].keywords: 11 given, the limit is 10"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Rules: c.rules})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestLargestConfiguration checks that the largest number of the longest
// keywords fits the automaton.
func TestLargestConfiguration(t *testing.T) {
	var rules []CustomRule
	for i := range MaxCustom {
		r := CustomRule{ID: "r" + strings.Repeat("x", i%60) + string(rune('a'+i%26)) + string(rune('a'+i/26)), Pattern: `z\d+`, Placeholder: "[ZZ]"}
		for k := range MaxCustomKeywords {
			r.Keywords = append(r.Keywords, string(rune('a'+i%26))+string(rune('a'+i/26))+string(rune('a'+k))+strings.Repeat("q", MaxKeyword-3))
		}
		rules = append(rules, r)
	}
	r := custom(t, rules...)
	last := rules[MaxCustom-1].Keywords[MaxCustomKeywords-1]
	if got, _ := r.Redact("z123 " + strings.ToUpper(last)); !strings.HasPrefix(got, "[ZZ] ") {
		t.Errorf("got %q", got)
	}
}

func FuzzCustomRule(f *testing.F) {
	f.Add(`(?:^|\])[a-z]`, "abc [EMAIL]x anna@example.org")
	f.Add(`\[?[A-Z]+`, "[MINE] [EMAIL]")
	f.Add(`.`, "a\nb")
	f.Add(`$|x`, "x")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		cfg := DefaultConfig()
		cfg.Rules = []CustomRule{{ID: "mine", Pattern: pattern, Placeholder: "[MINE]"}}
		r, err := New(cfg)
		if err != nil {
			t.Skip()
		}
		out, findings := r.Redact(text)
		checkFindings(t, text, out, findings)
		if again, more := r.Redact(out); again != out || len(more) > 0 {
			t.Fatalf("not idempotent: %q became %q, then %q", text, out, again)
		}
	})
}
