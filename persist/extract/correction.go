package extract

import (
	"regexp"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/text"
)

// correctionPrefix returns how many words at the start of ws say that something
// said before was wrong, 0 if none do.
func correctionPrefix(ws []word) int {
	if n := phrases().correction.prefix(ws); n > 0 {
		return n
	}
	if ws[0].in(inCorrecting) && (len(ws) == 1 || ws[1].clause || ws[1].in(inCorrecting)) {
		return 1
	}
	return 0
}

// bareNo words take something back, and they also answer questions.
var bareNo = setOf("no nein nee non")

// corrects reports whether a sentence begins by taking something back, and
// whether a "no" is all that does.
func corrects(ws []word) (back, bare bool) {
	for i := 0; i < len(ws); {
		no := bareNo[ws[i].folded]
		if n := correctionPrefix(ws[i:]); n > 0 && (n > 1 || !no) {
			return true, false
		} else if n == 0 && !ws[i].in(inLead) {
			break
		} else if n > 0 || no && i == 0 && i+1 < len(ws) && ws[i+1].clause {
			back = true
		}
		i++
	}
	return back, back
}

// maxAsked bounds the content words of a question that are kept: its last ones.
const maxAsked = 64

// precedingQuestion returns the content words of what the message before
// window[i] asks, sorted. asks is false where it asks nothing. What is not in
// the window, or not to its end, may ask anything.
func precedingQuestion(window []Message, i int) (words []string, asks bool) {
	if i == 0 || len(window[i-1].Text) > MaxAssistantText-4 {
		return nil, true
	}
	if window[i-1].User {
		return nil, false
	}
	var space [stackWords]word
	for _, s := range text.Sentences(window[i-1].Text) {
		if strings.HasSuffix(strings.TrimRight(s, `"')]*_ `), "?") {
			content, _ := contentOf(appendWords(space[:0], s))
			for _, w := range content {
				words = append(words, strings.Clone(w)) // kept for longer than the message
			}
			asks = true
		}
	}
	words = words[max(0, len(words)-maxAsked):]
	slices.Sort(words)
	return words, asks
}

// A correction may be no sentence: "My budget for the bathroom is 2,000 euros."
// - "Sorry, 3,000 euros." Then it is the statement before with the value
// replaced, if it is clear which: there is one statement in the message before,
// one value of that kind in either, and nothing in the correction that the
// statement does not speak of.

// maxFragment is the largest number of words in a correction that is no
// sentence.
const maxFragment = 10

// amountPattern is a number with what is counted: a currency before it, or a
// unit behind it.
var amountPattern = regexp.MustCompile(`[$€£]\s?\d[\d.,]*|\b\d[\d.,]*\s?(?:[€$£%]|[a-zA-Z]{1,12}\b)`)

// fragmentCorrection makes a candidate of the fragment that begins window[i]
// and corrects the statement before, nil if there is none or it is ambiguous.
func fragmentCorrection(window []Message, i int) *Candidate {
	m := &window[i]
	own := ownWords(m.Text)
	s := ""
	for _, s = range text.Sentences(own) {
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
		if _, asks := precedingQuestion(window, i); asks {
			return nil
		}
	}
	before := i - 1
	for before >= 0 && !window[before].User {
		before--
	}
	if before < 0 || window[before].Speaker != m.Speaker {
		return nil
	}
	var old *Candidate
	for _, sp := range spansOf(window[before].Text, window[before].Time, before) {
		if sp.candidate != nil {
			if old != nil {
				return nil
			}
			old = sp.candidate
		}
	}
	if old == nil || old.Suspicious || old.Requested {
		return nil
	}
	between := ""
	for _, said := range window[before+1 : i] {
		between += said.Text + "\n"
	}
	quote := replaceValue(old.Quote, s, between)
	if quote == "" || replaceValue(ownWords(window[before].Text), s, "") == "" { // the rest of the message may be meant
		return nil
	}
	known, _ := contentOf(words(quote))
	main, _ := mainWord(ws)
	said, _ := contentOf(ws[main:])
	if shared(said, known) < len(said) {
		return nil // about something else
	}
	c := &Candidate{Quote: quote, kind: old.kind, words: words(quote), Time: m.Time, Message: i, Suspicious: instructs(s)}
	c.Corrects = true
	c.dates = datesIn(c.words, m.Time)
	return c
}

// replaceValue replaces the one value in a statement by the one value of its
// kind in a correction. It returns "" if there is not one of each, or if the
// text between them holds another that may be meant.
func replaceValue(statement, correction, between string) string {
	values, find := amounts(correction), amounts
	if dates := weekdays(correction); len(dates) > 0 {
		values, find = append(values, dates...), weekdays
	}
	old := find(statement)
	if len(values) != 1 || len(old) != 1 {
		return ""
	}
	from, to := statement[old[0][0]:old[0][1]], correction[values[0][0]:values[0][1]]
	if from == to || unitOfAmount(from) != unitOfAmount(to) {
		return ""
	}
	for _, at := range find(between) {
		if v := between[at[0]:at[1]]; unitOfAmount(v) == unitOfAmount(to) && v != from {
			return ""
		}
	}
	return statement[:old[0][0]] + to + statement[old[0][1]:]
}

// amounts finds numbers with what they count, and days of a month.
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
	for _, at := range amountPattern.FindAllStringIndex(s, -1) {
		if !slices.ContainsFunc(out[:days], func(o [2]int) bool { return at[0] < o[1] && o[0] < at[1] }) {
			out = append(out, [2]int{at[0], at[1]})
		}
	}
	return out
}

func weekdays(s string) (out [][2]int) {
	for w := range eachWord(s) {
		if lexicon().weekdays[w.folded] {
			out = append(out, [2]int{w.start, w.end})
		}
	}
	return out
}

// unitOfAmount returns what an amount counts, "" for a weekday.
func unitOfAmount(value string) string {
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
