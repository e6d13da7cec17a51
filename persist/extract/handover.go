package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// A text that somebody hands over to be summarised, translated, answered or
// made nicer says nothing about them, even where it has "I"; nor do words of
// others that they pass on. What introduces it, or follows it, tells: an order
// about texts, or the name of a text, with a sign that a text comes (a colon, a
// dash, a quotation, a line of its own) or a word that points to it ("this",
// "the above"). text/handover.txt has the words.

const (
	leadWork    = text.HandoverWork
	leadEdit    = text.HandoverEdit
	leadCreate  = text.HandoverCreate
	leadKind    = text.HandoverKind
	leadQuality = text.HandoverQuality
	leadSound   = text.HandoverSound
	leadPointer = text.HandoverPointer
	leadAhead   = text.HandoverAhead
	leadBack    = text.HandoverBack
	leadSays    = text.HandoverSays
	leadGot     = text.HandoverGot
	leadOwn     = text.HandoverOwn
)

// lead is a sentence, or its beginning, that may introduce a text to work on or
// follow one.
type lead struct {
	class text.Handover
	words int
	// speaks: "I" or "we" is a subject of it. states: it says what its subject
	// is: "my story is simple". elsewhere: its order names what it is about,
	// which is no text: "translate the menu".
	speaks, states, elsewhere bool
	from, ends                bool // it says where a text is from; its last word points to it
}

// maxLead is the longest sentence that is read as a lead, in bytes.
const maxLead = 240

var (
	leadCopulas = setOf("is are was were ist sind war est sont era es son e sono are zijn ar jest")
	// words after which a language, an audience or a purpose is named, not the
	// object of an order
	leadBefore = setOf("to into in as for with like from so auf ins in fur als wie nach en pour comme a al para como per come em ao naar voor als till som pa na po dla i на в для как")
	// words of politeness, which are no object of an order
	leadCourtesy = setOf(`please pls kindly thanks thank bitte danke svp merci favor gracias grazie favore obrigado obrigada alstublieft graag tack prosze lutfen
		пожалуйста спасибо quickly hey hi hello claude chatgpt gpt assistant ok okay now again bot`)
)

// readLead reads a lead.
func readLead(s string) (l lead) {
	if len(s) > maxLead {
		return l
	}
	l.class = text.HandoverIn(strings.ToLower(s))
	var space [stackWords]word
	ws := appendWords(space[:0], s)
	l.words = len(ws)
	ordered := l.class.Has(leadWork | leadEdit)
	addressed := false // "can you", "I'd like you to"
	for i := range ws {
		w := &ws[i]
		before := folded(ws, i-1)
		known := text.HandoverOf(w.folded)
		class := known
		if class.Has(leadOwn) && class.Has(leadKind) { // "Note: ...", "she left this note"
			if i == 0 || leadCourtesy[before] {
				class &^= leadKind
			} else {
				class &^= leadOwn
			}
		}
		if w.folded == "feedback" && (i == 0 || i == 1 && persons()["own"][before]) {
			class = leadOwn // "Feedback: ...", "my feedback: ..."
		}
		l.from = l.from || leadFrom[w.folded]
		l.ends = class.Has(leadPointer | leadAhead)
		l.speaks = l.speaks || leadSubjects[w.folded]
		l.states = l.states || leadCopulas[w.folded] && i > 0
		begins := i == 0 || w.clause || ws[i-1].in(inLead|inConjunctions) || leadCourtesy[before]
		if leadAddressed[w.folded] || strings.HasSuffix(w.folded, "-tu") || strings.HasSuffix(w.folded, "-vous") || leadSubjects[w.folded] && leadAuxiliaries[before] { // "how should I answer"
			addressed = true
		}
		if class.Has(leadWork|leadEdit) && !begins && !addressed && !leadHelpers[before] {
			class &^= leadWork | leadEdit // no order: "I translate books"
		}
		if class.Has(leadEdit) && class.Has(leadKind) && !begins && ws[i-1].in(inStop) && !leadSubjects[before] && !leadAddressed[before] && !leadAuxiliaries[before] && before != "to" {
			class &^= leadEdit // "my review": a noun
		}
		if class.Has(leadPointer|leadBack) && !l.points(ws, i) {
			class &^= leadPointer | leadBack
		}
		ordered = ordered || class.Has(leadWork|leadEdit)
		l.class |= class
		if ordered && known == 0 && !w.in(inStop|inLead) && !leadCourtesy[w.folded] && !text.IsFunctionWord(w.folded) && !text.IsFunctionWord(strings.ToLower(w.raw)) &&
			len(w.raw) > 2 && w.folded[0] < 0xe0 && !leadBefore[w.folded] && !leadBefore[before] && !leadBefore[folded(ws, i-2)] {
			l.elsewhere = true
		}
	}
	return l
}

