// Package updates decides whether what somebody says later changes what they
// said before: "the deadline moved to Friday", "I left Google". It reads words,
// not meanings. Where it is in doubt the earlier statement stands.
//
// Statements share a subject. The later one says that something has become
// different, and gives a value of the same kind, or ends what it names: see
// [Statement.Updates].
package updates

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

const (
	// maxRead is how many bytes of a text are read: who changes something says
	// so in a few words.
	maxRead = 600
	// maxValues bounds the values of a sentence, and maxTerms its terms.
	// Further ones are ignored.
	maxValues = 16
	maxTerms  = 48
)

// Statement is what a text says, as far as it can be changed or change
// something. Its space is used again by the next Read.
type Statement struct {
	text      string
	language  text.Language
	tokens    []text.Token
	sentences []sentence
	terms     []term
	values    []value
}

// sentence is a part of a statement, by indexes.
type sentence struct {
	tokens, terms, values span
	cues                  text.Cue // of all its words
	ends                  bool     // some word ends what it names
	asks                  bool
	sure                  bool     // a word of change is not negated
	may                   bool     // the same, or a word that may be one
	states                text.Cue // in which it puts a person: see readStates
}

type span struct{ from, to int }

// term is a word that tells what the sentence is about.
type term struct {
	text   string
	token  int
	clause int
	name   bool // it has a capital letter inside the sentence
	at     bool // a preposition precedes it, as it does a value
	class  bool // it only says of which class the statement is: "name", "live"
}

type valueKind uint8

const (
	number valueKind = iota
	clock            // a time of day
	day              // of a month
	weekdays
	host // an address, an identifier, a path
)

// value is something that a statement gives.
type value struct {
	kind   valueKind
	what   string // number and host: as it is written
	n      int    // clock, day and weekdays: what it means
	unit   string // number: the term of what is counted
	token  int
	clause int
	aged   bool // number: years of age
}

// Read reads a text with the words of an analyzer. usual is the language in
// which it is if its words don't reveal that.
func (s *Statement) Read(a *text.Analyzer, said string, usual text.Language) {
	if len(said) > maxRead {
		said = strings.ToValidUTF8(said[:maxRead], "")
	}
	if at := strings.LastIndex(said, "\" ["); at > 0 && strings.HasSuffix(said, "]") { // the days that a fact means
		said = said[:at]
	}
	s.text, s.language, s.tokens = a.Tokens(said, usual, s.tokens[:0])
	s.sentences, s.terms, s.values = s.sentences[:0], s.terms[:0], s.values[:0]
	for from := 0; from < len(s.tokens); {
		to := from
		for to < len(s.tokens) && !endsSentence(s, to) {
			to++
		}
		if to > from {
			s.readSentence(from, to)
		}
		from = to + 1
	}
}

// Forget releases the strings of a statement that is used again.
func (s *Statement) Forget() {
	s.text = ""
	clear(s.tokens[:cap(s.tokens)])
	clear(s.terms[:cap(s.terms)])
	clear(s.values[:cap(s.values)])
}

// endsSentence reports whether token i ends a sentence. "22. Oktober" continues.
func endsSentence(s *Statement, i int) bool {
	t := &s.tokens[i]
	if t.Kind < text.SentenceToken {
		return false
	}
	if t.Kind == text.SentenceToken && s.text[t.From] == '.' && i > 0 && i+1 < len(s.tokens) && s.tokens[i-1].To == t.From { // "Dr. Feinberg"
		w := s.raw(i - 1)
		if first, n := utf8.DecodeRuneInString(w); unicode.IsUpper(first) && len(w) > n && len(w) <= 4 && s.tokens[i+1].From <= t.To+1 && !s.isDigits(i-1) {
			return false
		}
	}
	return t.Kind == text.QuestionToken || s.text[t.From] != '.' || i == 0 || !s.isDigits(i-1) || i+1 == len(s.tokens) ||
		s.tokens[i+1].Cue.Month() == 0 && s.tokens[i+1].From != t.To
}

func (s *Statement) raw(i int) string { return s.text[s.tokens[i].From:s.tokens[i].To] }

