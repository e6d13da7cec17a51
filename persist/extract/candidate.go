package extract

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// Limits of a statement.
const (
	minStatementWords = 3
	maxStatementRunes = 280
	maxSpans          = 200 // of one message; later ones are not read
)

// span is a sentence of a message with the verdict on it: a candidate, a
// request to forget, or a reason to reject it.
type span struct {
	candidate *Candidate
	forget    string // what the user asked to forget
	reject    string
	points    bool // it asks to remember another sentence
	weak      bool // or to write it down somewhere
}

// spansOf reads one message of the user.
func spansOf(text string, at time.Time, message int) []span {
	spans, _ := spansIn(ownTextOf(text), at, message, nil)
	return spans
}

// spansIn reads the own words of a message of the user. about are the persons
// whom the one before spoke of last; it returns those of this one.
func spansIn(own ownText, at time.Time, message int, about []person) ([]span, []person) {
	var out []span
	var space [stackWords]word
	typed, cut := typedText(own.message, own.text)
	framed := ""
	switch frameOf(typed) {
	case frameDeclined:
		framed = RejectDeclined
	case frameFiction:
		framed = RejectFiction
	case frameTranscript:
		framed = RejectQuoted
	}
	mayTell := mayBeTale.in(strings.ToLower(typed))
	rules := rulesIn(typed)
	last, ahead := "", false
	start, end := 0, 0 // of the sentence
	for i, s := range text.Sentences(typed) {
		if len(out) == maxSpans {
			break
		}
		start = end + strings.Index(typed[end:], s)
		end = start + len(s)
		s = strings.TrimLeft(s, "-*•# \t")
		if s == "" {
			continue
		}
		sp := judge(s)
		said := appendWords(space[:0], s)
		main, _ := mainWord(said)
		of := personsIn(s, said)
		if resolved, whom, ok := referring(s, said, main, about); ok && (sp.candidate == nil || !sp.candidate.Requested) && sp.forget == "" {
			if whom.called != "" {
				of = append(of, whom)
			}
			if sp.candidate == nil || strings.HasPrefix(sp.candidate.Quote, s[said[main].start:said[main].end]) {
				sp = resolved
				if c := clause(s, said, main, main, true); sp.candidate == nil && c != nil && !changesSenseBefore(said, main, strings.Index(s, c.Quote)) {
					sp = span{candidate: c}
				}
			}
		}
		if len(of) > 0 {
			about = of
		}
		if sp.points && len(out) > 0 && last != "" {
			out[len(out)-1] = out[len(out)-1].asked(last, sp.weak, at, message)
		} else if ahead {
			sp = sp.asked(s, false, at, message)
		}
		ahead = sp.points && (len(out) == 0 || strings.HasSuffix(s, ":"))
		last = s
		if sp.candidate != nil && framed != "" {
			sp = span{reject: framed}
		}
		if sp.candidate != nil && !sp.candidate.Requested && rules.hold(start, sp.candidate) {
			sp = span{reject: RejectQuoted}
		}
		if c := sp.candidate; c != nil {
			back, bare := corrects(appendWords(space[:0], s))
			c.Time, c.Message, c.Corrects, c.Answer = at, message, back, bare && i == 0
			c.dates = datesIn(c.words, at)
			c.Suspicious = own.mayInstruct() && instructs(c.Quote)
		}
		out = append(out, sp)
		if mayTell && framed == "" {
			if ws := appendWords(space[:0], s); phrases().tale.beginsClause(ws) {
				framed = RejectFiction
			}
		}
	}
	for range cut {
		out = append(out, span{reject: RejectQuoted})
	}
	return out, about
}

// asked returns the span of a sentence that another one asks to remember: a
// statement, if it can be one, and whatever was rejected for saying too little.
func (sp span) asked(s string, weak bool, at time.Time, message int) span {
	if sp.candidate == nil && !weak && (sp.reject == RejectNothing || sp.reject == RejectPassing) {
		ws := words(s)
		if len(ws) < minStatementWords || ws[0].in(inBare) {
			return sp
		}
		sp = span{candidate: &Candidate{Quote: s, kind: markFact, words: ws, Time: at, Message: message, dates: datesIn(ws, at), Suspicious: instructs(s)}}
	}
	if sp.candidate != nil {
		sp.candidate.Requested = true
	}
	return sp
}

