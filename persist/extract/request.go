package extract

import (
	_ "embed"
	"strings"
	"sync"
)

// People ask to remember something in words of courtesy and a verb: "could you
// please keep in mind that ...", "it would be great if you noted ...". Which
// words may be where is in requests.txt, for all languages together.

//go:embed requests.txt
var requestsText string

// requestWords are the lists of requests.txt, by their names.
var requestWords = sync.OnceValue(func() map[string]map[string]bool {
	lists := map[string]map[string]bool{}
	name := ""
	for line := range strings.Lines(requestsText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ':':
			name = line[1:]
			lists[name] = map[string]bool{}
		default:
			for w := range strings.FieldsSeq(line) {
				lists[name][fold(w)] = true
			}
		}
	}
	return lists
})

// request is a request to remember something.
type request struct {
	found bool
	rest  int  // index of the first word of what is to be remembered
	that  bool // a word such as "that", or a colon, opens what follows
	weak  bool // its verb may mean to write something into a file
}

// maxRequest is the largest number of words of a request.
const maxRequest = 16

// inRequest reports whether a list of requests.txt has a word, or its part without what French and
// Spanish add to verbs: "pourrais-tu", "retiens-le", "recuérdalo".
func inRequest(list, w string) bool {
	words := requestWords()[list]
	if words[w] {
		return true
	}
	if before, _, ok := strings.Cut(w, "-"); ok {
		return words[before]
	}
	for _, object := range [...]string{"lo", "melo", "telo"} {
		if stem, ok := strings.CutSuffix(w, object); ok && words[stem] {
			return true
		}
	}
	return false
}

// requestAt reads a request at the start of ws.
func requestAt(ws []word) (r request) {
	mind, denial, subject, asks := false, -1, "", false
	for i := 0; i < min(len(ws), maxRequest); i++ {
		w, verb := ws[i].folded, 0
		switch {
		case inRequest("forget", w):
			if verb = i + 1; denial < 0 {
				verb = behind(ws, i+1, "denial")
			}
			if verb == 0 {
				return request{}
			}
		case denial >= 0 && denial >= i-2:
		case inRequest("remember", w):
			verb = i + 1
		case inRequest("keep", w) && mind:
			verb = i + 1
		case inRequest("keep", w):
			verb = behind(ws, i+1, "mind")
		}
		if verb == 0 && (denial < 0 || denial < i-2) && inRequest("write", w) {
			verb, r.weak = i+1, true
		}
		if verb > 0 {
			if subject == "i" || reminded[w] && !asks && i > 0 && reminders[ws[i-1].folded] {
				return request{} // "I remember that ...", "do you remember ..."
			}
			r.found = true
			r.rest, r.that = skipBetween(ws, verb)
			return r
		}
		if !inRequest("courtesy", w) && !inRequest("denial", w) && !inRequest("mind", w) {
			return request{}
		}
		switch {
		case speaking[w] && !strings.EqualFold(ws[i].raw, "im"): // German, and no "I'm"
			subject = "i"
		case reminders[w]:
			subject = ""
		}
		asks = asks || asksOthers[w]
		if inRequest("denial", w) {
			denial = i
		}
		mind = mind || inRequest("mind", w) && w != "mind" && w != "note" && w != "notes"
	}
	return request{}
}

// Verbs that state or ask what somebody remembers where these stand before
// them, and none of asksOthers does: "do you remember", "tu te souviens", "você
// lembra".
var (
	reminded   = setOf("remember souviens souvenez rappelles rappelle rappelez ricordi lembra lembras recordar merkst merkt onthoudt retiens anota guarda nota note notes")
	reminders  = setOf("you te tu vous ti voce voces se usted lei du sie ihr je jij u ты вы")
	speaking   = setOf("i we us ich wir j yo io eu ik я мы")
	asksOthers = setOf("can could will would should must if make want like love need kannst konntest wenn dass si que pourrais pourriez peux pouvez peut se che puoi potresti vorrei poderia pode podes als dat kun zou wil чтобы если كि")
)

// behind returns the index behind a word of a list that is near, 0 if none is.
func behind(ws []word, from int, list string) int {
	for i := from; i < min(len(ws), from+4) && !ws[i].clause; i++ {
		if inRequest(list, ws[i].folded) {
			return i + 1
		}
	}
	return 0
}