func (s *Statement) isDigits(i int) bool {
	w := s.raw(i)
	return len(w) <= 4 && strings.Trim(w, "0123456789") == ""
}

func (s *Statement) readSentence(from, to int) {
	covered := 0 // characters up to here belong to words that are no subject
	out := sentence{tokens: span{from, to}, terms: span{len(s.terms), 0}, values: span{len(s.values), 0}}
	out.asks = to < len(s.tokens) && s.tokens[to].Kind == text.QuestionToken
	clause := 0
	for i := from; i < to; i++ {
		t := &s.tokens[i]
		if t.Kind >= text.ClauseToken {
			clause++
			continue
		}
		if out.cues |= t.Cue; i == from && t.Cue&text.CueAlso != 0 { // "also, we moved ..."
			out.cues &^= text.CueAlso
		}
		negated := t.Cue&(text.CueChange|text.CueMore) != 0 && s.near(i, from, to, text.CueNot)
		if t.Cue&text.CueMore != 0 && negated {
			out.ends = true
			t.Cue |= text.CueEnd
		}
		if t.Cue&ending != 0 {
			out.ends = true
		}
		if t.Cue&text.CueChange != 0 && i > from && len(s.tokens[i-1].Terms) > 0 && spans[s.tokens[i-1].Terms[0]] { // "for four weeks now"
			t.Cue &^= text.CueChange
		}
		if t.Cue&text.CueChange != 0 && (t.Cue&ending != 0 || !s.negates(i, from)) {
			out.sure, out.may = true, true
		}
		if t.Cue&text.CueFresh != 0 && !s.negates(i, from) {
			out.may = true
		}
		if n := s.readValue(i, from, to, clause); n > 0 {
			for range n - 1 {
				i++
				out.cues |= s.tokens[i].Cue
			}
			continue
		}
		if t.Kind == text.CharacterToken && t.Cue&notSubject != 0 {
			covered = i + 3 // its pair, and the one across its end
		}
		if t.Kind != text.CharacterToken || i >= covered {
			s.readTerm(i, from, clause, &out)
		}
	}
	out.terms.to, out.values.to = len(s.terms), len(s.values)
	out.states = s.readStates(&out)
	s.sentences = append(s.sentences, out)
}

// spans are units of time: a thing that has been so for some of them has not
// become different.
var spans = text.WordSet("minut hour day week month year while")

// negates reports whether a negation stands right before token i.
func (s *Statement) negates(i, from int) bool {
	for k := i - 1; k >= max(from, i-2); k-- {
		if s.tokens[k].Cue&text.CueNot != 0 {
			return true
		}
	}
	return false
}

// near reports whether a word with a cue is at most four words from token i, in
// its clause.
func (s *Statement) near(i, from, to int, cue text.Cue) bool {
	for _, step := range [...]int{-1, 1} {
		for k, n := i+step, 0; k >= from && k < to && n < 4; k, n = k+step, n+1 {
			if s.tokens[k].Kind >= text.ClauseToken {
				break
			}
			if s.tokens[k].Cue&cue != 0 {
				return true
			}
		}
	}
	return false
}

// notSubject are the cues of words that don't tell what a sentence is about.
const notSubject = text.CueChange | text.CueFresh | text.CueEnd | text.CueInstead | text.CueLeave | text.CueMore | text.CueNot | text.CuePast | text.CueMaybe | text.CueAlso |
	text.CueSelf | text.CueAt

// ending are the cues of words that end something.
const ending = text.CueEnd | text.CueInstead | text.CueLeave

const classes = text.CueHome | text.CueWork | text.CueAge | text.CueTurned | text.CueName | text.CueEat

