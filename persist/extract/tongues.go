package extract

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/remora-proxy/remora/text"
)

// What people state of themselves in Italian, Portuguese, Dutch, Russian,
// Arabic and Hindi is read by the patterns of tongues.txt, and by nothing else:
// what they do not recognise makes no fact. A sentence that doubts, supposes,
// wishes or reports makes none either.

//go:embed tongues.txt
var tonguesText string

// tongue is what tongues.txt has of a language.
type tongue struct {
	name     string
	sets     map[string]map[string]bool
	patterns []*pattern
}

// tongues are parsed on first use and never changed.
var tongues = sync.OnceValue(func() map[string]*tongue {
	out := map[string]*tongue{}
	var t *tongue
	of := markFact
	for line := range strings.Lines(tonguesText) {
		line = strings.TrimSpace(line)
		name, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || name == "#":
		case name == "==":
			t = &tongue{name: rest, sets: map[string]map[string]bool{}}
			out[rest] = t
		case line[0] == ':' && rest == "":
			of = markOf(name[1:])
		case line[0] == ':':
			set := map[string]bool{}
			for w := range strings.FieldsSeq(rest) {
				set[unaccented(w)] = true
			}
			t.sets[name[1:]] = set
		default:
			p := parsePattern(t.spell(line), nil)
			p.mark = of
			t.patterns = append(t.patterns, &p)
		}
	}
	return out
})

// spell writes out the sets in a pattern. A set that a language does not have
// holds nothing, and an element of nothing is left out.
func (t *tongue) spell(line string) string {
	fields := strings.Fields(line)
	kept := fields[:0]
	for _, f := range fields {
		alternatives := strings.Split(f, "|")
		var words []string
		optional := strings.HasSuffix(f, "?") && len(f) > 1
		negated := strings.HasPrefix(f, "!")
		for _, a := range alternatives {
			a = strings.TrimPrefix(strings.TrimSuffix(a, "?"), "!")
			if name, ok := strings.CutPrefix(a, "@"); ok {
				for w := range t.sets[name] {
					words = append(words, w)
				}
			} else {
				words = append(words, unaccented(a))
			}
		}
		if len(words) == 0 {
			continue
		}
		f = strings.Join(words, "|")
		if negated {
			f = "!" + f
		}
		if optional {
			f += "?"
		}
		kept = append(kept, f)
	}
	return strings.Join(kept, " ")
}

// unaccented folds a word without the vocabulary, which is made of what is read
// here. Signs of patterns stay.
func unaccented(w string) string {
	if w == "A" {
		return w
	}
	return string(text.AppendFolded(nil, w))
}

// tongueOf returns the language of a sentence if tongues.txt has it.
func tongueOf(s string, ws []word) *tongue {
	all, ascii := tongues(), isASCII(s)
	if !ascii {
		for _, r := range s {
			switch {
			case r < 0x370 || !unicode.IsLetter(r):
			case unicode.Is(unicode.Cyrillic, r):
				return all["ru"]
			case unicode.Is(unicode.Arabic, r):
				return all["ar"]
			case unicode.Is(unicode.Devanagari, r):
				return all["hi"]
			}
		}
	}
	if ascii && slices.ContainsFunc(ws, func(w word) bool { return onlyEnglish[w.folded] || w.raw == "I" }) {
		return nil // spares most sentences the count
	}
	var best *tongue
	most := 0
	for _, l := range latinTongues {
		t, n := all[l.name], 0
		for i := range ws {
			switch {
			case t.has("tell", &ws[i]) && (i == 0 || !capital(ws[i].raw)): // and no name
				n += 2
			case isStop(l.language, &ws[i]), t.has("order", &ws[i]), t.has("hedge", &ws[i]):
				n++
			}
		}
		if n > most {
			best, most = t, n
		}
	}
	if best == nil || mostStops(ws, text.English, text.German, text.French, text.Spanish) >= most {
		return nil
	}
	return best
}

