package extract

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed phrases.txt
var phrasesText string

// phraseSet is a list of phrases by their first word.
type phraseSet map[string][][]string

// phrases are the lists of phrases.txt.
var phrases = sync.OnceValue(func() (p struct {
	declined, fiction, imagined, tale, playBegins, playEnds, override, correction phraseSet
}) {
	sections := map[string]*phraseSet{
		"declined": &p.declined, "fiction": &p.fiction, "imagined": &p.imagined, "tale": &p.tale, "playBegins": &p.playBegins, "playEnds": &p.playEnds,
		"override": &p.override, "correction": &p.correction,
	}
	var set phraseSet
	for line := range strings.Lines(phrasesText) {
		switch ws := strings.Fields(line); {
		case len(ws) == 0 || ws[0] == "#":
		case ws[0][0] == ':':
			set = phraseSet{}
			*sections[ws[0][1:]] = set
		default:
			set[ws[0]] = append(set[ws[0]], ws)
		}
	}
	return p
})

// prefix returns how many words of ws the first phrase has that they begin
// with, 0 if they begin with none.
func (p phraseSet) prefix(ws []word) int {
	for _, phrase := range p[ws[0].folded] {
		if begins(ws, phrase) {
			return len(phrase)
		}
	}
	return 0
}

// beginsClause reports whether a clause of ws, greetings skipped, begins with
// one of the phrases.
func (p phraseSet) beginsClause(ws []word) bool {
	for i := range ws {
		if startsClause(ws, i) && p.prefix(ws[i:]) > 0 {
			return true
		}
	}
	return false
}

// startsClause reports whether ws[i] begins a clause, or follows a greeting or
// conjunction.
func startsClause(ws []word, i int) bool {
	return i == 0 || ws[i].clause || ws[i-1].in(inLead|inConjunctions)
}

// begins reports whether ws begin with the words of a phrase.
func begins(ws []word, phrase []string) bool {
	return len(ws) >= len(phrase) && slices.EqualFunc(ws[:len(phrase)], phrase, func(w word, p string) bool { return w.folded == p })
}
