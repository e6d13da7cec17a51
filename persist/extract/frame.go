package extract

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/text"
)

// A frame is how a message as a whole is meant.
type frame uint8

const (
	framePlain      frame = iota
	frameDeclined         // the user does not want it kept: nothing of the turn is stored
	frameFiction          // "I" is not the user
	frameTranscript       // it quotes a conversation
)

// frameOf reads the own words of a message.
func frameOf(own string) frame {
	lower := strings.ToLower(own)
	if mayDecline(lower) && declines(own) {
		return frameDeclined
	}
	if transcribes(lower) {
		return frameTranscript
	}
	if mayBeFiction.in(lower) && anySentence(own, phrases().fiction.beginsClause) {
		return frameFiction
	}
	return framePlain
}

var (
	mayBeFiction = needles{"pretend", "role", "hypothetical", "sake of", "novel", "story", "screenplay", "kidding", "joking", "act as if", "imagine",
		"suppose", "fictional", "tun wir so", "angenommen", "imaginons", "supongamos"}
	mayBeTale    = needles{"story", "poem", "fairy tale", "geschichte", "histoire", "historia", "cuento"}
	mayDeclineBy = needles{"remember", "memori", "store", "save", "keep", "record", "forget", "speicher", "merk", "retiens", "enregistre", "garde",
		"guarde", "recuerde", "retenez", "notier", "behalt", "note", "conserv", "almacen", "registr", "anote", "apunte", "ricord", "salv", "annota", "lembre", "grave",
		"armazen", "onthou", "bewaar", "opsla", "noteer", "zapami", "zapis", "spara", "husk", "lagre", "gem", "hatirla", "kaydet", "sakla",
		"between us", "between you and me", "unter uns", "entre no", "tra noi", "tussen ons"}
	mayTranscribe = needles{"assistant:", "ai:", "bot:"}
)

// anySentence reports whether is holds for any sentence.
func anySentence(own string, is func(ws []word) bool) bool {
	var space [stackWords]word
	for _, s := range text.Sentences(own) {
		if ws := appendWords(space[:0], s); len(ws) > 0 && is(ws) {
			return true
		}
	}
	return false
}

func mayDecline(lower string) bool {
	return mayDeclineBy.in(lower) || !text.IsASCII(lower)
}

func declines(own string) bool {
	return anySentence(own, declining) || anySentence(own, declinesToKeep) || declinedRuns.in(own)
}

var (
	noting   = setOf("remember memorize memorise")
	keeping  = setOf("store save keep record retain")
	keptWhat = setOf("this that it these those anything")
	// before "do not" they make a statement of it: "I don't remember that"
	statementSubjects = setOf("i we you they he she it who people users which")
)

// declining recognises "don't remember that", "do not store this: ...", "off
// the record".
func declining(ws []word) bool {
	for i := range ws {
		if phrases().declined.prefix(ws[i:]) > 0 {
			return true
		}
		var verb int
		switch {
		case ws[i].folded == "do" && folded(ws, i+1) == "not":
			verb = i + 2
		case ws[i].folded == "dont", ws[i].folded == "never":
			verb = i + 1
		default:
			continue
		}
		if i > 0 && statementSubjects[ws[i-1].folded] && !ws[i].clause {
			continue
		}
		what := verb + 1
		if folded(ws, what) == "any" && folded(ws, what+1) == "of" {
			what += 2
		}
		if !keptWhat[folded(ws, what)] {
			continue
		}
		if noting[folded(ws, verb)] {
			return true
		}
		if !keeping[folded(ws, verb)] {
			continue
		}
		switch next := what + 1; { // "don't save it to disk" is not about memory
		case next == len(ws), ws[next].clause, ws[next].in(inConjunctions), ws[next].folded == "please", ws[next].folded == "anywhere":
			return true
		case (ws[next].folded == "in" || ws[next].folded == "to") && folded(ws, next+1) == "your":
			return true
		}
	}
	return false
}

var mayPlay = needles{"role", "rolle", "pretend", "juego de rol", "character", "ooc", "reality", "fin du jeu", "fin del juego"}

