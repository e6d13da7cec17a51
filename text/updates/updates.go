package updates

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// Weights of what two statements must have in common, as shares of the weight
// of their terms.
const (
	// minShare is the least share of either statement's terms if they have
	// several in common, minSoleShare if they have one.
	minShare     = 0.3
	minSoleShare = 0.4
	// minPairShare is minShare for pairs of characters, of which many are
	// endings.
	minPairShare = 0.2
	// sameShare is the share of both at which one that says that something has
	// changed is about the same, whatever the value: "Chess is my favourite
	// game", "my favourite game is now backgammon".
	sameShare = 0.6
	// rareShare is the share of the weight of an unknown term that a rare one
	// has. What many statements have in common says little about two of them.
	rareShare = 0.55
	// maxNaming is the number of terms of a sentence in which any name may be
	// the value.
	maxNaming = 8
	// maxStanding is the number of words of a statement that may be one of a
	// class alone: "I'm at Meta now".
	maxStanding = 9
)

// Weigh returns how much a term tells, as its idf, and for "" how much an unknown
// one does. It is called if two sentences have a term in common.
type Weigh func(term string) float64

// Updates reports whether n, which is said later, changes what o says. A nil
// weigh gives all terms the same weight.
func (n *Statement) Updates(o *Statement, weigh Weigh) bool {
	if weigh == nil {
		weigh = func(string) float64 { return 1 }
	}
	for i := range n.sentences {
		sn := &n.sentences[i]
		if !n.means(sn) {
			continue
		}
		for k := range o.sentences {
			so := &o.sentences[k]
			if so.asks || so.cues&(text.CueMaybe|text.CuePast) != 0 {
				continue
			}
			p := pair{n: n, o: o, sn: sn, so: so}
			if n.changesState(o, sn, so) {
				return true
			}
			p.share(weigh)
			if p.changes() {
				return true
			}
		}
	}
	return false
}

// means reports whether a sentence is meant as said: no question, supposition
// or history, and nothing that only adds.
func (n *Statement) means(s *sentence) bool {
	return !s.asks && s.cues&(text.CueMaybe|text.CuePast) == 0 && (s.cues&text.CueAlso == 0 || s.ends)
}

// pair is a sentence of the later statement and one of the earlier.
type pair struct {
	n, o   *Statement
	sn, so *sentence
	shared []int // terms of n's sentence that o's has
	weight float64
	floor  float64 // weight of a rare term
	weigh  Weigh
	ofN    float64 // share of n's terms
	ofO    float64
	common bool // one of them may be no name
	rare   bool // one of them is rare
}

func (s *Statement) termsOf(in *sentence) []term { return s.terms[in.terms.from:in.terms.to] }

func (s *Statement) valuesOf(in *sentence) []value { return s.values[in.values.from:in.values.to] }

// has returns the first term of a sentence with this text, or nil.
func (s *Statement) has(in *sentence, word string) *term {
	terms := s.termsOf(in)
	for i := range terms {
		if terms[i].text == word {
			return &terms[i]
		}
	}
	return nil
}

// share finds the terms that both sentences have.
func (p *pair) share(weigh Weigh) {
	var ofN, ofO float64
	p.floor, p.weigh = rareShare*weigh(""), weigh
	terms := p.n.termsOf(p.sn)
	if !slices.ContainsFunc(terms, func(t term) bool { return !t.class && p.o.has(p.so, t.text) != nil }) {
		return
	}
	for i := range terms {
		t := &terms[i]
		if t.class || isRepeated(terms[:i], t.text) {
			continue
		}
		w := weigh(t.text)
		other := p.o.has(p.so, t.text)
		if other == nil {
			if !t.name || !t.at { // what it changes to
				ofN += w
			}
			continue
		}
		ofN += w
		p.shared = append(p.shared, i)
		p.weight += w
		p.rare = p.rare || w >= p.floor
		p.common = p.common || !t.name && !other.name || p.n.language == text.German // where all nouns have a capital letter
	}
	others := p.o.termsOf(p.so)
	for i := range others {
		if t := &others[i]; !t.class && !isRepeated(others[:i], t.text) && !(t.name && p.n.has(p.sn, t.text) == nil) {
			ofO += weigh(t.text)
		}
	}
	if ofN > 0 && ofO > 0 {
		p.ofN, p.ofO = p.weight/ofN, p.weight/ofO
	}
}

