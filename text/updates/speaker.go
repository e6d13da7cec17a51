package updates

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// A word of a class counts only where it says something of its subject: "I'm
// single", but not "single quotes"; "I moved to Leeds", but not "our office
// moved to Leeds".

// subjectKind is who is the grammatical subject of a word.
type subjectKind uint8

const (
	noSubject subjectKind = iota // nobody that counts
	speaker
	named // a person by name or by relation
)

// states are the cues of classes that need a predicate.
const states = relations | text.CueVeg | text.CueMeat

var (
	subjects = text.WordSet(`i im ive we weve were ich wir je j nous yo nosotros nosotras io noi eu nos ik wij jag vi jeg
		я мы أنا انا نحن मैं हम ben biz`)
	// copulas connect a subject with what it is, verbs only with what it does.
	copulas = text.WordSet(`am are been be get got went gone become became turned stay bin sind wurde werde bleibe lebe suis sommes deviens devenu
		devenue soy estoy somos estamos me nos sono siamo mi ci diventato diventata sou estou ben zijn werd uns mich ar er blev ble`)
	verbs = text.WordSet(`have had has just recently habe haben hatte gerade ai avons he hemos hecho ho abbiamo tenho tengo temos tenemos heb hebben
		has hat ist is do did don't started start begin began also y en ne se s ma mi lho fait faite officially happily finally soon still currently`)
	articles = text.WordSet("a an ein eine un une una um uma een")
	// ownVerbs are of the first person, where the subject is left out.
	ownVerbs = text.WordSet(`vivo vivimos habito trabajo trabajamos mude mudamos mudei moro moramos abito abitiamo viviamo lavoro lavoriamo trabalho trabalhamos
		como comemos comemos mangio mangiamo vuelvo volvemos torno`)
	employers = text.WordSet("at for by bei beim fur chez pour en na no em para in da alla per voor bij в у на عند في لدى من")
	attended  = text.WordSet("at bei beim chez bij presso")
	venues    = text.WordSet("starbucks starbuck mcdonald mcdonalds burger ikea costco walmart target lidl aldi rewe edeka carrefour heathrow disneyland disney")
	notPeople = []string{"公司", "办公室", "辦公室", "会社", "オフィス", "事務所", "회사", "사무실", "我的", "我们的", "私の", "僕の", "저의", "나의"}
)

// folded returns token i as the words above are written.
func (s *Statement) folded(i int) string {
	return strings.ReplaceAll(string(text.AppendFolded(nil, s.raw(i))), "’", "'")
}

// subjectOf returns who is the subject of token i, whether a copula connects
// them, and whether an article precedes it.
func (s *Statement) subjectOf(in *sentence, i int) (who subjectKind, copula, article bool) {
	if s.tokens[i].Kind == text.CharacterToken {
		said := s.text[s.tokens[in.tokens.from].From:s.tokens[in.tokens.to-1].To]
		for _, w := range notPeople {
			if strings.Contains(said, w) {
				return noSubject, false, false
			}
		}
		return speaker, true, false
	}
	w := s.folded(i)
	if before, _, ok := strings.Cut(w, "'"); ok && subjects[before] { // j'habite
		return speaker, true, false
	}
	verbFinal := s.language == text.German || s.language == text.Dutch
	free := isFree(s.language)
	own := ownVerbs[w]
	for k := i - 1; k >= in.tokens.from && s.tokens[k].Kind < text.ClauseToken; k-- {
		t, w := &s.tokens[k], s.folded(k)
		before, after, contracted := strings.Cut(w, "'")
		switch {
		case subjects[before] && contracted:
			return speaker, copula || after == "m" || after == "re" || after == "ve", article
		case subjects[w] && (w != "were" && w != "nos" && w != "ben" || k == in.tokens.from):
			return speaker, copula || w == "nos", article
		case copulas[w]:
			copula = true
			own = own || s.language != text.English && w != "ar" && w != "er"
			continue
		case articles[w] && k == i-1:
			article = true
			continue
		case verbs[w], ownVerbs[w]:
			own = own || ownVerbs[w] || w == "ai" || w == "ho" || w == "he" || w == "tengo" || w == "tenho"
			continue
		case t.Cue&text.CueKin != 0:
			return named, copula, article
		case t.Cue&text.CueSelf != 0:
			if k == i-1 || k == i-2 && s.tokens[i-1].Cue&text.CueFresh != 0 { // "my job", "me llamo"
				return speaker, copula, article
			}
			return noSubject, copula, article
		case t.Cue&(text.CueChange|text.CueFresh|text.CueNot|text.CueMore|text.CueAlso) != 0 && t.Cue&(text.CueHome|text.CueWork) == 0,
			t.Cue.Month() > 0, t.Cue.Weekday() > 0, s.isDigits(k), len(t.Terms) > 0 && text.IsTimeStem(t.Terms[0]):
			continue
		case (verbFinal || free) && (t.Cue&text.CueAt != 0 || k > in.tokens.from && s.tokens[k-1].Cue&text.CueAt != 0 || len(t.Terms) == 0):
			continue
		case s.isName(in, k):
			return named, copula, article
		}
		return noSubject, copula, article
	}
	if i+1 < in.tokens.to && subjects[s.folded(i+1)] { // "jetzt wohne ich"
		return speaker, copula, article
	}
	if own || free || s.tokens[i].Cue&text.CueChange != 0 { // "moved to Leeds last week"
		return speaker, copula, article
	}
	return noSubject, copula, article
}

