package text

import (
	"strings"
	"testing"

	"github.com/clipperhouse/uax29/v2/words"
	"github.com/google/go-cmp/cmp"
)

// FuzzASCIIWords compares asciiWord to UAX #29.
func FuzzASCIIWords(f *testing.F) {
	for _, s := range []string{
		"The quick  brown fox.", "can't won't 'tis o'clock'", "a_b __x x_ _1", "3.14 1,000 1;2 a.b a:b 1:2 a,b 1.a a.1", "\r\n\n\r\v\f\t x",
		"user_service.go v2.3 10.0.0.1:8080", "a..b 1..2 a.'b", "\x00\x7f!\"#$%&()*+-/<=>?@[]^`{|}~", "\"a\"b\" a_.b 1_'2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.Map(func(r rune) rune { return r & 0x7f }, s)
		var want, got []string
		for it := words.FromString(s); it.Next(); {
			want = append(want, it.Value())
		}
		for rest := s; rest != ""; {
			n := asciiWord(rest)
			got = append(got, rest[:n])
			rest = rest[n:]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: (-uax29 +ours)\n%s", s, diff)
		}
	})
}
