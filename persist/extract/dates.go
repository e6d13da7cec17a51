package extract

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// dated is a date that a text names relative to when it was said.
type dated struct {
	start, end int // bytes of the text
	day        time.Time
	what       string // "day", "week", "month" or "year"
}

// note returns the words with the date that they mean.
func (d dated) note(text string) string {
	layout := map[string]string{"day": "Monday 2006-01-02", "month": "January 2006", "year": "2006"}[d.what]
	if d.what == "week" {
		return text[d.start:d.end] + " = week of " + d.day.Format("2006-01-02")
	}
	return text[d.start:d.end] + " = " + d.day.Format(layout)
}

var weekdayOf = numbered(
	"sunday sonntag dimanche domingo sun", "monday montag lundi lunes mon", "tuesday dienstag mardi martes tue", "wednesday mittwoch mercredi miercoles wed",
	"thursday donnerstag jeudi jueves thu", "friday freitag vendredi viernes fri", "saturday samstag samedi sabado sat")

var monthOf = text.Months()

var smallNumber = numbered("", "one a an ein einem einer un une una", "two zwei deux dos", "three drei trois tres", "four vier quatre cuatro",
	"five funf cinq cinco", "six sechs seis", "seven sieben sept siete", "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez")

// dateWords are all words at which datesIn starts.
var dateWords = func() map[string]bool {
	set := setOf("tomorrow demain manana morgen ubermorgen today tonight heute aujourd'hui hoy yesterday gestern hier ayer in dans en" +
		comingWords + weekWords + monthWords + yearWords + dayWords)
	for _, m := range []map[string]int{weekdayOf, monthOf} {
		for w := range m {
			set[w] = true
		}
	}
	return set
}()

func numbered(rows ...string) map[string]int {
	m := map[string]int{}
	for i, row := range rows {
		for _, w := range strings.Fields(row) {
			m[w] = i
		}
	}
	return m
}

const (
	comingWords = " next kommenden kommender kommende nachsten nachster nachste nachstes prochain prochaine proximo proxima "
	recurring   = " every each jeden jede jedes chaque cada tous todos immer "
	weekWords   = " week weeks woche wochen semaine semaines semana semanas "
	monthWords  = " month months monat monate monaten mois mes meses "
	yearWords   = " year years jahr jahre jahren an ans annee ano anos "
	dayWords    = " day days tag tage tagen jour jours dia dias "
)

func among(list, w string) bool { return strings.Contains(list, " "+w+" ") }

// datesIn finds the dates that ws name relative to at: tomorrow, next Friday,
// in two weeks, 3 March. A weekday is the next one to come; "next" with a
// weekday is in the following week, as most speakers mean it. Days are in UTC.
// Recurring days ("every Friday", "on Fridays") do not count.
func datesIn(ws []word, at time.Time) []dated {
	var out []dated
	today := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	add := func(from, to int, day time.Time, what string) {
		if n := len(out); n > 0 && out[n-1].end > ws[from].start {
			return
		}
		out = append(out, dated{ws[from].start, ws[to].end, day, what})
	}
	for i := range ws {
		if !ws[i].in(inDates) {
			continue
		}
		w := ws[i].folded
		switch w {
		case "tomorrow", "demain", "manana":
			if folded(ws, i-1) == "la" || folded(ws, i-1) == "por" { // in the morning
				continue
			}
			add(i, i, today.AddDate(0, 0, 1), "day")
		case "morgen":
			if folded(ws, i-1) != "guten" {
				add(i, i, today.AddDate(0, 0, 1), "day")
			}
		case "ubermorgen":
			add(i, i, today.AddDate(0, 0, 2), "day")
		case "today", "tonight", "heute", "aujourd'hui", "hoy":
			add(i, i, today, "day")
		case "yesterday", "gestern", "hier", "ayer":
			add(i, i, today.AddDate(0, 0, -1), "day")
		}
		if day, ok := weekdayOf[w]; ok && !among(recurring, folded(ws, i-1)) && utf8.RuneCountInString(w) > 3 {
			if nearMonth(ws, i) { // "Friday, 13 March": the date follows from the month
				continue
			}
			if to, number := dayOfMonthAfter(ws, i); number > 0 {
				if date, ok := nextDate(today, time.Weekday(day), number); ok {
					add(i, to, date, "day")
				}
				continue
			}
			from, to := i, i
			ahead := (day - int(today.Weekday()) + 7) % 7
			if ahead == 0 {
				ahead = 7
			}
			switch {
			case among(" next nachsten nachster nachste ", folded(ws, i-1)):
				from, ahead = i-1, daysToNextWeek(today, day)
			case among(" prochain proximo ", folded(ws, i+1)):
				to = i + 1
			case among(" proximo kommenden this diesen coming ", folded(ws, i-1)):
				from = i - 1
			case among(" last letzten ", folded(ws, i-1)):
				from, ahead = i-1, ahead-7
			case among(" dernier pasado ", folded(ws, i+1)):
				to, ahead = i+1, ahead-7
			}
			if ahead < 0 || from < i || to > i || !isPast(ws, i) {
				add(from, to, today.AddDate(0, 0, ahead), "day")
			}
		}
		unit, n := "", 0
		switch {
		case among(comingWords, w) && i+1 < len(ws):
			unit, n = unitOf(folded(ws, i+1)), 1
			if unit != "" && unit != "day" {
				add(i, i+1, ahead(today, unit, n), unit)
			}
		case unitOf(w) != "" && unitOf(w) != "day" && among(" prochain prochaine proximo proxima ", folded(ws, i+1)):
			add(i, i+1, ahead(today, unitOf(w), 1), unitOf(w))
		case unitOf(w) != "" && folded(ws, i+1) == "que" && folded(ws, i+2) == "viene":
			add(i, i+2, ahead(today, unitOf(w), 1), unitOf(w))
		case among(" in dans en ", w):
			count := smallNumber[folded(ws, i+1)]
			if count == 0 {
				count, _ = strconv.Atoi(folded(ws, i+1))
			}
			unit = unitOf(folded(ws, i+2))
			if unit != "" && count > 0 && count < 1000 {
				add(i, i+2, ahead(today, unit, count), unit)
			}
		}
		if month, ok := monthOf[w]; ok && capital(ws[i].raw) || ok && (folded(ws, i-1) == "de" || isDay(folded(ws, i-1))) {
			from, to, day := i, i, 0
			if d := dayOf(folded(ws, i-1)); d > 0 {
				from, day = i-1, d
			} else if d := dayOf(folded(ws, i-2)); d > 0 && (folded(ws, i-1) == "of" || folded(ws, i-1) == "de") {
				from, day = i-2, d
			} else if d := dayOf(folded(ws, i+1)); d > 0 {
				to, day = i+1, d
			}
			if day == 0 {
				continue
			}
			year := today.Year()
			if y, err := strconv.Atoi(folded(ws, to+1)); err == nil && y > 1900 && y < 2200 {
				continue // it names the year
			}
			date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
			past := isPast(ws, from)
			if date.Before(today.AddDate(0, 0, -60)) && !past { // long past: next year is meant
				date = time.Date(year+1, time.Month(month), day, 0, 0, 0, 0, time.UTC)
			}
			if date.Day() != day { // the month has no such day
				continue
			}
			if past && date.After(today) { // last year's, or the day that something was booked for
				continue
			}
			add(from, to, date, "day")
		}
	}
	return out
}