// points reports whether ws[i], which may point to a text, does: "this" alone
// or before the name of one, not "this plan" and not "books that ...".
func (l *lead) points(ws []word, i int) bool {
	if before := i - 1; ws[i].folded == "that" && before >= 0 && !ws[i].clause && ws[before].isContent() && !text.HandoverOf(ws[before].folded).Has(leadWork|leadEdit) {
		return false
	}
	for j := i + 1; j < len(ws) && j <= i+3; j++ { // "this short email"
		if text.HandoverOf(ws[j].folded).Has(leadKind) {
			return true
		}
	}
	if i+1 == len(ws) || ws[i+1].clause {
		return true
	}
	next := &ws[i+1]
	if i > 0 && text.HandoverOf(next.folded) != 0 && (leadCopulas[ws[i-1].folded] || leadAuxiliaries[ws[i-1].folded] || ws[i-1].folded == "does") { // "is this correct"
		return true
	}
	return !next.isContent() || text.HandoverOf(next.folded) != 0 && !text.HandoverOf(next.folded).Has(leadQuality) || leadBefore[next.folded] || text.IsFunctionWord(next.folded) ||
		leadCourtesy[next.folded] || strings.HasSuffix(next.folded, "er") || next.folded == "sound" || next.folded == "sounds" || next.folded[0] >= 0xe0 ||
		l.class.Has(leadWork|leadEdit) && !l.elsewhere // "make this formal", "rewrite this properly"
}

var (
	leadSubjects    = setOf("i we ich wir je nous yo nosotros io noi eu nos ik wij jag vi ja ben biz я мы")
	leadAddressed   = setOf("you u du sie ihr euch tu vous usted ustedes voce voces jij je u tu te ty pan pani siz sen ты вы puedes podrias pouvez peux kannst konntest puoi potresti pode pode kun")
	leadFrom        = setOf("from by aus von de da di van fran od iz из от")
	leadHelpers     = setOf("help me mir moi us uns nous please bitte lets let mal doch")
	leadAuxiliaries = setOf("should do did can could would must may shall might soll sollte sollen kann konnen konnte muss dois puis devons debo puedo devo posso moet kan zal ska powinienem")
)

// leadSign is what is between a lead and what follows it.
type leadSign uint8

const (
	signPoint     leadSign = iota // the end of a sentence
	signAsks                      // the end of a question
	signAsksAbove                 // the same, with a line of its own
	signBreak                     // the end of a line without a sign
	signDash                      // a dash
	signStrong                    // a colon, or a quotation begins
)

