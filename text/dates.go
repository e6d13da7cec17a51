package text

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Days is a range of days, counted from 1970-01-01 in UTC: From inclusive, To
// exclusive.
type Days struct{ From, To int64 }

// DayOf returns the day of a time in its own zone, as Days counts them.
func DayOf(t time.Time) int64 {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400
}

const monthNames = `january|february|march|april|may|june|july|august|september|october|november|december`

var (
	// 8 May 2023, 8th of May, May 8th, 2023, May 2023, May
	dateInWords = regexp.MustCompile(`\b(?:(\d{1,2})(?:st|nd|rd|th)? (?:of )?)?(` + monthNames + `)\b(?: (\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? ((?:19|20)\d\d)\b)?`)
	isoDate     = regexp.MustCompile(`\b((?:19|20)\d\d)[-/](\d{1,2})(?:[-/](\d{1,2}))?\b`)
	yearAlone   = regexp.MustCompile(`\b(?:in|of|during|since|back in) ((?:19|20)\d\d)\b`)
	// Without a day or a year, May is the month only after one of these.
	mayIsMonth = regexp.MustCompile(`(?:in|early|late|mid|last|this|since|until|of|during) $`)
	agoPhrase  = regexp.MustCompile(`\b(a|an|one|two|three|four|five|six|\d{1,2}) (day|week|month|year)s? ago\b`)
	lastNth    = regexp.MustCompile(`\b(?:last|past) (two|three|four|five|six|\d{1,2}) (day|week|month|year)s\b`)
	thisOrLast = regexp.MustCompile(`\b(this|last|past) (week|weekend|month|year|summer|winter|spring|fall|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`)
	onWeekday  = regexp.MustCompile(`\bon (monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b`)
	onTheNth   = regexp.MustCompile(`\bon the (\d{1,2})(?:st|nd|rd|th)\b`)
	counts     = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
)

// maxDates is the most time expressions that are read of one text.
const maxDates = 8

// readDates returns the days that a lower-case text names, said at a time in a
// language. If the year is missing it is the latest that isn't in the future.
func readDates(text string, now time.Time, of Language) []Days {
	if now.IsZero() {
		return nil
	}
	return datesOf(text, now.UTC(), readTimeHints(text), of)
}

func datesOf(text string, now time.Time, hints timeHints, of Language) []Days {
	if hints == 0 && of == English {
		return nil
	}
	r := dateReader{now: now, today: DayOf(now), hints: hints}
	if of != English {
		if r.otherLanguages(text, of); len(r.found) > 0 {
			return r.found
		}
	}
	r.absolute(text)
	if len(r.found) == 0 && hints&hintYear != 0 {
		for _, m := range yearAlone.FindAllStringSubmatch(text, maxDates) {
			y, _ := strconv.Atoi(m[1])
			r.span(time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC), 1, 0, 0)
		}
	}
	r.relative(text)
	return r.found[:min(len(r.found), maxDates)]
}

// timeHints are cheap necessary conditions for the expressions. Nearly every
// text lacks them, so the expressions are seldom tried.
type timeHints uint8

const (
	hintMonth     timeHints = 1 << iota // a month's name
	hintISO                             // a year followed by a dash or a slash
	hintYear                            // a year
	hintNth                             // a word that begins with a digit
	hintAgo                             // ago
	hintLast                            // last, past, this
	hintWeekday                         // a weekday's name
	hintYesterday                       // a word that begins like yesterday
)

func readTimeHints(text string) (found timeHints) {
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || isDigit(text[i])) {
			i++
		}
		w := text[start:i]
		if w == "" {
			continue
		}
		if isDigit(w[0]) {
			found |= hintNth
			if isYear(w) {
				found |= hintYear
				if i < len(text) && (text[i] == '-' || text[i] == '/') {
					found |= hintISO
				}
			}
			continue
		}
		switch w {
		case "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december":
			found |= hintMonth
		case "ago":
			found |= hintAgo
		case "last", "past", "this":
			found |= hintLast
		case "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
			found |= hintWeekday
		default:
			if strings.HasPrefix(w, "yes") {
				found |= hintYesterday
			}
		}
	}
	return found
}

type dateReader struct {
	now   time.Time
	today int64
	found []Days
	hints timeHints
}

func (r *dateReader) has(h timeHints) bool { return r.hints&h != 0 }

func (r *dateReader) add(from, to int64) { r.found = append(r.found, Days{from, to}) }

func (r *dateReader) span(from time.Time, years, months, d int) {
	r.add(DayOf(from), DayOf(from.AddDate(years, months, d)))
}

func (r *dateReader) absolute(text string) {
	for _, m := range r.inWords(text) {
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		day, name, after, year := group(1), group(2), group(3), group(4)
		if name == "may" && day == "" && after == "" && year == "" && !mayIsMonth.MatchString(text[:m[4]]) {
			continue
		}
		if day == "" {
			day = after
		}
		month := time.January
		for !strings.EqualFold(month.String(), name) {
			month++
		}
		y, _ := strconv.Atoi(year)
		r.ofMonth(y, int(month), day)
	}
	if !r.has(hintISO) {
		return
	}
	for _, m := range isoDate.FindAllStringSubmatch(text, maxDates) {
		y, _ := strconv.Atoi(m[1])
		if month, _ := strconv.Atoi(m[2]); month >= 1 && month <= 12 {
			r.date(y, time.Month(month), m[3])
		}
	}
}

func (r *dateReader) inWords(text string) [][]int {
	if !r.has(hintMonth) {
		return nil
	}
	return dateInWords.FindAllStringSubmatchIndex(text, maxDates)
}

