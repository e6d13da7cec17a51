package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/remora-proxy/remora/persist"
)

func TestMarked(t *testing.T) {
	for _, test := range []struct {
		text, query string
		want        []string // those that are hits in brackets
	}{
		{"I keep bees", "", []string{"I keep bees"}},
		{"I keep bees", "at", []string{"I keep bees"}},
		{"I keep bees", "BEE keeping", []string{"I ", "[keep]", " ", "[bees]", ""}},
		{"Zoë’s café", "zoë?", []string{"", "[Zoë]", "’s café"}},
		{"bees\x80\xff bees", "bees", []string{"", "[bees]", "\x80\xff ", "[bees]", ""}},
		{"<b>bees", "<b>", []string{"<b>bees"}},
	} {
		var got []string
		whole := ""
		for _, s := range marked(test.text, test.query) {
			whole += s.Text
			if s.Hit {
				s.Text = "[" + s.Text + "]"
			}
			got = append(got, s.Text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q in %q: %s", test.query, test.text, diff)
		}
		if whole != test.text {
			t.Errorf("%q in %q: the parts are not the text", test.query, test.text)
		}
	}
}

func TestNumbersInWords(t *testing.T) {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct{ got, want string }{
		{group(0), "0"}, {group(999), "999"}, {group(1234567), "1\u202f234\u202f567"}, {group(-1000), "-1\u202f000"},
		{percent(1, 0), "–"}, {percent(0, 5), "0 %"}, {percent(1, 1000), "< 1 %"}, {percent(2, 3), "67 %"},
		{milliseconds(0), "–"}, {milliseconds(250), "0.25 ms"}, {milliseconds(1500), "1.5 ms"}, {milliseconds(12_000), "12 ms"}, {milliseconds(12_300_000), "12.3 s"},
		{size(0), "0 B"}, {size(1023), "1023 B"}, {size(1536), "1.5 KiB"}, {size(20 << 20), "20 MiB"}, {size(1 << 40), "1.0 TiB"},
		{money(0, "USD"), "0.00\u00a0USD"}, {money(12.345, "USD"), "12.35\u00a0USD"}, {money(.0042, "EUR"), "0.0042\u00a0EUR"}, {money(1e-9, "EUR"), "0.000000\u00a0EUR"},
		{plural(1, "memory", "memories"), "1 memory"}, {plural(uint64(0), "memory", "memories"), "0 memories"},
		{ago("2026-03-20T12:00:30Z", now), "just now"}, {ago("2026-03-20T11:30:00Z", now), "30 min ago"}, {ago("2026-03-20T09:00:00Z", now), "3 h ago"},
		{ago("2026-03-19T09:00:00Z", now), "1 day ago"}, {ago("2026-01-02T09:00:00Z", now), "2 Jan 2026"}, {ago("2027-01-02T09:00:00Z", now), "2 Jan 2027"}, {ago("soon", now), "soon"},
		{sentence(""), ""}, {sentence("ärgerlich"), "Ärgerlich."}, {sentence("done."), "Done."},
		{shortID("f123"), "f123"}, {shortID(strings.Repeat("a", 20)), "aaaaaaaaaa…"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// A status that can be chosen, or has a series of its own, has a meaning.
func TestStatusesHaveMeanings(t *testing.T) {
	listed := slices.Clone(liveStatuses)
	for _, s := range statusOrder {
		listed = append(listed, s.status)
	}
	for _, name := range listed {
		if got := statusOf(name); got.Meaning == "" || got.Name != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name := range statuses {
		if name != "off" && !slices.Contains(liveStatuses, name) { // which leaves no receipt
			t.Errorf("%s can't be chosen", name)
		}
	}
}

// Each reason for which a turn is dropped is said in words.
func TestDropsHaveNames(t *testing.T) {
	for why := persist.DropInvalid; why <= persist.DropUsers; why++ {
		if dropNames[why.String()] == "" {
			t.Errorf("%s has no words", why)
		}
	}
}