// nearMonth reports whether a weekday is next to a month with a day: "Friday,
// March 13", "13. März, ein Freitag".
func nearMonth(ws []word, weekday int) bool {
	for i := max(weekday-3, 0); i < min(weekday+5, len(ws)); i++ {
		if monthOf[ws[i].folded] > 0 && (isDay(folded(ws, i-1)) || isDay(folded(ws, i+1)) || isDay(folded(ws, i-2))) {
			return true
		}
	}
	return false
}

// dayOfMonthAfter returns the day of the month that follows a weekday, and its
// index: "Monday the 28th", "Montag, den 28.", "lunes 28".
func dayOfMonthAfter(ws []word, weekday int) (at, day int) {
	at = weekday + 1
	article := among(" the den dem der le el ", folded(ws, at))
	if article {
		at++
	}
	if day = dayOf(folded(ws, at)); day == 0 {
		return 0, 0
	}
	ordinal := strings.TrimLeft(ws[at].folded, "0123456789") != ""
	if next := folded(ws, at+1); !article && !ordinal && next != "" && !ws[at+1].clause && !ws[at+1].in(inConjunctions) {
		return 0, 0 // "on Monday 3 people come"
	}
	return at, day
}

// nextDate returns the first day from today on that is this weekday and day of
// the month, within a year.
func nextDate(today time.Time, weekday time.Weekday, day int) (time.Time, bool) {
	for month := range 12 {
		date := time.Date(today.Year(), today.Month()+time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if date.Day() == day && date.Weekday() == weekday && !date.Before(today) {
			return date, true
		}
	}
	return time.Time{}, false
}

// daysToNextWeek returns how many days ahead that weekday of next week is.
// Weeks begin on Monday.
func daysToNextWeek(today time.Time, day int) int {
	monday := (8 - int(today.Weekday())) % 7
	if monday == 0 {
		monday = 7
	}
	return monday + (day+6)%7
}

func ahead(today time.Time, unit string, n int) time.Time {
	switch unit {
	case "week":
		today = today.AddDate(0, 0, 7*n)
		return today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	case "month":
		return time.Date(today.Year(), today.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	case "year":
		return today.AddDate(n, 0, 0)
	}
	return today.AddDate(0, 0, n)
}

func unitOf(w string) string {
	switch {
	case w == "":
		return ""
	case among(weekWords, w):
		return "week"
	case among(monthWords, w):
		return "month"
	case among(yearWords, w):
		return "year"
	case among(dayWords, w):
		return "day"
	}
	return ""
}

func isDay(w string) bool { return dayOf(w) > 0 }

// dayOf reads 3, 3rd, 21st as days of a month; 0 means that w is none.
func dayOf(w string) int {
	for _, s := range [...]string{"st", "nd", "rd", "th", "er"} {
		w = strings.TrimSuffix(w, s)
	}
	if len(w) == 0 || len(w) > 2 {
		return 0
	}
	n, err := strconv.Atoi(w)
	if err != nil || n < 1 || n > 31 {
		return 0
	}
	return n
}