// ofMonth adds a day of a month, or the month if there is no day. Without a
// year it is the latest that isn't in the future.
func (r *dateReader) ofMonth(y, month int, day string) {
	if y == 0 {
		y = r.now.Year()
		if d, _ := strconv.Atoi(day); month > int(r.now.Month()) || month == int(r.now.Month()) && d > r.now.Day() {
			y--
		}
	}
	r.date(y, time.Month(month), day)
}

func (r *dateReader) date(y int, month time.Month, day string) {
	if d, _ := strconv.Atoi(day); d >= 1 && d <= 31 {
		r.span(time.Date(y, month, d, 0, 0, 0, 0, time.UTC), 0, 0, 1)
		return
	}
	r.span(time.Date(y, month, 1, 0, 0, 0, 0, time.UTC), 0, 1, 0)
}

func (r *dateReader) relative(text string) {
	if r.has(hintYesterday) {
		if strings.Contains(text, "the day before yesterday") {
			r.add(r.today-2, r.today-1)
		} else if strings.Contains(text, "yesterday") {
			r.add(r.today-1, r.today)
		}
	}
	for _, m := range r.find(hintAgo, agoPhrase, text, " ago") {
		n, ok := counts[m[1]]
		if !ok {
			n, _ = strconv.Atoi(m[1])
		}
		r.ago(n, slices.Index(agoUnits[:], m[2]))
	}
	for _, m := range r.find(hintLast, lastNth, text, "last ", "past ") {
		n, ok := counts[m[1]]
		if !ok {
			n, _ = strconv.Atoi(m[1])
		}
		from := map[string]time.Time{"day": r.now.AddDate(0, 0, -n), "week": r.now.AddDate(0, 0, -7*n), "month": r.now.AddDate(0, -n, 0),
			"year": r.now.AddDate(-n, 0, 0)}[m[2]]
		r.add(DayOf(from), r.today+1)
	}
	for _, m := range r.find(hintLast, thisOrLast, text, "last ", "past ", "this ") {
		r.named(m[2], m[1] != "this")
	}
	for _, m := range r.find(hintWeekday, onWeekday, text, "day") {
		r.named(m[1], true)
	}
	for _, m := range r.find(hintNth, onTheNth, text, "on the ") {
		if d, _ := strconv.Atoi(m[1]); d >= 1 && d <= 31 {
			month := r.now.Month()
			if d > r.now.Day() {
				month--
			}
			t := time.Date(r.now.Year(), month, d, 0, 0, 0, 0, time.UTC)
			if t.Day() != d { // that month has no such day, so the month before does
				t = time.Date(r.now.Year(), month-1, d, 0, 0, 0, 0, time.UTC)
			}
			r.span(t, 0, 0, 1)
		}
	}
}

var agoUnits = [...]string{unitDay: "day", unitWeek: "week", unitMonth: "month", unitYear: "year"}

// ago adds the days around n units ago: more of them the longer ago it is.
func (r *dateReader) ago(n, unit int) {
	switch unit {
	case unitDay:
		r.add(r.today-int64(n), r.today-int64(n)+1)
	case unitWeek:
		r.add(r.today-int64(n)*7-3, r.today-int64(n)*7+4)
	case unitMonth:
		r.span(r.now.AddDate(0, -n, -10), 0, 0, 20)
	case unitYear:
		r.span(r.now.AddDate(-n, -3, 0), 0, 6, 0)
	}
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || isDigit(c) || c >= utf8.RuneSelf || c == '\''
}

// find matches an expression around the first occurrence of each of its rarest
// literals. To run it over a whole message would cost more than the rest of
// reading it.
func (r *dateReader) find(hint timeHints, e *regexp.Regexp, text string, literals ...string) (found [][]string) {
	if !r.has(hint) {
		return nil
	}
	const before, after = 24, 32
	for _, l := range literals {
		i := strings.Index(text, l)
		if i < 0 {
			continue
		}
		from := max(i-before, 0)
		for from > 0 && from < i && isWordByte(text[from-1]) {
			from++
		}
		from = max(from-1, 0) // the byte before decides whether a word begins
		found = append(found, e.FindAllStringSubmatch(text[from:min(i+after, len(text))], maxDates)...)
	}
	return found
}

// named adds this or the last week, weekend, month, year, season or weekday.
func (r *dateReader) named(what string, last bool) {
	monday := r.today - int64(r.now.Weekday()+6)%7
	back := int64(0)
	if last {
		back = 1
	}
	switch what {
	case "week":
		r.add(monday-7*back, monday-7*back+7)
	case "weekend":
		saturday := monday + 5
		if last || saturday > r.today {
			saturday -= 7
		}
		r.add(saturday, saturday+2)
	case "month":
		r.span(time.Date(r.now.Year(), r.now.Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC), 0, 1, 0)
	case "year":
		r.span(time.Date(r.now.Year()-int(back), 1, 1, 0, 0, 0, 0, time.UTC), 1, 0, 0)
	case "spring", "summer", "fall", "autumn", "winter":
		month := map[string]time.Month{"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}[what]
		t := time.Date(r.now.Year(), month, 1, 0, 0, 0, 0, time.UTC)
		for t.After(r.now) || last && t.AddDate(0, 3, 0).After(r.now) {
			t = t.AddDate(-1, 0, 0)
		}
		r.span(t, 0, 3, 0)
	default: // a weekday: the latest before today
		for d := r.today - 1; d >= r.today-7; d-- {
			if strings.EqualFold(time.Unix(d*86400, 0).UTC().Weekday().String(), what) {
				r.add(d, d+1)
			}
		}
	}
}