// isName reports whether token i may be the name of a person.
func (s *Statement) isName(in *sentence, i int) bool {
	first, _ := utf8.DecodeRuneInString(s.raw(i))
	return unicode.IsUpper(first) && (i > in.tokens.from || len(s.tokens[i].Terms) > 0) && s.tokens[i].Cue&notSubject == 0
}

// isFree reports whether a language leaves out or moves its subjects so that
// they are not looked for.
func isFree(l text.Language) bool {
	switch l {
	case text.English, text.German, text.French, text.Spanish, text.Italian, text.Portuguese, text.Dutch:
		return false
	}
	return true
}

// readStates returns the cues of the classes that a sentence puts the speaker
// or a person into.
func (s *Statement) readStates(in *sentence) (found text.Cue) {
	for i := in.tokens.from; i < in.tokens.to; i++ {
		t := &s.tokens[i]
		if t.Cue&states == 0 {
			continue
		}
		if t.Cue&text.CueMeat != 0 && s.eats(in, i) {
			found |= text.CueMeat | text.CueEat
		}
		if t.Cue&(relations|text.CueVeg) == 0 {
			continue
		}
		who, copula, article := s.subjectOf(in, i)
		if who == noSubject || s.isAttribute(in, i) {
			continue
		}
		if t.Kind == text.WordToken && s.language != text.German && unicode.IsUpper(rune(s.raw(i)[0])) && i > in.tokens.from {
			continue
		}
		switch {
		case isFree(s.language):
			found |= t.Cue & (relations | text.CueVeg)
		case t.Cue&text.CuePartner != 0 && !article:
			found |= text.CuePartner
		case copula && (!article || t.Cue&(text.CueVeg|text.CueSingle) != 0):
			found |= t.Cue & (relations | text.CueVeg)
		}
	}
	return found
}

// isAttribute reports whether the word that follows token i is what it
// describes: "single quotes".
func (s *Statement) isAttribute(in *sentence, i int) bool {
	if i+1 >= in.tokens.to || s.tokens[i].Kind == text.CharacterToken {
		return false
	}
	next := &s.tokens[i+1]
	if w := s.folded(i); w == "engaged" && (s.folded(i+1) == "in" || s.folded(i+1) == "with") {
		return true
	}
	if next.Kind >= text.ClauseToken || len(next.Terms) == 0 || next.Cue&(notSubject|text.CueKin|classes) != 0 || text.IsTimeStem(next.Terms[0]) || s.isDigits(i+1) || isFree(s.language) {
		return false
	}
	return s.tokens[i].Cue&text.CuePartner == 0 || !s.isName(in, i+1) // "I married Anna"
}

// eats reports whether a person eats the meat that token i is.
func (s *Statement) eats(in *sentence, i int) bool {
	if s.tokens[i].Kind == text.CharacterToken || isFree(s.language) {
		who, _, _ := s.subjectOf(in, i)
		return who != noSubject && in.cues&text.CueEat != 0
	}
	for k := i - 1; k >= max(in.tokens.from, i-4) && s.tokens[k].Kind < text.ClauseToken; k-- {
		if s.tokens[k].Cue&text.CueEat != 0 {
			who, _, _ := s.subjectOf(in, k)
			return who != noSubject || k == in.tokens.from && ownVerbs[s.folded(k)] || k > in.tokens.from+1 && s.folded(k-1) == "a" && ownVerbs[s.folded(k-2)]
		}
	}
	return false
}

// doer returns who does what the first word of a class means, if it is not done
// to something else: "I moved my savings to Revolut".
func (s *Statement) doer(in *sentence, class text.Cue) (who subjectKind) {
	for i := in.tokens.from; i < in.tokens.to; i++ {
		if s.tokens[i].Cue&class == 0 {
			continue
		}
		if who, _, _ = s.subjectOf(in, i); who == noSubject || class&text.CueHome != 0 && s.hasObject(in, i) {
			who = noSubject
			continue
		}
		return who
	}
	return who
}

// hasObject reports whether something other than a place follows the verb at
// token i.
func (s *Statement) hasObject(in *sentence, i int) bool {
	if isFree(s.language) || s.tokens[i].Kind == text.CharacterToken {
		return false
	}
	for k := i + 1; k < in.tokens.to && s.tokens[k].Kind < text.ClauseToken; k++ {
		t := &s.tokens[k]
		switch {
		case s.folded(k) == "in" && k+1 < in.tokens.to && s.folded(k+1) == "with": // "moved in with Anna"
			return true
		case t.Cue&text.CueAt != 0, s.folded(k) == "a" && k+1 < in.tokens.to && s.isName(in, k+1): // "me he mudado a Cádiz"
			return false
		case subjects[s.folded(k)], t.Cue&(text.CueChange|text.CueFresh|text.CueMore|text.CueNot|text.CueHome) != 0, len(t.Terms) > 0 && text.IsTimeStem(t.Terms[0]), t.Cue.Month() > 0, t.Cue.Weekday() > 0:
			continue
		case t.Cue&text.CueSelf != 0:
			return true
		case len(t.Terms) > 0:
			return s.tokens[i].Cue&text.CueChange != 0
		}
	}
	return false
}