// handsOverNext reports whether what follows the lead is a text to work on, or
// what somebody else has said.
func (l *lead) handsOverNext(sign leadSign) bool {
	c := l.class
	order := c.Has(leadWork | leadEdit)
	points := c.Has(leadPointer | leadAhead)
	about := c.Has(leadKind | leadQuality)
	switch {
	case l.words == 0 && c == 0, c.Has(leadOwn):
		return false
	case sign == signDash:
		return order && points && (c.Has(leadWork) || about || c.Has(leadSound)) || points && c.Has(leadKind) && !l.speaks && l.words <= maxAnnouncement
	case sign == signStrong:
		switch {
		case c.Has(leadSays), c.Has(leadWork), c.Has(leadEdit) && (points || about || c.Has(leadBack)), points && (about || c.Has(leadSound) || c.Has(leadGot) && c.Has(leadPointer)),
			points && (!l.speaks && !l.states || l.states && l.from), c.Has(leadQuality) && !l.speaks && !l.states && l.words <= 4:
			return true
		}
		return c.Has(leadKind) && !l.speaks && !l.states && !c.Has(leadCreate) && l.words <= maxAnnouncement
	case sign == signBreak:
		return c.Has(leadWork) && (!l.elsewhere || points) || c.Has(leadEdit) && (points || about && !l.elsewhere) || c.Has(leadAhead) && c.Has(leadKind) ||
			l.ends && !l.speaks && !l.states
	case l.words > maxQuestion:
		return false
	}
	asks := sign != signPoint
	switch {
	case asks && points && c.Has(leadQuality|leadSound|leadSays|leadKind):
		return true
	case l.elsewhere && !c.Has(leadAhead), !points && !c.Has(leadBack):
		return false
	case c.Has(leadWork), asks && c.Has(leadQuality|leadSound):
		return true
	}
	return order && about && points
}

// maxQuestion is the largest number of words of a question or order that a text
// follows without a sign that it does.
const maxQuestion = 16

// handsOverBefore reports whether the lead, which nothing follows, is about the
// text before it.
func (l *lead) handsOverBefore(asks bool) bool {
	c := l.class
	back := c.Has(leadPointer | leadBack)
	switch {
	case c.Has(leadOwn | leadCreate), l.elsewhere:
		return false
	case c.Has(leadWork):
		return true
	case c.Has(leadEdit) && c.Has(leadQuality):
		return true
	case c.Has(leadEdit) && c.Has(leadKind) && back:
		return true
	}
	return asks && back && c.Has(leadQuality)
}

// maxAnnouncement is the largest number of words of a heading: "Sample message
// of a customer:".
const maxAnnouncement = 8

// maxLeads bounds the sentences of a message that are read as leads, and
// leadSigns the signs within one of them.
const (
	maxLeads  = 200
	leadSigns = 3
)

// passage is a part of a text.
type passage struct{ from, to int }

// handedOver returns the parts of a message that are texts to work on, with
// what introduces them, in their order.
func handedOver(s string) (cut []passage) {
	var all []passage // sentences that are not cut
	at, done := 0, 0
	for n, sentence := range text.Sentences(s) {
		if n == maxLeads {
			break
		}
		from := at + strings.Index(s[at:], sentence)
		to := from + len(sentence)
		at = to
		if from < done {
			continue
		}
		begins, speaks := leadIn(s, from, to)
		if begins < 0 {
			all = append(all, passage{from, to})
			continue
		}
		done = handedEnd(s, begins)
		if speaks { // "I'm a nurse, please translate this: ..."
			from = begins
		}
		cut = append(cut, passage{from, done})
	}
	for back := 0; back < 2 && len(all) > 0; back++ {
		last := all[len(all)-1]
		if len(cut) > 0 && cut[len(cut)-1].from > last.from {
			break
		}
		words := strings.TrimSpace(s[last.from:last.to])
		l := readLead(strings.TrimRight(words, ".?!。？！؟।"))
		if l.handsOverBefore(strings.HasSuffix(words, "?") || strings.HasSuffix(words, "？") || strings.HasSuffix(words, "؟")) {
			start := 0
			if len(cut) > 0 {
				start = cut[len(cut)-1].to
			}
			quoted := longQuotations(s[start:last.from])
			for _, q := range quoted { // the person's own words are around it
				cut = append(cut, passage{start + q.from, start + q.to})
			}
			if len(quoted) == 0 && start < last.from && !strings.Contains(s[start:last.from], fenceMark) {
				cut = append(cut, passage{start, last.from})
			}
			break
		}
		if l.words > 3 {
			break
		}
		all = all[:len(all)-1] // "Thanks!", or code
	}
	return cut
}