// judge classifies a sentence.
func judge(s string) span {
	if looksLikeCode(s) {
		return span{reject: RejectCode}
	}
	ideographs := !isASCII(s) && (hasIdeographs(s) || hasHangul(s))
	if len(s) > maxStatementRunes && utf8.RuneCountInString(s) > maxStatementRunes {
		return span{reject: RejectLong}
	}
	if ideographs {
		return judgeIdeographs(s)
	}
	var space [stackWords]word
	ws := appendWords(space[:0], s)
	main, from := mainWord(ws)
	tongue := tongueOf(s, ws)
	if n := len(ws) - from; n < minStatementWords && (n < 2 || tongue == nil && !beings[ws[main].folded]) {
		if r := requestAt(ws[main:]); r.found && r.points(ws[main:]) {
			return span{reject: RejectCommand, points: true, weak: r.weak}
		}
		return span{reject: RejectSmallTalk}
	}
	m := lexicon().marksAt(ws, 0)
	if main > 0 {
		m |= lexicon().marksAt(ws, main) | lexicon().marksAt(ws, from)
	}
	handedOver := handsOver(ws[main:]) && !strings.Contains(s, ":")
	asks := strings.HasSuffix(strings.TrimRight(s, `"')] `), "?") || m.has(markQuestion)
	if r := requestAt(ws[main:]); r.found {
		if sp, ok := r.kept(s, ws, main); ok {
			return sp
		}
	}
	if c := askedBehind(s, ws, main, from); c != nil {
		return span{candidate: c}
	}
	if tongue != nil && !m.has(markRemember) && !m.has(markForget) {
		if quotesOthers(s) || isQuotation(s) {
			return span{reject: RejectQuoted}
		}
		return tongue.judge(s, ws)
	}
	switch {
	case m.has(markRemember) && !strings.HasSuffix(s, "?"):
		return remembered(s, ws)
	case m.has(markForget) && !m.has(markNeverMind) && !asks:
		return span{forget: strings.TrimSpace(s)}
	case m.has(markForget), m.has(markNeverMind):
		return span{reject: RejectCommand}
	}
	if quotesOthers(s) || isQuotation(s) {
		return span{reject: RejectQuoted}
	}
	if !m.has(markStanding) && (hypothetical(ws) || phrases().imagined.prefix(ws[main:]) > 0) {
		return span{reject: RejectFiction}
	}
	orders := m.has(markCommand) && !m.has(markStanding) && !m.has(markName) && !(m&statementMarks != 0 && ws[main].in(inPersonal))
	if !asks && !orders && !handedOver && !asksLater(s, ws, main) {
		if sp, ok := statement(s, ws, main, from, m); ok {
			return sp
		}
	}
	if asks && asksConfirmation(ws) {
		return span{reject: RejectQuestion}
	}
	// One clause of a question or command may state a fact: "I'm allergic to
	// nuts, what can I bake?"
	if at := strings.Index(s, ": "); orders && at > ws[main].start {
		return span{reject: RejectCommand} // "Translate: I am ...": somebody else's words
	}
	if c := clause(s, ws, main, from, asks || orders || handedOver || asksLater(s, ws, main)); c != nil && !(handedOver && strings.HasPrefix(s[ws[main].start:], c.Quote)) {
		return span{candidate: c}
	}
	switch {
	case asks:
		return span{reject: RejectQuestion}
	case orders, handedOver:
		return span{reject: RejectCommand}
	case m.has(markTransient):
		return span{reject: RejectPassing}
	case m.has(markSmallTalk):
		return span{reject: RejectSmallTalk}
	}
	return span{reject: RejectNothing}
}

// beings are verbs whose subject is left out: with one more word they say what
// the speaker is or has.
var beings = setOf("soy tengo estoy odio detesto adoro prefiero fumo")

// handsOver reports whether a sentence hands something over ("Here is my
// letter."), with its purpose in another clause.
func handsOver(ws []word) bool {
	switch ws[0].folded {
	case "here", "below", "attached", "hier", "aqui":
		next := folded(ws, 1)
		return next == "is" || next == "are" || next == "ist" || next == "sind" || next == "esta" || next == "estan" || next == "tienes"
	case "voici", "anbei":
		return true
	}
	return false
}

// quotesOthers reports whether a sentence introduces words that are not the
// speaker's: "The README says: I prefer tabs.", "Complete: I ...".
func quotesOthers(s string) bool {
	before, _, ok := strings.Cut(s, ": ")
	if !ok {
		return false
	}
	before = strings.ToLower(before)
	return workedOn[before] || says[before[strings.LastIndexByte(before, ' ')+1:]]
}

