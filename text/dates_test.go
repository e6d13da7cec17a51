package text

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadDates(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	for _, tt := range []struct{ text, from, to string }{
		{"what did i do yesterday?", "2025-06-17", "2025-06-18"},
		{"the day before yesterday we met", "2025-06-16", "2025-06-17"},
		{"what happened on 8 may 2023?", "2023-05-08", "2023-05-09"},
		{"what happened on may 8th, 2023?", "2023-05-08", "2023-05-09"},
		{"in may", "2025-05-01", "2025-06-01"},
		{"may i ask something?", "", ""},
		{"in december", "2024-12-01", "2025-01-01"},
		{"where was i in 2023?", "2023-01-01", "2024-01-01"},
		{"the meeting of 2025-03-05", "2025-03-05", "2025-03-06"},
		{"last week", "2025-06-09", "2025-06-16"},
		{"what did we plan for this week", "2025-06-16", "2025-06-23"},
		{"last month", "2025-05-01", "2025-06-01"},
		{"last year", "2024-01-01", "2025-01-01"},
		{"last weekend", "2025-06-14", "2025-06-16"},
		{"last friday", "2025-06-13", "2025-06-14"},
		{"what was it on monday", "2025-06-16", "2025-06-17"},
		{"last summer", "2024-06-01", "2024-09-01"},
		{"two days ago", "2025-06-16", "2025-06-17"},
		{"3 weeks ago", "2025-05-25", "2025-06-01"},
		{"in the last two weeks", "2025-06-04", "2025-06-19"},
		{"on the 3rd", "2025-06-03", "2025-06-04"},
		{"on the 25th", "2025-05-25", "2025-05-26"},
		{"what is my cat's name?", "", ""},
		{strings.Repeat("x ", 500) + "and what did i say yesterday", "2025-06-17", "2025-06-18"},
	} {
		day := func(d int64) string { return time.Unix(d*86400, 0).UTC().Format(time.DateOnly) }
		got := readDates(tt.text, now, English)
		switch {
		case tt.from == "" && len(got) > 0:
			t.Errorf("%.40q: got %d dates, want none", tt.text, len(got))
		case tt.from != "" && (len(got) != 1 || day(got[0].From) != tt.from || day(got[0].To) != tt.to):
			t.Errorf("%.40q: got %v, want %s to %s", tt.text, got, tt.from, tt.to)
		}
	}
	if got := readDates("yesterday", time.Time{}, English); got != nil {
		t.Errorf("without a clock: got %v, want nothing", got)
	}
}

