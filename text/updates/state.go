package updates

import (
	"strings"

	"github.com/remora-proxy/remora/text"
)

// Statements of a class are about the same without a word in common: where
// somebody lives and works, how old they are and what they are called, with
// whom they live and what they eat.

// relations are states of which one holds at a time.
const relations = text.CueSingle | text.CuePartner | text.CueApart

// Class returns the cues of the classes of which a statement is, if it is short
// and the speaker's own. A later statement of the class may change it without a
// word in common.
func (s *Statement) Class() (all text.Cue) {
	for i := range s.sentences {
		all |= s.classOf(&s.sentences[i])
	}
	return all
}

func (s *Statement) classOf(in *sentence) text.Cue {
	if in.asks || in.cues&(text.CueMaybe|text.CuePast) != 0 {
		return 0
	}
	return in.cues&(text.CueHome|text.CueWork|text.CueAge|text.CueTurned|text.CueName) | in.states
}

// changesState reports whether one sentence puts another state of its class in
// the place of the other's.
func (n *Statement) changesState(o *Statement, sn, so *sentence) bool {
	class := o.classOf(so)
	if class == 0 || !samePerson(n, o, sn, so) {
		return false
	}
	not := sn.cues&text.CueNot != 0
	switch a, b := class&relations, sn.states&relations; {
	case a == 0 || b == 0 || so.cues&text.CueNot != 0:
	case a&b == 0 && !not, a&b != 0 && sn.ends && not:
		return true
	}
	eats := func(s *sentence) bool { return s.states&text.CueMeat != 0 && s.cues&text.CueNot == 0 }
	veg := func(s *sentence) bool { return s.states&text.CueVeg != 0 && s.cues&text.CueNot == 0 }
	switch {
	case veg(so) && (eats(sn) || sn.states&text.CueVeg != 0 && not && sn.ends), eats(so) && (veg(sn) || sn.ends && sn.states&text.CueMeat != 0):
		return true
	}
	if a, b := n.age(sn), o.age(so); a != "" && b != "" && a != b {
		return true
	}
	if class&text.CueName != 0 && sn.cues&text.CueName != 0 && !not {
		if a, b := n.givenName(sn), o.givenName(so); a != "" && b != "" && a != b {
			return true
		}
	}
	if !sn.sure || not || so.cues&text.CueNot != 0 {
		return false
	}
	if class&text.CueHome != 0 && sn.cues&text.CueHome != 0 && sameDoer(n, o, sn, so, text.CueHome) && n.placesElse(sn, o, so, false) {
		return true
	}
	if class&text.CueWork == 0 {
		return false
	}
	return n.standsAt(sn) && o.doer(so, text.CueWork) == speaker && n.placesElse(sn, o, so, false) ||
		sn.cues&text.CueWork != 0 && sameDoer(n, o, sn, so, text.CueWork) && n.placesElse(sn, o, so, true)
}

// sameDoer reports whether both sentences say of one person where they live or
// work.
func sameDoer(n, o *Statement, sn, so *sentence, class text.Cue) bool {
	switch a, b := n.doer(sn, class), o.doer(so, class); {
	case a == noSubject || b == noSubject:
		return false
	case a == speaker && b == speaker:
		return true
	}
	return n.kinOf(sn) != "" && o.kinOf(so) != "" || n.namesPersonOf(sn, o, so)
}

// samePerson reports whether both sentences are of the speaker, or of a person
// that both name.
func samePerson(n, o *Statement, sn, so *sentence) bool {
	a, b := n.kinOf(sn), o.kinOf(so)
	if a != "" || b != "" {
		return a != "" && b != "" && (a == b || n.has(sn, b) != nil || o.has(so, a) != nil) || n.namesPersonOf(sn, o, so)
	}
	if sn.cues&text.CueSelf != 0 && so.cues&text.CueSelf != 0 {
		return true
	}
	if self := sn.cues | so.cues; self&text.CueSelf == 0 { // Spanish, Japanese and others leave it out
		return n.namesPersonOf(sn, o, so) || n.subject(sn) == "" && o.subject(so) == ""
	}
	return n.subject(sn) == "" && o.subject(so) == "" && len(n.tokens) <= 3*maxStanding
}