// readTerm appends the terms of token i.
func (s *Statement) readTerm(i, from, clause int, in *sentence) {
	t := &s.tokens[i]
	if len(t.Terms) == 0 || t.Cue&notSubject != 0 && t.Cue&(classes|text.CueKin|text.CueVeg|text.CueMeat) == 0 || len(s.terms)-in.terms.from >= maxTerms {
		return
	}
	first, _ := utf8.DecodeRuneInString(s.raw(i))
	f := term{text: t.Terms[0], token: i, clause: clause, name: unicode.IsUpper(first) && i > from && (s.tokens[i-1].Kind < text.ClauseToken || s.tokens[i-1].Kind == text.SentenceToken), class: t.Cue&classes != 0}
	if text.IsTimeStem(f.text) {
		return
	}
	for k := i - 1; k >= max(from, i-2) && s.tokens[k].Kind < text.ClauseToken; k-- { // "to the Bahn", "chez la SNCF"
		if s.tokens[k].Cue&text.CueAt != 0 {
			f.at = true
		} else if len(s.tokens[k].Terms) == 0 {
			continue
		}
		break
	}
	if !f.at && f.name && len(s.terms) > in.terms.from { // "to Yorkshire Organic"
		if before := &s.terms[len(s.terms)-1]; before.name && before.token == i-1 {
			f.at = before.at
		}
	}
	s.terms = append(s.terms, f)
	if len(t.Terms) > 1 {
		for _, part := range t.Terms[1:] {
			if len(s.terms)-in.terms.from < maxTerms {
				f.text = part
				s.terms = append(s.terms, f)
			}
		}
	}
}

// readValue appends the value that begins with token i and returns how many
// tokens it has, 0 if none begins there.
func (s *Statement) readValue(i, from, to, clause int) int {
	t := &s.tokens[i]
	w := s.raw(i)
	v := value{token: i, clause: clause}
	add := func(tokens int) int {
		n := len(s.values)
		if len(s.sentences) > 0 {
			if n-s.sentences[len(s.sentences)-1].values.to >= maxValues {
				return tokens
			}
		} else if n >= maxValues {
			return tokens
		}
		s.values = append(s.values, v)
		return tokens
	}
	cueAt := func(k int) text.Cue {
		if k < from || k >= to || s.tokens[k].Kind >= text.ClauseToken {
			return 0
		}
		return s.tokens[k].Cue
	}
	if d := t.Cue.Weekday(); d > 0 {
		v.kind, v.n = weekdays, 1<<d
		n := 1
		if t.Kind == text.CharacterToken { // 周三, 星期三
			n = 2
			if strings.HasPrefix(s.text[t.From:], "星期") {
				n = 3
			}
		}
		n = min(n, to-i)
		if k := len(s.values) - 1; k >= 0 && s.values[k].kind == weekdays && i-s.values[k].token <= 3 && (len(s.sentences) == 0 || k >= s.sentences[len(s.sentences)-1].values.to) { // "Tuesday and Thursday"
			s.values[k].n |= v.n
			s.values[k].token = i
			return n
		}
		return add(n)
	}
	if m := t.Cue.Month(); m > 0 {
		next := i + 1
		if d, ok := s.dayAt(next, to); ok {
			v.kind, v.n = day, m<<5|d
			return add(next + 1 - i)
		}
		if unicode.IsLower(rune(w[0])) && cueAt(i-1)&text.CueAt == 0 { // "I may ..."
			return 0
		}
		v.kind, v.n = day, m<<5
		return add(1)
	}
	if t.Kind == text.WordToken && t.Cue.Count() > 1 {
		v.setNumber(s, strconv.Itoa(t.Cue.Count()), i+1, to)
		return add(1)
	}
	if w[0] < '0' || w[0] > '9' {
		if len(t.Terms) > 1 && strings.ContainsAny(w, "._") && !strings.Contains(w, "'") {
			v.kind, v.what = host, strings.ToLower(w)
			return add(1)
		}
		return 0
	}
	if d, ok := s.dayAt(i, to); ok {
		k := i + 1
		if k < to && s.tokens[k].Kind == text.SentenceToken { // "22. Oktober"
			k++
		}
		for skipped := 0; k < to && skipped < 2 && s.tokens[k].Cue&text.CueAt != 0; skipped++ {
			k++
		}
		if k < to {
			if m := s.tokens[k].Cue.Month(); m > 0 {
				v.kind, v.n = day, m<<5|d
				return add(k + 1 - i)
			}
		}
	}
	if i+1 < to && (s.raw(i+1) == "月" || s.raw(i+1) == "월") { // 11月6日
		m, _ := strconv.Atoi(w)
		v.kind, v.n = day, (m&15)<<5
		if d, ok := s.dayAt(i+2, to); ok {
			v.n |= d
			n := 3
			if i+3 < to && (s.raw(i+3) == "日" || s.raw(i+3) == "일" || s.raw(i+3) == "号" || s.raw(i+3) == "號") {
				n++
			}
			return add(n)
		}
		return add(2)
	}
	if m, ok := strings.CutSuffix(w, "월"); ok && len(m) <= 2 { // 11월 6일
		n, _ := strconv.Atoi(m)
		v.kind, v.n = day, (n&15)<<5
		if i+1 < to {
			if d, _ := strconv.Atoi(leadingDigits(s.raw(i + 1))); d > 0 && d < 32 {
				v.n |= d
				return add(2)
			}
		}
		return add(1)
	}
	if i+2 < to && s.tokens[i+1].Kind == text.ClauseToken && s.text[s.tokens[i+1].From] == ':' && s.tokens[i+1].From == t.To && s.tokens[i+2].From == t.To+1 && s.isDigits(i) && s.isDigits(i+2) {
		hour, _ := strconv.Atoi(w)
		minute, _ := strconv.Atoi(s.raw(i + 2))
		v.kind, v.n = clock, hour*60+minute
		return add(3)
	}
	if len(w) == 4 && (w[:2] == "19" || w[:2] == "20") && s.isDigits(i) { // a year
		return 1
	}
	v.setNumber(s, strings.ReplaceAll(strings.TrimRight(w, ".,"), ",", "."), i+1, to)
	return add(1)
}

