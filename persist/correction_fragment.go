package persist

import (
	"regexp"
	"slices"
	"strings"
)

// A correction may be no sentence: "My budget for the bathroom is 2,000 euros." - "Sorry, 3,000 euros." Then it is the statement before with
// the value replaced, if there can be no doubt which: one statement in the message before, one value of the kind in either, and
// nothing in the correction that the statement does not tell of.

// maxFragment is how many words a correction may have that is none by itself.
const maxFragment = 10

// amount is a number with what is counted: in front of it a currency, or behind it a unit.
var amount = regexp.MustCompile(`[$€£]\s?\d[\d.,]*|\b\d[\d.,]*\s?(?:[€$£%]|[a-zA-Z]{1,12}\b)`)

// mended makes a candidate of the correction that begins the i-th message, nil if there is none or in doubt.
func mended(window []windowMessage, i int) *candidate {
	m := &window[i]
	own := ownWords(m.text)
	s := ""
	for _, s = range sentences(own) {
		break
	}
	s = strings.TrimSpace(s)
	if strings.HasSuffix(s, "?") || frameOf(own) != framePlain {
		return nil
	}
	var space [stackWords]word
	ws := appendWords(space[:0], s)
	if len(ws) > maxFragment {
		return nil
	}
	back, bare := corrects(ws)
	if !back || judge(s).candidate != nil {
		return nil
	}
	if bare {
		if _, asks := askedBefore(window, i); asks {
			return nil
		}
	}
	before := i - 1
	for before >= 0 && !window[before].user {
		before--
	}
	if before < 0 || window[before].speaker != m.speaker {
		return nil
	}
	var old *candidate
	for _, sp := range spansOf(window[before].text, window[before].at, before) {
		if sp.candidate != nil {
			if old != nil {
				return nil
			}
			old = sp.candidate
		}
	}
	if old == nil || old.suspicious || old.remembered {
		return nil
	}
	between := ""
	for _, said := range window[before+1 : i] {
		between += said.text + "\n"
	}
	quote := withValue(old.quote, s, between)
	if quote == "" || withValue(ownWords(window[before].text), s, "") == "" { // what else it tells or asks may be what is meant
		return nil
	}
	known, _ := contentOf(words(quote))
	said, _ := contentOf(ws[mainWord(ws):])
	for _, w := range said {
		if _, ok := slices.BinarySearch(known, w); !ok {
			return nil // about something else
		}
	}
	c := &candidate{quote: quote, kind: old.kind, words: words(quote), at: m.at, message: i, corrects: true}
	c.dates = datesIn(c.words, m.at)
	c.suspicious = instructs(s)
	return c
}

// withValue puts the one value of a correction in the place of the one of its kind in a statement; "" if there is not one of each, or if
// what was said between them has another that it may be about.
func withValue(statement, correction, between string) string {
	values, kind := amounts(correction), amounts
	if dates := days(correction); len(dates) > 0 {
		values, kind = append(values, dates...), days
	}
	old := kind(statement)
	if len(values) != 1 || len(old) != 1 {
		return ""
	}
	from, to := statement[old[0][0]:old[0][1]], correction[values[0][0]:values[0][1]]
	if from == to || counts(from) != counts(to) {
		return ""
	}
	for _, at := range kind(between) {
		if v := between[at[0]:at[1]]; counts(v) == counts(to) && v != from {
			return ""
		}
	}
	return statement[:old[0][0]] + to + statement[old[0][1]:]
}

// amounts are numbers with what they count, and days of a month.
func amounts(s string) (out [][2]int) {
	var space [stackWords]word
	ws := appendWords(space[:0], s)
	for i := range ws {
		switch w := &ws[i]; {
		case lexicon().months[w.folded] && isDay(folded(ws, i+1)):
			out = append(out, [2]int{w.start, ws[i+1].end})
		case lexicon().months[w.folded] && isDay(folded(ws, i-1)):
			out = append(out, [2]int{ws[i-1].start, w.end})
		case smallNumber[w.folded] > 1 && i+1 < len(ws) && !ws[i+1].clause && !ws[i+1].in(inStop):
			out = append(out, [2]int{w.start, ws[i+1].end})
		}
	}
	days := len(out)
	for _, at := range amount.FindAllStringIndex(s, -1) {
		if !slices.ContainsFunc(out[:days], func(o [2]int) bool { return at[0] < o[1] && o[0] < at[1] }) {
			out = append(out, [2]int{at[0], at[1]})
		}
	}
	return out
}

// days are weekdays.
func days(s string) (out [][2]int) {
	for w := range eachWord(s) {
		if lexicon().weekdays[w.folded] {
			out = append(out, [2]int{w.start, w.end})
		}
	}
	return out
}

// counts tells what an amount counts; of a weekday it is nothing.
func counts(value string) string {
	unit := fold(strings.Trim(value, "0123456789., "))
	for w := range strings.FieldsSeq(unit) {
		if lexicon().months[w] {
			return "month"
		}
	}
	if lexicon().weekdays[unit] {
		return ""
	}
	if number, counted, ok := strings.Cut(unit, " "); ok && smallNumber[number] > 1 {
		unit = counted
	}
	return stemmed(unit)
}
