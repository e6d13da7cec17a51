package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/remora-proxy/remora/proxy/backend"
)

// TestLimitsFitPackages checks that a package takes a number at both of its
// limits. So nobody is told a limit that is refused, and the table alone has to
// check numbers.
func TestLimitsFitPackages(t *testing.T) {
	rows := Default()
	for i, s := range rows.settings() {
		n, ok := s.at.(number)
		if !ok {
			continue
		}
		for _, limit := range limitsOf(n) {
			c := Default()
			c.Embeddings.URL, c.Embeddings.Model = "http://127.0.0.1:1", "m" // without a URL nothing else is validated
			c.Distill.URL, c.Distill.Model = "http://127.0.0.1:1", "m"
			if strings.HasPrefix(s.key, "gateway.") { // refused in other modes
				c.Backend.Mode = backend.ModeGateway
				c.Backend.Gateway.BaseURL, c.Backend.Gateway.UserID, c.Backend.Gateway.UserKey = "http://127.0.0.1:1", "u", "k"
			}
			if err := c.settings()[i].at.parse(limit); err != nil {
				t.Errorf("%s: %s is within the limits, and refused: %v", s.key, limit, err)
				continue
			}
			(&report{}).relations(c.settings())
			c.Settle(testPlace())
			r := &report{}
			c.validate(r)
			for _, p := range r.problems {
				t.Errorf("%s = %s: the package refuses it: %s: %s", s.key, limit, p.key, p.what)
			}
		}
	}
}

// limitsOf returns the minimum and the maximum of a number as text, read from
// the error that it gives.
func limitsOf(n number) []string {
	err := n.parse("x")
	_, between, _ := strings.Cut(err.Error(), " between ")
	low, high, _ := strings.Cut(between, " and ")
	return []string{plain(low), plain(high)}
}

// plain converts an amount as it is shown to one as it is parsed.
func plain(amount string) string {
	amount = strings.ReplaceAll(amount, ",", "")
	var n int64
	var unit string
	if _, err := fmt.Sscanf(amount, "%d %s", &n, &unit); err == nil {
		amount = fmt.Sprint(n << map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[unit])
	}
	return amount
}

// TestLimitsAreChecked covers both sides of both limits of each kind, and that
// a number that is refused is not assigned.
func TestLimitsAreChecked(t *testing.T) {
	var i int
	var u uint64
	var f float64
	var d time.Duration
	for _, test := range []struct {
		at              value
		in, below, over string
		limits          string
	}{
		{integer(&i, 2, 1000), "2", "1", "1001", "2 to 1,000"},
		{integer(&i, 0, maxInteger), "1048576", "-1", "1048577", ""},
		{integer(&i, 1, maxInteger), "1", "0", "9223372036854775808", "at least 1"},
		{size(&u, 1<<10, 1<<30), "1024", "1023", "1073741825", "1 KiB to 1 GiB"},
		{size(&u, 0, maxBytes), "0", "-1", "1099511627777", ""},
		{float(&f, 0, 1), "0.5", "-0.1", "NaN", "0 to 1"},
		{duration(&d, time.Second, time.Hour), "1h", "999ms", "1h1ns", "1s to 1h"},
		{duration(&d, time.Minute, maxDuration), "876000h", "0s", "876001h", "at least 1m"},
	} {
		if got := test.at.(number).limits(); got != test.limits {
			t.Errorf("limits: got %q, want %q", got, test.limits)
		}
		if err := test.at.parse(test.in); err != nil {
			t.Errorf("%s: %v", test.in, err)
		}
		want := test.at.encode()
		for _, bad := range []string{test.below, test.over, "", "x"} {
			if err := test.at.parse(bad); err == nil || !strings.Contains(err.Error(), " between ") {
				t.Errorf("%s %q: got %v, want an error with the limits", test.at.kind(), bad, err)
			}
			if got := test.at.encode(); got != want {
				t.Errorf("%s %q was refused and assigned: got %v, want %v", test.at.kind(), bad, got, want)
			}
		}
	}
}
