package api

import (
	"math"
	"strings"
	"testing"
)

// A price that can't be used says which of its fields are wrong, and not what
// they hold.
func TestPriceValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		price  Price
		fields []string
	}{
		"full":         {Price{Model: "gpt-*", Currency: "USD", Input: 1, CacheRead: .1, CacheWrite: 1.25, Output: maxPrice}, nil},
		"free":         {Price{Currency: "EUR"}, nil},
		"no currency":  {Price{}, []string{"currency"}},
		"a small one":  {Price{Currency: "usd"}, []string{"currency"}},
		"a sign":       {Price{Currency: "€"}, []string{"currency"}}, // three bytes
		"a pattern":    {Price{Model: "gpt-[45]", Currency: "USD"}, []string{"model"}},
		"a long model": {Price{Model: strings.Repeat("m", MaxTag+1), Currency: "USD"}, []string{"model"}},
		"all wrong": {
			Price{Model: "a?", Currency: "US", Input: -1, CacheRead: math.NaN(), CacheWrite: math.Inf(1), Output: maxPrice + 1},
			[]string{"model", "currency", "input", "cacheRead", "cacheWrite", "output"},
		},
	} {
		err := tt.price.Validate()
		if (err != nil) != (len(tt.fields) > 0) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil {
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for i, field := range tt.fields {
			if i >= len(lines) || !strings.HasPrefix(lines[i], field+": ") {
				t.Errorf("%s: %q, want a problem of %s", name, err, field)
			}
		}
		if len(lines) != len(tt.fields) {
			t.Errorf("%s: %q", name, err)
		}
	}
}