func isRepeated(before []term, word string) bool {
	for i := range before {
		if before[i].text == word {
			return true
		}
	}
	return false
}

// changes decides for statements that have terms in common.
func (p *pair) changes() bool {
	if len(p.shared) == 0 {
		return false
	}
	if p.ended() {
		return true
	}
	if !p.sn.may || !p.rare || p.others() {
		return false
	}
	enough := max(p.ofN, p.ofO) >= minShare || p.pairs() && max(p.ofN, p.ofO) >= minPairShare
	if len(p.shared) == 1 {
		enough = p.sn.sure && max(p.ofN, p.ofO, p.clauseShare()) >= minSoleShare
	}
	if !enough {
		return false
	}
	if gives, differs := p.compareValues(); gives {
		return differs && p.n.setsGoal(p.sn) == p.o.setsGoal(p.so)
	}
	if !p.common || !p.sn.sure { // about the same person, maybe
		return false
	}
	return p.otherNames() || len(p.shared) > 1 && p.ofN >= sameShare && p.ofO >= sameShare && p.ofN+p.ofO < 2
}

// pairs reports whether the shared terms are pairs of characters.
func (p *pair) pairs() bool {
	return len(p.shared) > 1 && p.n.tokens[p.n.termsOf(p.sn)[p.shared[0]].token].Kind == text.CharacterToken
}

// clauseShare returns the share of the shared terms in those of their clause.
func (p *pair) clauseShare() float64 {
	terms := p.n.termsOf(p.sn)
	clause, n := terms[p.shared[0]].clause, 0
	for i := range terms {
		if terms[i].clause == clause && !terms[i].class {
			n++
		}
	}
	return 1 / float64(max(n, 1))
}

// ended reports whether the later sentence ends something that the earlier one
// says: "I left Google", "instead of Jest", "no longer eat gluten".
func (p *pair) ended() bool {
	if !p.sn.ends || p.so.cues&text.CueNot != 0 || p.so.ends || p.others() {
		return false
	}
	terms := p.n.termsOf(p.sn)
	for i := p.sn.tokens.from; i < p.sn.tokens.to; i++ {
		cue := p.n.tokens[i].Cue
		if cue&ending == 0 || cue&text.CueMore == 0 && p.n.negates(i, p.sn.tokens.from) {
			continue
		}
		for _, k := range p.shared {
			t := &terms[k]
			named := t.name || p.o.has(p.so, t.text).name || !isCased(t.text)
			if cue&(text.CueEnd|text.CueInstead) == 0 && !named || cue&text.CueEnd == 0 && cue&text.CueInstead != 0 && t.token < i && isCased(t.text) || p.weigh(t.text) < p.floor {
				continue
			}
			if cue&(text.CueEnd|text.CueInstead) == 0 && t.token < i && isCased(t.text) && p.n.namesAfter(p.sn, i) {
				continue // who left is not what was left
			}
			if !p.endsTerm(i, t) {
				continue
			}
			if between := p.n.contentBetween(i, t.token); between == 0 || between == 1 && cue&text.CueEnd != 0 && !(isCased(t.text) && t.token > i && p.n.atBetween(i, t.token)) {
				return true
			}
		}
	}
	return false
}

// namesAfter reports whether a name follows token i.
func (s *Statement) namesAfter(in *sentence, i int) bool {
	terms := s.termsOf(in)
	for k := range terms {
		if t := &terms[k]; t.name && t.token > i && s.contentBetween(i, t.token) == 0 {
			return true
		}
	}
	return false
}

// isCased reports whether the script of a word has capital letters.
func isCased(w string) bool {
	r, _ := utf8.DecodeRuneInString(w)
	return unicode.IsLower(r) || unicode.IsUpper(r)
}

