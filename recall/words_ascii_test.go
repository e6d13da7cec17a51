package recall

import (
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/uax29/v2/words"
	"github.com/google/go-cmp/cmp"
)

// FuzzASCIIWords holds the short way of cutting ASCII into words against the long one.
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

// FuzzShortcuts: what reading a text takes from what is known of its words is what the whole text says.
func FuzzShortcuts(f *testing.F) {
	for _, s := range []string{
		"On 8 May, 2023-05-06", "x_may.sun yes'terday", "2019_x-2020/", strings.Repeat("jan", 40) + " " + strings.Repeat("x", 100) + ".mon", "@[`{AZaz",
		"the 3rd:4th 1,may;2 thi__1999", "what the aI did", "my daughter's dog's DOG l'enfant", "Café on Monday", "ÀÉ 2019-01",
	} {
		f.Add(s)
	}
	an := newAnalyzer(16)
	var a analysis
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > maxText {
			return
		}
		an.analyze(s, langEnglish, &a)
		if len(a.terms) != len(a.standing) {
			t.Fatalf("%q: %d terms, %d standings", s, len(a.terms), len(a.standing))
		}
		for i, term := range a.terms {
			if is := a.standing[i]; is != unsure && is != spellings()[term].standing {
				t.Errorf("%q: %q stands at %b", s, term, is)
			}
		}
		lower := strings.ToLower(s)
		if got := string(appendLower([]byte("A"), s, isASCII(s))); got != "A"+lower {
			t.Errorf("%q in lower case is %q", s, got)
		}
		if want := readTimeHints(lower); isASCII(s) && a.hints&^hintISO != want&^hintISO || isASCII(s) && want&^a.hints != 0 {
			t.Errorf("%q: hints %b, want %b", s, a.hints, want)
		}
	})
}

// FuzzStemKnown holds the short way to the stem of a plain word against the long one.
func FuzzStemKnown(f *testing.F) {
	for _, s := range []string{"went", "Running", "BERLIN", "a", "be", "haus", "iPhone", "1abc", "mice"} {
		for l := range languages {
			f.Add(s, uint8(l))
		}
	}
	f.Fuzz(func(t *testing.T, w string, l uint8) {
		if w == "" || !isPlain(w) || len(w) > maxWord {
			return
		}
		if parts := split(w); len(parts) != 1 || parts[0] != w {
			t.Fatalf("%q is split into %q", w, parts)
		}
		w = strings.ToLower(w)
		in := language(l) % languages
		if got, want := stemKnown(in, w, spellings()[w].base), stemIn(in, w); got != want {
			t.Errorf("%q: stem %q, want %q", w, got, want)
		}
	})
}

// FuzzTimeHints: what the hints spare finds nothing.
func FuzzTimeHints(f *testing.F) {
	for _, s := range []string{
		"on 8 may 2023", "may 8th, 2023 or 2025-03-05", "in 2019", "'last week'", "3 weeks ago_", "the day before yesterday", "on the 3rd", "on monday's",
		"this summer", "in the past two months", "\u00ablast year\u00bb", "on the 25th of december",
		"'" + strings.Repeat("u", 29) + "last week",
	} {
		f.Add(s)
	}
	now := time.Date(2025, 6, 18, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToLower(s)
		if diff := cmp.Diff(datesOf(s, now, 1<<8-1, langEnglish), readDates(s, now, langEnglish), cmp.AllowUnexported(days{})); diff != "" && !strings.Contains(s, "yesterday") {
			t.Errorf("%q: (-all +hinted)\n%s", s, diff)
		}
	})
}