// isQuotation reports whether a sentence is a quotation and nothing else.
func isQuotation(s string) bool {
	end := text.QuotationEnd(s, 0)
	return end > 0 && strings.Trim(s[end:], ".!? ") == ""
}

var (
	says     = setOf("says said reads writes wrote states stated")
	workedOn = setOf("complete continue finish translate classify rewrite rephrase paraphrase correct proofread summarize summarise label tag")
)

// subjects are the pronouns that can follow an adverbial phrase.
var subjects = setOf("i we my our ich wir habe haben bin je nous on nos vamos yo hemos tengo uso usamos prefiero")

// asksLater reports whether a later clause is a question or a command: "I'm
// vegan, and I was wondering if ...".
func asksLater(s string, ws []word, main int) bool {
	for i := main + 1; i < len(ws); i++ {
		if !ws[i].clause && !ws[i-1].in(inConjunctions) {
			continue
		}
		if orders := orderedWhat[folded(ws, i+1)]; orders || ws[i].in(inAsking) {
			m := lexicon().marksAt(ws, i)
			if (m.has(markQuestion) && ws[i].in(inAsking) || m.has(markCommand) && m&statementMarks == 0 || m.has(markTransient) && m&statementMarks == 0 && ws[i].in(inAsking)) && !quoted(s, ws[i].start) {
				return true
			}
		}
	}
	return false
}

// orderedWhat are words that follow the verb of an order: "plan the dinner", "write
// me a poem".
var orderedWhat = setOf("me us a an the my our this that some mir uns ein eine einen den das moi nous un une le la me nos")

// mainWord returns the index of the first word after greetings, connectives and
// corrections: "Hi, by the way, I ...", "No wait, I meant ...". The statement
// must be quoted from from on, which is before main if one of these words
// changes its sense: "No soporto el calor."
func mainWord(ws []word) (main, from int) {
	from = -1
	for i := 0; i < len(ws); {
		switch n := correctionPrefix(ws[i:]); {
		case n > 1:
			i += n
		case (ws[i].in(inLead) || n == 1) && !meansIf(ws, i):
			if from < 0 && i+1 < len(ws) && !interjects(ws, i) {
				from = i
			}
			i++
		case from < 0:
			return i, i
		default:
			return i, from
		}
	}
	return 0, 0
}

// statement makes a candidate of a whole sentence that is neither a question
// nor a command.
func statement(s string, ws []word, main, from int, m marks) (span, bool) {
	kept, guessed := m&statementMarks, false
	if m.has(markTransient) {
		kept &= 1<<markName | 1<<markStanding | 1<<markMatter
	}
	if kept == 0 && !m.has(markTransient) && !m.has(markSmallTalk) && !m.has(markCommand) && personalNews(ws[main:]) {
		kept, guessed = 1<<markFact, true
	}
	if kept == 0 && !m.has(markTransient) && !m.has(markSmallTalk) && !m.has(markCommand) && !strings.HasSuffix(s, ":") {
		kept, guessed = unpatterned(ws[main:]), true
	}
	if kept == 0 && due(ws) && !m.has(markTransient) && !m.has(markSmallTalk) {
		kept = 1 << markMatter
	}
	if kept == 0 {
		return span{}, false
	}
	if ws[main].in(inBare) && !m.has(markName) && (!m.has(markMatter) || !determining[ws[main].folded]) && kept&(1<<markStanding|1<<markDecision) == 0 {
		if c := clause(s, ws, main, from, true); c != nil {
			return span{candidate: c}, true
		}
		return span{reject: RejectUnclear}, true
	}
	quote := strings.TrimSpace(s[ws[from].start:])
	c := &Candidate{Quote: quote, kind: kindOf(kept), words: words(quote)}
	c.passing = guessed && passes(ws[main:])
	return span{candidate: c}, true
}

// passes reports whether a sentence is about what the speaker does or has done
// of late: "I'm making dinner for six tonight".
func passes(ws []word) bool {
	for i := range ws {
		w, next := ws[i].folded, folded(ws, i+1)
		switch {
		case ofLate[w], w == "this" && dayPart[next], w == "last" && next == "night",
			(w == "am" || w == "are") && i < 3 && (strings.HasSuffix(next, "ing") || next == "stuck" || atPlaces[next] && folded(ws, i+2) == "the"),
			(w == "have" || w == "need" || w == "got") && next == "to", w == "must", i < 3 && didOnce[w]:
			return true
		}
	}
	return false
}