// rolePlayAfter reports whether role play continues after a message, given
// whether it was going on before. It lasts over several messages, until
// somebody says that it is over.
func rolePlayAfter(own string, before bool) bool {
	if !mayPlay.in(strings.ToLower(own)) {
		return before
	}
	anySentence(own, func(ws []word) bool {
		for i := range ws {
			if startsClause(ws, i) {
				before = (before || phrases().playBegins.prefix(ws[i:]) > 0) && phrases().playEnds.prefix(ws[i:]) == 0
			}
		}
		return false
	})
	return before
}

// transcribes finds lines of both sides of a conversation.
func transcribes(lower string) bool {
	if !mayTranscribe.in(lower) {
		return false
	}
	spokenBySpeaker, answered := false, false
	for line := range strings.Lines(lower) {
		who, _, _ := strings.Cut(strings.TrimLeft(line, " \t*>#-"), ":")
		switch who {
		case "user", "human", "me", "customer":
			spokenBySpeaker = true
		case "assistant", "ai", "bot":
			answered = true
		}
		if _, rest, ok := strings.Cut(line, "user:"); ok && strings.Contains(rest, "assistant:") {
			return true // in one line
		}
	}
	return spokenBySpeaker && answered
}

var tags = setOf("right correct yes no true oder verdad cierto vero")

// asksConfirmation reports whether a question only asks to confirm a statement:
// "I live in Paris, right?" The speaker is not sure of it.
func asksConfirmation(ws []word) bool {
	for i := max(1, len(ws)-5); i < len(ws); i++ {
		if !ws[i].clause {
			continue
		}
		tail := ws[i:]
		switch first := tail[0].folded; {
		case len(tail) == 1 && tags[first], first == "nicht" && folded(tail, 1) == "wahr", first == "ne" && folded(tail, 1) == "est", first == "no" && folded(tail, 1) == "es":
			return true
		case (first == "is" || first == "was") && (folded(tail, 1) == "that" || folded(tail, 1) == "it" || folded(tail, 1) == "not"):
			return true
		case (first == "am" || first == "are" || first == "do" || first == "did" || first == "have" || first == "has" || first == "does") && len(tail) <= 3 && (tail[len(tail)-1].in(inPersonal) || statementSubjects[tail[len(tail)-1].folded]):
			return true
		}
	}
	return false
}

// quoted reports whether an offset is between quotation marks.
func quoted(s string, at int) bool {
	open := 0
	for _, r := range s[:at] {
		switch r {
		case '"':
			open ^= 1
		case '“', '«', '„':
			open |= 1
		case '”', '»':
			open = 0
		}
	}
	return open == 1
}

var supposing = setOf("if wenn falls si se")

// hypothetical reports whether a sentence says what would be if something were
// otherwise: "If I lived in Paris, I would ..."
func hypothetical(ws []word) bool {
	if !slices.ContainsFunc(ws, func(w word) bool { return supposing[w.folded] }) { // the usual case
		return false
	}
	supposes, would := false, false
	for i := range ws {
		w, next := ws[i].folded, folded(ws, i+1)
		switch {
		case supposing[w]:
			supposes = supposes || firstPerson[next] || next == "my" || next == "our" || w == "se" && (strings.HasSuffix(next, "ssi") || next == "eu")
		case w == "would" || w == "could":
			would = true
		default:
			raw := strings.ToLower(ws[i].raw)
			for _, end := range [...]string{"würde", "würden", "wäre", "wären", "hätte", "hätten", "könnte", "könnten"} {
				would = would || raw == end
			}
			if i > 1 && supposes {
				would = would || strings.HasSuffix(raw, "ssi") || strings.HasSuffix(raw, "asse") || strings.HasSuffix(raw, "esse") || strings.HasSuffix(raw, "rais") || strings.HasSuffix(raw, "rait") || strings.HasSuffix(raw, "ría") || strings.HasSuffix(raw, "ríamos")
			}
		}
	}
	return supposes && would
}