// dayAt reads the day of a month at token i: "6", "16th".
func (s *Statement) dayAt(i, to int) (int, bool) {
	if i >= to {
		return 0, false
	}
	w := s.raw(i)
	digits := strings.TrimRight(w, "thsndrºªe")
	if len(digits) > 2 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	d, _ := strconv.Atoi(digits)
	return d, d > 0 && d < 32
}

// setNumber makes v a number with what it counts, if that follows at token next.
func (v *value) setNumber(s *Statement, what string, next, to int) {
	v.kind, v.what = number, what
	if n := leadingDigits(what); len(n) > 0 && len(n) < len(what) { // "5km", "4시에"
		if v.what, v.unit = n, what[len(n):]; v.unit[0] >= utf8.RuneSelf {
			_, size := utf8.DecodeRuneInString(v.unit)
			v.unit = v.unit[:size]
		}
		return
	}
	if from := s.tokens[next-1].From; from > 0 {
		if before, _ := utf8.DecodeLastRuneInString(s.text[:from]); unicode.Is(unicode.Sc, before) {
			v.unit = string(before)
			return
		}
	}
	if next >= to {
		return
	}
	switch t := &s.tokens[next]; {
	case t.Cue&text.CueAge != 0:
		v.aged = true
	case t.Kind == text.CharacterToken:
		v.unit = s.raw(next)
	case t.Kind == text.WordToken && len(t.Terms) > 0 && t.Cue&(notSubject&^text.CueSelf) == 0 && !text.IsTimeStem(t.Terms[0]):
		v.unit = t.Terms[0]
	}
}

// leadingDigits returns the number with which a word begins.
func leadingDigits(w string) string {
	rest := strings.TrimLeft(w, "0123456789.")
	return strings.TrimRight(w[:len(w)-len(rest)], ".")
}

// Changing reports whether some sentence may change another statement.
func (s *Statement) Changing() bool {
	for i := range s.sentences {
		if in := &s.sentences[i]; in.may || in.ends || s.classOf(in) != 0 {
			return true
		}
	}
	return false
}

// Sole reports whether a statement is one sentence that gives at most one value
// of each kind, so that nothing of it holds once it is changed.
func (s *Statement) Sole() bool {
	if len(s.sentences) != 1 {
		return false
	}
	var seen [host + 1]bool
	for i := range s.values {
		if seen[s.values[i].kind] {
			return false
		}
		seen[s.values[i].kind] = true
	}
	return true
}