var (
	ofLate  = setOf("today tonight yesterday now currently soon heute gestern gerade eben jetzt gleich muss brauche suche schreibe aujourd'hui maintenant ecris cherche dois hoy ayer ahora busco necesito escribo")
	dayPart = setOf("morning afternoon evening week weekend minute second")
	didOnce = setOf("read saw watched heard ate cooked tried looked asked found noticed forgot ordered sent sah las hore vu lu mange vi lei comi")
)

// addressed is who is spoken to.
var addressed = setOf("you tu vous usted du ihr")

// determining words may stand before what is spoken of: "this project".
var determining = setOf("this these that those dies dieser das es ce cette ces este esta esto esos")

// personalNews reports whether a sentence that no pattern matches is specific
// news about its speaker: in the first person, and not about what was just
// thought or done.
func personalNews(ws []word) bool {
	verb := 1
	switch first := ws[0]; {
	case first.folded == "i" || first.folded == "we" || first.folded == "ich" || first.folded == "wir" || first.folded == "je" || first.folded == "nous" || first.folded == "yo":
		for verb < len(ws)-1 && (ws[verb].in(inAdverb) || ws[verb].folded == "have" || ws[verb].folded == "am" || ws[verb].folded == "are") {
			verb++
		}
	case strings.HasSuffix(first.raw, "é"), strings.HasSuffix(first.raw, "í"), len(first.raw) > 5 && strings.HasSuffix(first.raw, "o"): // Spanish leaves out "yo"
		verb = 0
		if len(ws) < 4 || !ws[1].in(inSpanish) {
			return false
		}
	default:
		return false
	}
	if verb >= len(ws) || ws[verb].in(inMental) {
		return false
	}
	specific, own := 0, 0
	for i := verb; i < len(ws); i++ {
		w := ws[i]
		if w.isContent() {
			own++
		}
		if hasDigit(w.folded) || w.in(inWeekdays|inMonths) || i > verb && capital(w.raw) && w.folded != "i" {
			specific++
		}
		if strings.ContainsRune(w.raw, '_') || camel(w.raw) {
			return false // about code
		}
	}
	return own > 1 && specific > 0 || own > 2
}

// unpatterned classifies a sentence that no pattern matches by the kinds of its
// words: it mentions the speaker and has some content, or it has specific
// content. Sentences about code or the work at hand do not count.
func unpatterned(ws []word) marks {
	if len(ws) < 5 || ws[0].in(inBare|inVague) || addressed[ws[0].folded] && reporting[ws[1].folded] {
		return 0
	}
	switch ws[1].folded {
	case "mir", "mich", "uns", "me", "us", "moi", "nos": // a command: "Schick mir ..."
		return 0
	}
	specific, own, ours := 0, 0, false
	for i := range ws {
		w := &ws[i]
		switch {
		case strings.ContainsRune(w.raw, '_'), camel(w.raw), w.in(inThings | inVague), w.in(inPassing) && i < 4:
			return 0
		case w.in(inPersonal):
			ours = true
			next := i + 1
			for next < len(ws) && (ws[next].in(inAdverb) || ws[next].folded == "have") {
				next++
			}
			if next < len(ws) && ws[next].in(inMental) {
				own -= 2
			}
		}
		if w.isContent() {
			own++
		}
		if hasDigit(w.folded) || w.in(inWeekdays|inMonths) || i > 0 && capital(w.raw) && w.folded != "i" && w.raw != ws[i-1].raw {
			specific++
		}
	}
	switch {
	case foreign(ws):
		return 0
	case ours && (own > 3 || own > 1 && specific > 0):
		return 1 << markFact
	case specific > 0 && own > 3:
		return 1 << markMatter
	}
	return 0
}

