package query

import (
	"slices"
	"time"

	"github.com/remora-proxy/remora/text"
)

// "What did we do yesterday?" asks for what was said then, whatever it was
// about. None of its words is searched for: "last week" occurs in texts of any
// time.

// maxTimeTerms is the maximum number of terms of such a question.
const maxTimeTerms = 6

// timeStems are stems of questions about a time, besides the words that name
// one.
var timeStems = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range [...]string{"day", "past", "may", "other", "st", "nd", "rd", "th", "decide", "agree", "chat"} {
		m[text.Stem(text.English, w)] = true
	}
	return m
}()

// pastWords occur in questions about the past. "What should I do this week?"
// and "what do I have on Friday?" have none.
var pastWords = text.WordSet("did was were had happened")

// asksAboutPast reports whether a question in lower case is about the past.
func asksAboutPast(lower []byte) bool {
	var before []byte
	for rest := lower; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		if pastWords[string(w)] || string(before) == "have" && (string(w) == "we" || string(w) == "i" || string(w) == "you") {
			return true
		}
		before = w
	}
	return false
}

// AsksToKnow reports whether an English question is about the past or about a
// number, for which no constraint matters.
func (q *Query) AsksToKnow() bool {
	return q.Asks && q.Language <= text.English && (q.Intent&(WantsNumber|WantsAdvice) == WantsNumber || asksAboutPast(q.Lower))
}

// OnlyTime reports whether a question names days of the past, and nothing else
// that could be searched for.
func (q *Query) OnlyTime(now time.Time) bool {
	if !q.Asks || len(q.Dates) == 0 {
		return false
	}
	if q.Language != text.English {
		if only, telling := text.NamesOnlyTime(string(q.Lower), q.Language); only {
			today := text.DayOf(now.UTC())
			if telling || !slices.ContainsFunc(q.Dates, func(d text.Days) bool { return d.To > today }) {
				return true
			}
		}
	}
	if today := text.DayOf(now.UTC()); !asksAboutPast(q.Lower) && (!hasSayingVerb(q.Lower) || slices.ContainsFunc(q.Dates, func(d text.Days) bool { return d.To > today })) {
		return false
	}
	own := 0
	for _, t := range q.Terms {
		if t.Borrowed {
			continue
		}
		if own++; own > maxTimeTerms || !text.IsTimeStem(t.Stem) && !timeStems[t.Stem] && t.Role&(IsLight|OfRequest) == 0 && !IsDigit(t.Stem[0]) {
			return false
		}
	}
	return true
}