// mostStops returns how many words of a sentence are function words of one of
// these languages.
func mostStops(ws []word, languages ...text.Language) (most int) {
	for _, l := range languages {
		n := 0
		for i := range ws {
			if isStop(l, &ws[i]) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// foreign reports whether a sentence is in a language of which no patterns are
// known.
func foreign(ws []word) bool {
	return mostStops(ws, text.Swedish, text.Danish, text.Norwegian, text.Finnish, text.Turkish, text.Hungarian, text.Romanian) >
		mostStops(ws, text.English, text.German, text.French, text.Spanish)
}

var onlyEnglish = setOf("the and my you this that with have are what where which your our they from would should")

var latinTongues = []struct {
	name     string
	language text.Language
}{{"it", text.Italian}, {"pt", text.Portuguese}, {"nl", text.Dutch}}

func isStop(l text.Language, w *word) bool {
	return text.IsStop(l, strings.ToLower(w.raw)) || text.IsStop(l, w.folded)
}

func (t *tongue) has(set string, w *word) bool { return t.sets[set][w.folded] }

// stated returns the mark of the pattern that matches at ws[at:].
func (t *tongue) stated(ws []word, at int) (mark, bool) {
	for _, p := range t.patterns {
		if match(p.parts, ws[at:]) >= 0 {
			return p.mark, true
		}
	}
	return 0, false
}

// judge classifies a sentence.
func (t *tongue) judge(s string, ws []word) span {
	main := 0
	for main < len(ws)-1 && t.has("lead", &ws[main]) && (ws[main+1].clause || !t.has("no", &ws[main])) {
		main++
	}
	asks := strings.ContainsAny(s[max(0, len(s)-6):], "?؟") || t.has("ask", &ws[main])
	for i := range ws {
		if t.has("hedge", &ws[i]) || (i == main || ws[i].clause) && t.has("when", &ws[i]) {
			if asks {
				return span{reject: RejectQuestion}
			}
			return span{reject: RejectFiction}
		}
	}
	if t.has("order", &ws[main]) {
		return span{reject: RejectCommand}
	}
	// The statement goes up to a clause that asks or orders.
	to := len(ws)
	for i := main + 1; i < len(ws); i++ {
		if ws[i].clause && (t.has("ask", &ws[i]) || t.has("order", &ws[i])) {
			to = i
			break
		}
	}
	if kind, ok := t.stated(ws[:to], main); ok && (!asks || to < len(ws)) && to-main > 1 {
		return span{candidate: cut(s, ws, main, to, kind)}
	}
	switch {
	case asks:
		return span{reject: RejectQuestion}
	case to < len(ws):
		return span{reject: RejectCommand}
	}
	for i := main + 1; i < to; i++ {
		if t.has("no", &ws[i-1]) {
			break
		}
		if ws[i].clause && to-i > 1 {
			if kind, ok := t.stated(ws[:to], i); ok {
				return span{candidate: cut(s, ws, main, to, kind)}
			}
		}
	}
	if kind, ok := t.news(ws[main:]); ok && to == len(ws) {
		return span{candidate: cut(s, ws, main, to, kind)}
	}
	return span{reject: RejectNothing}
}

// news reports whether a sentence that no pattern matches is specific: the
// speaker has done something, or it gives a number.
func (t *tongue) news(ws []word) (kind mark, ok bool) {
	own, specific, number := 0, false, false
	for i := range ws {
		w := &ws[i]
		if strings.ContainsRune(w.raw, '_') || camel(w.raw) || t.has("thing", w) {
			return 0, false
		}
		if w.isContent() {
			own++
		}
		number = number || hasDigit(w.folded)
		specific = specific || number || i > 0 && capital(w.raw)
	}
	if own > 2 && specific && len(ws) > 3 {
		for end := range t.sets["did"] {
			if w := ws[0].folded; len(w) > len(end)+1 && strings.HasSuffix(w, end) || w == end {
				return markFact, true
			}
		}
	}
	return markMatter, own > 3 && number
}

// cut makes a candidate of the words from from to to.
func cut(s string, ws []word, from, to int, kind mark) *Candidate {
	end := len(s)
	if to < len(ws) {
		end = ws[to-1].end
	}
	quote := strings.TrimRight(strings.TrimSpace(s[ws[from].start:end]), "?؟,،;:-– ")
	return &Candidate{Quote: quote, kind: kind, words: words(quote)}
}