// clause finds a clause that states something. If alone is set, for sentences
// that ask or command, the candidate is that clause; otherwise it is the
// sentence.
func clause(s string, ws []word, main, lead int, alone bool) *Candidate {
	for i := main; i < len(ws); i++ {
		opened := ws[main].in(inOpeners) && i-main < 8 && subjects[ws[i].folded] // "For the new site we ..."
		if i > main && !ws[i].clause && !ws[i-1].in(inConjunctions) && !opened {
			continue
		}
		m := lexicon().marksAt(ws, i)
		if m&statementMarks == 0 || m.has(markTransient) || m.has(markQuestion) || m.has(markCommand) && !m.has(markStanding) {
			continue
		}
		if m&statementMarks == 1<<markMatter && alone {
			continue
		}
		from, to := i, len(ws)
		if alone && quoted(s, ws[i].start) {
			continue
		}
		if alone {
			for j := i + 1; j < len(ws); j++ {
				if !ws[j].clause || quoted(s, ws[j].start) {
					continue
				}
				at := lexicon().marksAt(ws, j)
				next, _ := mainWord(ws[j:])
				at |= lexicon().marksAt(ws, j+next)
				if at.has(markQuestion) || at.has(markCommand) || at.has(markTransient) || at&statementMarks == 0 && strings.HasSuffix(s, "?") {
					to = j
					break
				}
			}
			for to > from && ws[to-1].in(inConjunctions) {
				to--
			}
			if strings.HasSuffix(s, "?") && to == len(ws) && (i == main || opened || completing[ws[i-1].folded]) {
				continue // the whole question, or what it asks about
			}
		} else {
			from = main
		}
		if from == main {
			from = lead
		}
		if changesSense(ws, from, to) {
			continue
		}
		if to-from < minStatementWords {
			continue
		}
		end := ws[to-1].end
		if to == len(ws) {
			end = len(s)
		}
		quote := strings.TrimRight(strings.TrimSpace(s[ws[from].start:end]), "?,;:-– ")
		return &Candidate{Quote: quote, kind: kindOf(m & statementMarks), words: words(quote)}
	}
	return nil
}

// completing words begin what somebody asks about: "am I right that ...".
var completing = setOf("that dass que ob si if whether")

// remembered makes a candidate of what follows "remember that".
func remembered(s string, ws []word) span {
	longest, asked := 0, 0 // where what is to be remembered begins, and the request
	for at := range min(len(ws), 4) {
		for _, list := range [][]*pattern{ws[at].known.more.patterns, lexicon().anywhere} {
			for _, p := range list {
				if p.mark == markRemember {
					if n := match(p.parts, ws[at:]); n > 0 {
						if at+n-1 > longest {
							longest, asked = at+n-1, at
						}
					}
				}
			}
		}
	}
	rest := strings.TrimSpace(s[ws[longest].start:])
	inner := words(rest)
	if len(inner) < 2 {
		return span{reject: RejectCommand}
	}
	if changesSense(ws, asked, len(ws)) {
		return span{reject: RejectCommand} // "Never say that you remember that ..."
	}
	if inner[0].folded == "to" && !lexicon().marksAt(inner, 1).has(markStanding) {
		return span{reject: RejectCommand} // "Remember to run the tests"
	}
	kind := markFact
	if m := lexicon().marksAt(inner, 0) & statementMarks; m != 0 {
		kind = kindOf(m)
	}
	return span{candidate: &Candidate{Quote: rest, kind: kind, words: inner, Requested: true}}
}

func kindOf(m marks) mark {
	for _, k := range [...]mark{markName, markStanding, markDecision, markGoal, markPreference, markFact} {
		if m.has(k) {
			return k
		}
	}
	return markMatter
}

// due reports whether a sentence sets an appointment or deadline at some time,
// or names a day of a month.
func due(ws []word) bool {
	if len(ws) < 5 && ws[0].in(inDue) {
		return false // of what it is that is due nothing is said
	}
	thing, when, month := false, false, false
	for i := range ws {
		w := &ws[i]
		thing = thing || w.in(inDue)
		month = month || w.in(inMonths) && (isDay(folded(ws, i-1)) || isDay(folded(ws, i+1)))
		when = when || w.in(inWeekdays|inRelative) || w.in(inMonths) && i > 0 || hasDigit(w.folded)
	}
	return thing && when || month
}

func folded(ws []word, i int) string {
	if i < 0 || i >= len(ws) {
		return ""
	}
	return ws[i].folded
}

func capital(raw string) bool {
	r, _ := utf8.DecodeRuneInString(raw)
	return unicode.IsUpper(r)
}

// looksLikeCode goes by the share of punctuation and by endings that only code
// has.
func looksLikeCode(s string) bool {
	signs, letters := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("{}[]()=<>\\|_$#@*+&^~;", c) >= 0:
			signs++
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= utf8.RuneSelf:
			letters++
		}
	}
	return letters == 0 || signs*6 > letters && signs > 3 || strings.HasSuffix(s, "{") || strings.HasSuffix(s, ";") && signs > 1
}