// leadIn returns where the text begins that the sentence s[from:to], or a part
// of it, introduces, or -1. speaks reports whether the person may say something
// of themselves in what introduces it.
func leadIn(s string, from, to int) (begins int, speaks bool) {
	signs := 0
	for i := from; i < to && signs < leadSigns && i-from <= maxLead; {
		r, n := utf8.DecodeRuneInString(s[i:])
		next, _ := utf8.DecodeRuneInString(s[i+n:])
		strong, after, sign := false, i+n, signStrong
		switch {
		case r == ':' || r == '：':
			strong = r == '：' || i+n == len(s) || unicode.IsSpace(next) || isQuoteSign(next)
		case r == '-' || r == '–' || r == '—':
			strong, sign = i > from && i+n < to && (s[i-1] == ' ' && (next == ' ' || next == '-') || r == '—'), signDash
		case i > from && isQuoteSign(r) && quotationEnd(s, i) > i:
			strong, after = true, i
		}
		if strong {
			signs++
			if !isText(s[after:]) {
				return -1, false
			}
			if l := readLead(strings.TrimSpace(s[from:i])); l.handsOverNext(sign) {
				return after, l.mayState()
			}
		}
		i += n
	}
	if !isText(s[to:]) {
		return -1, false
	}
	sentence := s[from:to]
	sign, ownLine := signBreak, strings.HasPrefix(strings.TrimLeft(s[to:], " \t"), "\n")
	switch last, _ := utf8.DecodeLastRuneInString(sentence); {
	case last == ':' || last == '：':
		return -1, false // has been read
	case last == '?' || last == '？' || last == '؟':
		sign = signAsks
		if ownLine {
			sign = signAsksAbove
		}
	case strings.ContainsRune(".!…。！।", last):
		sign = signPoint
	case !ownLine:
		sign = signPoint
	}
	l := readLead(sentence)
	if !l.handsOverNext(sign) {
		return -1, false
	}
	return to, l.mayState()
}

// isText reports whether what follows a lead is more than "Thanks!".
func isText(s string) bool {
	s = strings.TrimSpace(s[:min(len(s), 200)])
	return len(strings.Fields(s)) > 2 || strings.HasPrefix(s, fenceMark) || hasIdeographs(s) && utf8.RuneCountInString(s) > 6
}

// mayState reports whether an order that introduces a text may be in a
// sentence in which the person says something of themselves.
func (l *lead) mayState() bool {
	return l.speaks && l.class.Has(leadWork|leadEdit) && !l.class.Has(leadSays)
}

// handedEnd returns where a text to work on ends that begins at s[at]: with the
// quotation that it is, before a paragraph in which the person speaks again, or
// with the message.
func handedEnd(s string, at int) int {
	from := at + len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n-–—"))
	if from >= len(s) {
		return len(s)
	}
	if strings.HasPrefix(s[from:], fenceMark) {
		return from + len(fenceMark)
	}
	if end := quotationEnd(s, from); end > 0 {
		return end
	}
	if strings.Contains(s[at:from], "\n") {
		return len(s)
	}
	for i := from; ; { // it began on the line of its lead
		j := strings.Index(s[i:], "\n\n")
		if j < 0 {
			return len(s)
		}
		i += j + 2
		if resumes(s[i:]) {
			return i
		}
	}
}

// resumes reports whether a paragraph begins as one in which the person speaks
// again.
func resumes(paragraph string) bool {
	start := fold(strings.TrimLeft(paragraph[:min(len(paragraph), 40)], " \n"))
	for _, p := range [...]string{"by the way", "btw", "also", "oh,", "oh and", "ps", "p.s.", "as for me", "ubrigens", "ach ja", "au fait", "por cierto", "a proposito", "overigens",
		"кстати", "对了", "對了", "顺便", "順便", "ちなみに", "そういえば", "그런데", "참고로", "वैसे", "بالمناسبة"} {
		if strings.HasPrefix(start, p) {
			return true
		}
	}
	return false
}

func isQuoteSign(r rune) bool { return strings.ContainsRune("\"'“„«「『‘`", r) }

// maxQuoted is the longest quotation that is looked for, in bytes.
const maxQuoted = 16 << 10