// contentBetween counts the terms between two tokens; each clause counts as
// two.
func (s *Statement) contentBetween(a, b int) (n int) {
	a, b = min(a, b), max(a, b)
	for i := a + 1; i < b; i++ {
		switch t := &s.tokens[i]; {
		case t.Kind >= text.ClauseToken:
			n += 2
		case t.Kind == text.CharacterToken:
			if i%4 == 0 { // a word has about two
				n++
			}
		case len(t.Terms) > 0 && t.Cue&(notSubject|classes) == 0:
			n++
		}
	}
	return n
}

// others reports whether the sentences are about different persons or things:
// "my sister" and "my brother", "the dentist appointment" and "the allergist
// appointment".
func (p *pair) others() bool {
	switch a, b := p.n.kinOf(p.sn), p.o.kinOf(p.so); {
	case a != "" && b != "" && a != b && !p.sharesPerson(),
		a != "" && b == "" && p.so.cues&text.CueSelf != 0,
		a == "" && b != "" && p.sn.cues&text.CueSelf != 0 && !p.sharesPerson():
		return true
	}
	if p.otherDoer() {
		return true
	}
	a, sameA := p.n.person(p.sn, p.o, p.so)
	b, sameB := p.o.person(p.so, p.n, p.sn)
	if a != "" && b != "" && !sameA && !sameB {
		return true
	}
	terms := p.n.termsOf(p.sn)
	for _, k := range p.shared { // what stands before the shared word tells which it is
		t := &terms[k]
		other := p.o.has(p.so, t.text)
		if t.name && t.at || other.name && other.at {
			continue
		}
		x, y := p.n.qualifier(p.sn, t), p.o.qualifier(p.so, other)
		if x != "" && y != "" && x != y && p.o.has(p.so, x) == nil && p.n.has(p.sn, y) == nil {
			return true
		}
	}
	return false
}

// sharesPerson reports whether a shared term is a name, and not one after a
// preposition.
func (p *pair) sharesPerson() bool {
	terms := p.n.termsOf(p.sn)
	for _, k := range p.shared {
		if t := &terms[k]; t.name || t.token == p.sn.tokens.from {
			if o := p.o.has(p.so, t.text); !t.at && !o.at {
				return true
			}
		}
	}
	return false
}

// person returns a name of a sentence that may be that of whom it is about, and
// whether the other sentence has such a name, too.
func (s *Statement) person(in *sentence, other *Statement, of *sentence) (name string, same bool) {
	if name = s.opening(in); name != "" && other.has(of, name) != nil {
		return name, true
	}
	if s.language == text.German { // all nouns have a capital letter
		return name, false
	}
	terms := s.termsOf(in)
	for i := range terms {
		if t := &terms[i]; t.name && !t.at && !t.class {
			if other.has(of, t.text) != nil {
				return t.text, true
			}
			name = t.text
		}
	}
	return name, false
}

// kinOf returns the first word of a sentence for a person by a relation.
func (s *Statement) kinOf(in *sentence) string {
	for i := in.tokens.from; i < in.tokens.to; i++ {
		switch t := &s.tokens[i]; {
		case t.Cue&text.CueKin == 0:
		case len(t.Terms) > 0 && t.Kind == text.WordToken:
			return t.Terms[0]
		default:
			return s.raw(i)
		}
	}
	return ""
}

// opening returns the term of a name that begins a sentence and does something:
// "Wesley now has soccer on Friday".
func (s *Statement) opening(in *sentence) string {
	i := in.tokens.from
	if i+1 >= in.tokens.to || len(s.tokens[i].Terms) == 0 || s.tokens[i].Cue&(notSubject|classes) != 0 {
		return ""
	}
	if first, _ := utf8.DecodeRuneInString(s.raw(i)); !unicode.IsUpper(first) {
		return ""
	}
	w := s.raw(i)
	if strings.HasSuffix(w, "'s") || strings.HasSuffix(w, "’s") {
		return s.tokens[i].Terms[0]
	}
	next := i + 1
	for next+1 < in.tokens.to && s.tokens[next].Cue&text.CueChange != 0 {
		next++
	}
	switch strings.ToLower(s.raw(next)) {
	case "has", "had", "hat", "tiene", "ha", "tem", "heeft", "goes", "does":
		return s.tokens[i].Terms[0]
	}
	return ""
}