// A day of the month without a month is the latest that existed.
func TestReadDaysThatFewMonthsHave(t *testing.T) {
	for _, tt := range []struct{ now, text, want string }{
		{"2025-03-05", "on the 31st", "2025-01-31"},
		{"2025-03-05", "on the 29th", "2025-01-29"},
		{"2024-03-05", "on the 29th", "2024-02-29"},
		{"2025-01-05", "on the 31st", "2024-12-31"},
		{"2025-12-31", "on the 31st", "2025-12-31"},
		{"2025-07-01", "on the 31st", "2025-05-31"},
		{"2025-11-22", "on november 28", "2024-11-28"},
		{"2025-11-22", "on november 22", "2025-11-22"},
	} {
		now, err := time.Parse(time.DateOnly, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		got := readDates(tt.text, now, English)
		if len(got) != 1 || got[0].To != got[0].From+1 || time.Unix(got[0].From*86400, 0).UTC().Format(time.DateOnly) != tt.want {
			t.Errorf("%s, said on %s: got %v, want %s", tt.text, tt.now, got, tt.want)
		}
	}
}

// Words that only begin like a month or a weekday give no hints.
func TestNoHintsOfOtherWords(t *testing.T) {
	text := "maybe the friends at the market think of a novel, and decide in a month which passport to separate"
	if got := readTimeHints(text); got != 0 {
		t.Errorf("got %b, want none", got)
	}
}

func TestReadDatesOfOtherLanguages(t *testing.T) {
	now := time.Date(2025, 6, 18, 15, 0, 0, 0, time.UTC) // a Wednesday
	for _, tt := range []struct {
		of             Language
		text, from, to string
	}{
		{German, "was habe ich gestern gesagt?", "2025-06-17", "2025-06-18"},
		{German, "und vorgestern?", "2025-06-16", "2025-06-17"},
		{German, "letzte woche", "2025-06-09", "2025-06-16"},
		{German, "in den letzten monaten", "2025-05-01", "2025-06-01"},
		{German, "vor zwei tagen", "2025-06-16", "2025-06-17"},
		{German, "vor 3 wochen", "2025-05-25", "2025-06-01"},
		{German, "am 14. märz", "2025-03-14", "2025-03-15"},
		{German, "am montag", "2025-06-16", "2025-06-17"},
		{German, "was ist hier los?", "", ""},
		{French, "qu'est-ce que j'ai dit hier ?", "2025-06-17", "2025-06-18"},
		{French, "avant-hier", "2025-06-16", "2025-06-17"},
		{French, "la semaine dernière", "2025-06-09", "2025-06-16"},
		{French, "il y a deux semaines", "2025-06-01", "2025-06-08"},
		{French, "le 3 avril 2024", "2024-04-03", "2024-04-04"},
		{Spanish, "ayer", "2025-06-17", "2025-06-18"},
		{Spanish, "la semana pasada", "2025-06-09", "2025-06-16"},
		{Spanish, "el fin de semana pasado", "2025-06-14", "2025-06-16"},
		{Spanish, "hace una semana", "2025-06-08", "2025-06-15"},
		{Spanish, "el 14 de marzo", "2025-03-14", "2025-03-15"},
		{Italian, "ieri", "2025-06-17", "2025-06-18"},
		{Italian, "l'altro ieri", "2025-06-16", "2025-06-17"},
		{Italian, "due giorni fa", "2025-06-16", "2025-06-17"},
		{Italian, "la settimana scorsa", "2025-06-09", "2025-06-16"},
		{Portuguese, "na semana passada", "2025-06-09", "2025-06-16"},
		{Portuguese, "há duas semanas", "2025-06-01", "2025-06-08"},
		{Portuguese, "ontem", "2025-06-17", "2025-06-18"},
		{Dutch, "vorige week", "2025-06-09", "2025-06-16"},
		{Unknown, "先週何を話しましたか", "2025-06-09", "2025-06-16"},
		{Unknown, "一昨日は？", "2025-06-16", "2025-06-17"},
		{Unknown, "我们昨天聊了什么？", "2025-06-17", "2025-06-18"},
	} {
		day := func(d int64) string { return time.Unix(d*86400, 0).UTC().Format(time.DateOnly) }
		switch got := readDates(tt.text, now, tt.of); {
		case tt.from == "" && len(got) > 0:
			t.Errorf("%q: got %v, want none", tt.text, got)
		case tt.from != "" && (len(got) != 1 || day(got[0].From) != tt.from || day(got[0].To) != tt.to):
			t.Errorf("%q: got %v, want %s to %s", tt.text, got, tt.from, tt.to)
		}
	}
}

// The hints that an analyzer collects word by word are those of the whole text.
func FuzzHintsOfWords(f *testing.F) {
	for _, s := range []string{
		"On 8 May, 2023-05-06", "x_may.sun yes'terday", "2019_x-2020/", strings.Repeat("jan", 40) + " " + strings.Repeat("x", 100) + ".mon", "@[`{AZaz",
		"the 3rd:4th 1,may;2 thi__1999", "what the aI did", "my daughter's dog's DOG l'enfant", "Café on Monday", "ÀÉ 2019-01",
	} {
		f.Add(s)
	}
	an := NewAnalyzer(16)
	var a Analysis
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > MaxText || !IsASCII(s) {
			return
		}
		an.Analyze(s, English, &a)
		if want := readTimeHints(strings.ToLower(s)); a.hints&^hintISO != want&^hintISO || want&^a.hints != 0 {
			t.Errorf("%q: hints %b, want %b", s, a.hints, want)
		}
	})
}

// An expression that the hints rule out would find nothing.
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
		if diff := cmp.Diff(datesOf(s, now, 1<<8-1, English), readDates(s, now, English), cmp.AllowUnexported(Days{})); diff != "" && !strings.Contains(s, "yesterday") {
			t.Errorf("%q: (-all +hinted)\n%s", s, diff)
		}
	})
}
