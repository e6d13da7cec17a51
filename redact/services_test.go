package redact

import (
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// example returns a value that matches a pattern, always the same one.
func example(t *testing.T, pattern string) string {
	t.Helper()
	re, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, uint64(len(pattern))))
	var b strings.Builder
	var write func(re *syntax.Regexp)
	write = func(re *syntax.Regexp) {
		switch re.Op {
		case syntax.OpLiteral:
			b.WriteString(string(re.Rune))
		case syntax.OpCharClass:
			var in []rune
			for i := 0; i < len(re.Rune); i += 2 {
				for c := re.Rune[i]; c <= min(re.Rune[i+1], 'z'); c++ {
					if c > ' ' && (c < 'A' || c > 'Z' || re.Flags&syntax.FoldCase == 0) {
						in = append(in, c)
					}
				}
			}
			b.WriteRune(in[random.IntN(len(in))])
		case syntax.OpRepeat, syntax.OpPlus, syntax.OpStar, syntax.OpQuest:
			n := re.Min
			if re.Op == syntax.OpPlus {
				n = 8
			}
			for range n {
				write(re.Sub[0])
			}
		case syntax.OpAlternate:
			write(re.Sub[0])
		default:
			for _, sub := range re.Sub {
				write(sub)
			}
		}
	}
	write(re)
	return b.String()
}

// serviceExample returns a text with an example of a rule.
func serviceExample(t *testing.T, v service) string {
	return `acme-` + v.names[0] + `-x = "` + example(t, v.value) + `"`
}

// TestServices checks that each rule finds its example and not a near miss of
// it.
func TestServices(t *testing.T) {
	all := services()
	for i, v := range all {
		t.Run(v.id, func(t *testing.T) {
			cfg := Config{}
			for _, rule := range Rules() { // some forms are also those of another rule
				if rule.ID != v.id {
					cfg.Disable = append(cfg.Disable, rule.ID)
				}
			}
			r, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			value := example(t, v.value)
			for name, c := range map[string]struct {
				text string
				want bool
			}{
				"quoted":          {serviceExample(t, v), true},
				"environment":     {"MY_" + strings.ToUpper(v.names[0]) + "_X=" + value + "\n", true},
				"JSON":            {`{"` + v.names[0] + `Id": "` + value + `", "b": 1}`, true},
				"too long":        {"acme_" + v.names[0] + "_x = " + value + strings.Repeat("7f", 40), false},
				"cut off":         {"acme_" + v.names[0] + "_x = " + value[:len(value)/2], false},
				"another name":    {"acme_x = " + value, false},
				"made up":         {"fake_" + v.names[0] + "_x = " + value, false},
				"no operator":     {v.names[0] + " x " + value, false},
				"within a word":   {"abc" + v.names[0] + "_x = " + value, false},
				"name alone":      {v.names[0] + ": " + value, false},
				"same characters": {"acme_" + v.names[0] + "_x = " + strings.Repeat("0", len(value)), false},
			} {
				_, findings := r.Redact(c.text)
				if got := len(findings) > 0; got != c.want {
					t.Errorf("%s: found %v, want %v: %q", name, got, c.want, c.text)
				}
			}
			if r.rules[familyService>>8][i].ID != v.id {
				t.Error("rules and services differ in order")
			}
		})
	}
	if !slices.IsSortedFunc(all, func(a, b service) int { return strings.Compare(a.id, b.id) }) || len(all) < 90 {
		t.Errorf("got %d rules, want all of them, sorted by id", len(all))
	}
}

func TestIdentifierWords(t *testing.T) {
	for identifier, want := range map[string][2]bool{ // isFake and isMetadata, of the part around "token"
		"token": {false, false}, "nonMatchingtoken": {true, false}, "nonce_token": {false, false}, "NON_PROD_token": {false, false}, "not_valid_token": {true, false}, "fake-token": {true, false},
		"MY_DUMMY_token": {true, false}, "examples_token": {false, false}, "token_name": {false, true}, "tokenUrl": {false, true},
		"token_expiry_2": {false, true}, "tokens": {false, false}, "token_filename_secret": {false, false}, "app.mock.token": {true, false},
	} {
		i := strings.Index(identifier, "token")
		if got := [2]bool{isFake(identifier, i), isMetadata(identifier, i+len("token"))}; got != want {
			t.Errorf("%s: got %v, want %v", identifier, got, want)
		}
	}
}
