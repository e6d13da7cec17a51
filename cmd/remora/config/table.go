package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// setting is one row of the table that the file, the environment, the
// documentation and `remora check` share.
type setting struct {
	key  string // path in the file, lowerCamelCase
	at   value
	doc  string // one or two sentences of Markdown
	note string // documents the default where it depends on the machine

	atLeast string // key of the setting that bounds this one from below

	// share is the part of a container's memory that the default may take, 0 =
	// any. A bound that is set explicitly is never lowered.
	share float64
	// each is how much memory a container must have for each of what the
	// setting counts, in bytes, 0 = any.
	each float64

	// credentials says that its strings may be credentials: only their number
	// is shown.
	credentials bool
}

// env returns the environment variable of a setting: recall.firstDeadline is
// REMORA_RECALL_FIRST_DEADLINE.
func (s setting) env() string {
	var b strings.Builder
	b.WriteString("REMORA_")
	for _, r := range s.key {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
	}
	return b.String()
}

// Limits of numbers whose row has no lower maximum. A larger number is a typing
// error: it would overflow a sum or a timer, or ask for memory that no machine
// has.
const (
	maxInteger  = 1 << 20
	maxBytes    = 1 << 40
	maxNumber   = 1e9
	maxDuration = 100 * 365 * 24 * time.Hour
)

// relations checks every setting that another one bounds from below. A setting
// that is too small is reported and raised, so that no package reports it
// again.
func (r *report) relations(table []setting) {
	byKey := map[string]setting{}
	for _, s := range table {
		byKey[s.key] = s
	}
	for _, s := range table {
		bound, ok := byKey[s.atLeast]
		if !ok || s.at.(number).amount() >= bound.at.(number).amount() {
			continue
		}
		origin := r.origin(s.key)
		if other := r.origin(bound.key); origin == "" {
			origin = other
		} else if other != "" && other != origin {
			origin += ", " + other
		}
		least := fmt.Sprint(bound.at.encode())
		r.addFrom(s.key, origin, fmt.Sprintf("must be at least %s (%s)", bound.key, least))
		_ = s.at.parse(least) // it fits: the limits of both are alike
	}
}

// groupDigits formats an integer with commas between thousands.
func groupDigits(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// formatBytes formats a size in the largest unit that divides it.
func formatBytes(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return groupDigits(n)
}

// formatDuration is Duration.String without trailing zero units: "24h", not
// "24h0m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