// qualifier returns the term that stands right before one, or "".
func (s *Statement) qualifier(in *sentence, t *term) string {
	i := t.token - 1
	if i < in.tokens.from || s.tokens[i].Kind != text.WordToken || len(s.tokens[i].Terms) == 0 || s.tokens[i].Cue&^text.CueKin != 0 || s.text[s.tokens[i].From] <= '9' {
		return ""
	}
	return s.tokens[i].Terms[0]
}

// compareValues compares the values of one kind. gives reports whether both
// sentences have such, differs whether the later one's are others.
func (p *pair) compareValues() (gives, differs bool) {
	for i := range p.n.valuesOf(p.sn) {
		v := &p.n.valuesOf(p.sn)[i]
		old := p.counterpart(v)
		if old == nil {
			continue
		}
		gives = true
		if !p.repeated(v) {
			differs = true
		}
	}
	return gives, differs
}

// repeated reports whether the earlier sentence has the same value.
func (p *pair) repeated(v *value) bool {
	for i := range p.o.valuesOf(p.so) {
		if w := &p.o.valuesOf(p.so)[i]; w.kind == v.kind && w.what == v.what && w.n == v.n {
			return true
		}
	}
	return false
}

// counterpart returns the value of the earlier sentence that is of the kind of
// v: the one next to a term that both have.
func (p *pair) counterpart(v *value) (best *value) {
	nearest := 1 << 30
	for i := range p.o.valuesOf(p.so) {
		w := &p.o.valuesOf(p.so)[i]
		if !p.comparable(v, w) {
			continue
		}
		if d := p.distance(w); d < nearest {
			best, nearest = w, d
		}
	}
	return best
}

// distance returns how far a value of the earlier sentence is from a term that
// both have. Other clauses are farther than any word of its own.
func (p *pair) distance(v *value) int {
	nearest := 1 << 29
	terms := p.n.termsOf(p.sn)
	for _, k := range p.shared {
		t := p.o.has(p.so, terms[k].text)
		d := max(v.token-t.token, t.token-v.token)
		if t.clause != v.clause {
			d += 1 << 16
		}
		nearest = min(nearest, d)
	}
	return nearest
}

func (p *pair) comparable(v, w *value) bool {
	if v.kind != w.kind {
		days := func(k valueKind) bool { return k == day || k == weekdays }
		times := func(v *value) bool { return v.kind == clock || v.kind == number && v.unit == "" && len(v.what) <= 2 }
		return p.common && (days(v.kind) && days(w.kind) || (v.kind == clock || w.kind == clock) && times(v) && times(w))
	}
	if !p.common && (v.kind != number || v.unit == "" || v.unit != w.unit) {
		return false
	}
	if v.kind != number {
		return true
	}
	switch {
	case v.unit == w.unit:
		return v.unit != "" || p.sn.sure
	case v.unit == "":
		return p.n.has(p.sn, w.unit) != nil || p.o.has(p.so, w.unit) == nil || p.ofN >= 0.5
	case w.unit == "":
		return p.o.has(p.so, v.unit) != nil
	}
	return false
}

// otherNames reports whether the later sentence puts a name where the earlier
// one has another: "flour now comes from Yorkshire", "from Hartley".
func (p *pair) otherNames() bool {
	fresh := func(s *Statement, in *sentence, than *Statement, of *sentence) bool {
		terms := s.termsOf(in)
		for i := range terms {
			if t := &terms[i]; t.at && !t.class && (t.name || !isCased(t.text)) && than.has(of, t.text) == nil {
				return true
			}
		}
		return false
	}
	name := func(s *Statement, in *sentence) bool {
		terms := s.termsOf(in)
		for i := range terms {
			if t := &terms[i]; t.name && !t.class && (t.at || len(terms) <= maxNaming) {
				return true
			}
		}
		return false
	}
	return fresh(p.n, p.sn, p.o, p.so) && name(p.o, p.so)
}