// skipBetween returns where what is to be remembered begins, and whether a word
// or sign opens it.
func skipBetween(ws []word, from int) (rest int, that bool) {
	lists := requestWords()
	for i := from; i < len(ws); i++ {
		switch w := ws[i].folded; {
		case lists["that"][w] && i+1 < len(ws) && !onlyAfter(ws[i+1:]):
			return i + 1, true
		case ws[i].clause && i > from, ws[i].clause && !lists["that"][w] && !lists["between"][w] && !lists["pointing"][w]:
			return i, true
		case !lists["between"][w] || i-from > 6 || ws[i].in(inPersonal) && !ws[i].clause && i+2 < len(ws) && (w == "my" || w == "mi" || w == "il" || w == "je" && folded(ws, i+1) != "me"):
			return i, false
		}
	}
	return len(ws), false
}

// onlyAfter reports whether ws say nothing but where or how to remember.
func onlyAfter(ws []word) bool {
	after := requestWords()["after"]
	for i := range ws {
		if !after[ws[i].folded] {
			return false
		}
	}
	return true
}

// points reports whether what a request is about is only pointed to: "remember
// that, please".
func (r request) points(ws []word) bool {
	rest := ws[r.rest:]
	for len(rest) > 0 && requestWords()["pointing"][rest[0].folded] {
		rest = rest[1:]
	}
	return onlyAfter(rest)
}

// kept makes a candidate of what a request at ws[at:] asks to remember. ok is
// false where it asks for something else.
func (r request) kept(s string, ws []word, at int) (sp span, ok bool) {
	if r.points(ws[at:]) {
		return span{reject: RejectCommand, points: true, weak: r.weak}, true
	}
	from, to := at+r.rest, len(ws)
	for i := len(ws) - 1; i > from; i-- {
		if ws[i].clause && onlyAfter(ws[i:to]) {
			to = i
		}
	}
	rest := ws[from:to]
	if len(rest) < 2 || r.weak && !r.that || rest[0].folded == "to" || lexicon().sets["recalling"][rest[0].folded] && !requestWords()["that"][ws[from-1].folded] {
		return span{}, false
	}
	end := len(s)
	if to < len(ws) {
		end = ws[to-1].end
	}
	quote := strings.TrimRight(strings.TrimSpace(s[rest[0].start:end]), "?？؟,،;:-– ")
	told := rest[0].in(inPersonal) || named(&rest[0]) || r.that && (!r.weak || ws[from-1].folded != "that" || len(rest) > 3 && determiners[rest[0].folded])
	if !told && judge(quote).candidate == nil {
		return span{}, false
	}
	kind := markFact
	inner := words(quote)
	if m := lexicon().marksAt(inner, 0) & statementMarks; m != 0 {
		kind = kindOf(m)
	}
	return span{candidate: &Candidate{Quote: quote, kind: kind, words: inner, Requested: true}}, true
}

var determiners = setOf("the a an all every each no there this these his her their its")

// askedBehind makes a candidate of a sentence that ends in a request to
// remember it: "My sister lives in Bergen, please keep that in mind."
func askedBehind(s string, ws []word, main, from int) *Candidate {
	for i := main + 2; i < len(ws); i++ {
		if !ws[i].clause {
			continue
		}
		r := requestAt(ws[i:])
		if !r.found || !r.points(ws[i:]) {
			continue
		}
		to := i
		for to > from && ws[to-1].in(inConjunctions) {
			to--
		}
		if to-from < 2 || changesSense(ws, from, to) {
			return nil
		}
		quote := strings.TrimRight(strings.TrimSpace(s[ws[from].start:ws[to-1].end]), "?,;:-– ")
		inner := words(quote)
		m := lexicon().marksAt(inner, 0)
		if m.has(markQuestion) || m.has(markCommand) && m&statementMarks == 0 {
			return nil
		}
		kind := markFact
		if m &= statementMarks; m != 0 {
			kind = kindOf(m)
		}
		return &Candidate{Quote: quote, kind: kind, words: inner, Requested: true}
	}
	return nil
}

// asking are the beginnings of words that requests to remember hold.
var asking = sync.OnceValue(func() needles {
	seen := map[string]bool{}
	var out needles
	for _, list := range []string{"remember", "write", "forget", "mind"} {
		for w := range requestWords()[list] {
			if r := []rune(w); len(r) > 5 {
				w = string(r[:5])
			}
			if len(w) > 2 && !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	return append(out, "记", "記", "别忘", "別忘", "忘", "覚え", "メモ", "기억", "메모", "기록", "잊")
})