// namesPersonOf reports whether both sentences have a name in common that is no
// value.
func (n *Statement) namesPersonOf(sn *sentence, o *Statement, so *sentence) bool {
	terms := n.termsOf(sn)
	for i := range terms {
		t := &terms[i]
		if w := o.has(so, t.text); w != nil && !t.class && !t.at && !w.at && (t.name || w.name || i == 0) {
			return true
		}
	}
	return false
}

// subject returns the first name of a sentence that no preposition precedes, as
// a person who does something.
func (s *Statement) subject(in *sentence) string {
	terms := s.termsOf(in)
	for i := range terms {
		t := &terms[i]
		if s.tokens[t.token].Cue&(text.CueHome|text.CueWork) != 0 { // what follows is where
			break
		}
		if !t.at && !t.class && (t.name || t.token == in.tokens.from) {
			return t.text
		}
	}
	return ""
}

// age returns the age that a sentence gives, or "".
func (s *Statement) age(in *sentence) string {
	if in.cues&(text.CueAge|text.CueTurned) == 0 {
		return ""
	}
	for i := range s.valuesOf(in) {
		v := &s.valuesOf(in)[i]
		if v.kind != number || len(v.what) > 3 {
			continue
		}
		if who, _, _ := s.subjectOf(in, v.token); who == noSubject && s.tokens[v.token].Kind == text.WordToken && s.language == text.English {
			continue
		}
		if v.aged || v.unit == "" && v.token > in.tokens.from && s.tokens[v.token-1].Cue&text.CueTurned != 0 {
			return v.what
		}
	}
	return ""
}

// givenName returns the words that a sentence gives as a name, or "" if it is
// about another name than the speaker's: "the name of my dog".
func (s *Statement) givenName(in *sentence) string {
	var name []string
	begun := false // a name before "called" is of what is called so
	terms := s.termsOf(in)
	for i := range terms {
		switch t := &terms[i]; {
		case t.class:
			begun = true
		case t.name && !begun && s.language == text.English:
			return ""
		case t.name || !isCased(t.text):
			name = append(name, t.text)
		default:
			return ""
		}
	}
	return strings.Join(name, " ")
}

// standsAt reports whether a sentence says in a few words that the speaker is
// at a place with a name now: "I'm at Meta now".
func (s *Statement) standsAt(in *sentence) bool {
	if in.tokens.to-in.tokens.from > maxStanding || in.cues&text.CueSelf == 0 || !in.sure {
		return false
	}
	terms := s.termsOf(in)
	for i := range terms {
		if t := &terms[i]; !t.at || !t.name || venues[t.text] || i == 0 && (t.token == 0 || !attended[s.folded(t.token-1)]) {
			return false
		}
	}
	return len(terms) > 0 && len(terms) <= 2
}

// placesElse reports whether a sentence names a place that the earlier one does
// not name, after a preposition where the language has them; if it employs, one
// that may precede an employer: "at Bosch", not "on Windows".
func (n *Statement) placesElse(sn *sentence, o *Statement, so *sentence, employs bool) bool {
	moves := false
	for i := sn.tokens.from; i < sn.tokens.to; i++ {
		moves = moves || n.tokens[i].Cue&text.CueChange != 0 && n.tokens[i].Cue&(text.CueHome|text.CueWork) != 0
	}
	terms := n.termsOf(sn)
	for i := range terms {
		t := &terms[i]
		if employs && t.at && isCased(t.text) && !n.isEmployer(sn, t) {
			continue
		}
		if (t.name && (t.at || moves) || !isCased(t.text)) && !t.class && o.has(so, t.text) == nil {
			return true
		}
	}
	return false
}

// isEmployer reports whether the preposition of a term may be that of an
// employer.
func (s *Statement) isEmployer(in *sentence, t *term) bool {
	for k := t.token - 1; k >= max(in.tokens.from, t.token-4); k-- {
		if s.tokens[k].Cue&text.CueAt != 0 {
			w := s.folded(k)
			return employers[w] && (w != "in" || s.language != text.English)
		}
	}
	return false
}