// quotationEnd returns the end of the quotation that opens at s[at], of any
// number of sentences, or 0 if none does.
func quotationEnd(s string, at int) int {
	r, n := utf8.DecodeRuneInString(s[at:])
	closing := ""
	switch r {
	case '"':
		if closing = `"`; strings.HasPrefix(s[at:], `"""`) {
			closing, n = `"""`, 3
		}
	case '“':
		closing = "”"
	case '„':
		closing = "“"
		reach := s[at:min(len(s), at+maxQuoted)]
		if i, j := strings.Index(reach, "”"), strings.Index(reach, "“"); i >= 0 && (j < 0 || i < j) {
			closing = "”"
		}
	case '«':
		closing = "»"
	case '「':
		closing = "」"
	case '『':
		closing = "』"
	case '‘':
		closing = "’"
	case '\'', '`':
		closing = string(r)
	default:
		return 0
	}
	if before, _ := utf8.DecodeLastRuneInString(s[:at]); at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before)) && r != '「' && r != '『' && r != '“' {
		return 0
	}
	inside := s[at+n : min(len(s), at+n+maxQuoted)]
	for from := 0; ; {
		i := strings.Index(inside[from:], closing)
		if i < 0 {
			return 0
		}
		i += from
		end := i + len(closing)
		after, _ := utf8.DecodeRuneInString(inside[end:])
		if from = end; i > 0 && (!unicode.IsLetter(after) && !unicode.IsDigit(after) || r == '「' || r == '『') {
			return at + n + end
		}
	}
}

// maxQuotations bounds the quotations of a message that are looked for.
const maxQuotations = 64

// longQuotations returns the quotations that begin at the start of a line
// or after a colon and have more than one sentence or many words.
func longQuotations(s string) (cut []passage) {
	if !strings.ContainsAny(s, "\"'“„«「『‘") {
		return nil
	}
	tries := 0
	line := true // only signs and blanks since the line began, or a colon
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if line && isQuoteSign(r) && tries < maxQuotations {
			tries++
			if end := quotationEnd(s, i); end > 0 {
				if inside := s[i+n : end]; len(strings.Fields(inside)) >= 6 || strings.ContainsAny(strings.TrimRight(inside, "\"'”“»」』’.!?。！？"), ".!?。！？") || len(inside) > 60 {
					cut = append(cut, passage{i, end})
				}
				i = end
				continue
			}
		}
		switch {
		case r == '\n' || r == ':' || r == '：':
			line = true
		case r != ' ' && r != '-' && r != '*' && r != '\t':
			line = false
		}
		i += n
	}
	return cut
}

// fenceMark stands for fenced code while typedText reads a message: what
// introduces a text may introduce the code.
const fenceMark = "\ue001"

// typedText returns the part of a message in which its speaker speaks in their
// own name, and how many passages of their own words were cut: texts to work
// on, quotations, and what does not look typed. own is the message's own words.
func typedText(message, own string) (typed string, passages int) {
	fenced := strings.Contains(message, "```") || strings.Contains(message, "~~~")
	if typed = own; fenced {
		typed = ownWords(cutForwarded(markFences(message)))
	}
	for _, find := range [...]func(string) []passage{handedOver, longQuotations, pasted} {
		if cut := find(typed); len(cut) > 0 {
			passages += len(cut)
			typed = without(typed, cut)
		}
	}
	if fenced {
		typed = strings.TrimSpace(strings.ReplaceAll(typed, fenceMark, ""))
	}
	return typed, passages
}

// markFences puts a mark in the place of fenced code.
func markFences(s string) string {
	var out strings.Builder
	for _, fence := range [...]string{"```", "~~~"} {
		out.Reset()
		for {
			before, after, open := strings.Cut(s, fence)
			out.WriteString(before)
			if !open {
				break
			}
			out.WriteString("\n" + fenceMark + "\n")
			_, s, _ = strings.Cut(after, fence)
		}
		s = out.String()
	}
	return s
}

// without returns s without the passages, which are in order.
func without(s string, cut []passage) string {
	var b strings.Builder
	at := 0
	for _, p := range cut {
		if p.from < at {
			p.from = at
		}
		if p.to <= p.from {
			continue
		}
		b.WriteString(s[at:p.from])
		b.WriteByte('\n')
		at = p.to
	}
	b.WriteString(s[at:])
	return strings.TrimSpace(b.String())
}
