package extract

import (
	"slices"
	"strings"

	"github.com/remora-proxy/remora/text"
)

// A message may say of itself how it is meant: not to be kept, as fiction, or as what others said. That goes for all of
// it, wherever in it that stands.

type frame uint8

const (
	framePlain      frame = iota
	frameDeclined         // the user does not want it kept: nothing of the turn is stored
	frameFiction          // what "I" says there is nobody's
	frameTranscript       // it quotes a conversation
)

// frameOf reads the own words of a message.
func frameOf(own string) frame {
	lower := smalled(own)
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
	mayBeFiction = newNeedles("pretend", "role", "hypothetical", "sake of", "novel", "story", "screenplay", "kidding", "joking", "act as if", "imagine",
		"suppose", "fictional", "tun wir so", "angenommen", "imaginons", "supongamos")
	mayBeTale    = newNeedles("story", "poem", "fairy tale", "geschichte", "histoire", "historia", "cuento")
	mayDeclineBy = newNeedles("remember", "memori", "store", "save", "keep", "record", "forget", "speicher", "merk", "retiens", "enregistre", "garde",
		"guarde", "recuerde", "retenez")
	mayTranscribe = newNeedles("assistant:", "ai:", "bot:")
)

// anySentence asks is of every sentence that is not code.
func anySentence(own string, is func(ws []word) bool) bool {
	var space [stackWords]word
	for _, s := range text.Sentences(own) {
		if ws := appendWords(space[:0], s); len(ws) > 0 && is(ws) {
			return true
		}
	}
	return false
}

// declined says whether a message asks not to be kept.
func declined(text string) bool {
	return mayDecline(smalled(text)) && declines(ownWords(text))
}

func mayDecline(lower string) bool {
	return mayDeclineBy.in(lower)
}

func declines(own string) bool { return anySentence(own, declining) }

var (
	noting   = setOf("remember memorize memorise")
	keeping  = setOf("store save keep record retain")
	keptWhat = setOf("this that it these those anything")
	// before "do not" they make it a statement: "I don't remember that"
	whoDoesNot = setOf("i we you they he she it who people users which")
)

// declining recognises "don't remember that", "do not store this: ...", "off the record".
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
		if i > 0 && whoDoesNot[ws[i-1].folded] && !ws[i].clause {
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
		switch next := what + 1; { // "don't save it to disk" is about something else
		case next == len(ws), ws[next].clause, ws[next].in(inConjunctions), ws[next].folded == "please", ws[next].folded == "anywhere":
			return true
		case (ws[next].folded == "in" || ws[next].folded == "to") && folded(ws, next+1) == "your":
			return true
		}
	}
	return false
}

// Role play goes on in the messages that follow, until it is said to be over.
var (
	mayPlay = newNeedles("role", "rolle", "pretend", "juego de rol", "character", "ooc", "reality", "fin du jeu", "fin del juego")
)

// plays says whether role play goes on behind a message, if it did before it.
func plays(own string, before bool) bool {
	if !mayPlay.in(smalled(own)) {
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
	lower = strings.ToLower(lower)
	asked, answered := false, false
	for line := range strings.Lines(lower) {
		who, _, _ := strings.Cut(strings.TrimLeft(line, " \t*>#-"), ":")
		switch who {
		case "user", "human", "me", "customer":
			asked = true
		case "assistant", "ai", "bot":
			answered = true
		}
		if _, rest, ok := strings.Cut(line, "user:"); ok && strings.Contains(rest, "assistant:") {
			return true // in one line
		}
	}
	return asked && answered
}

var tags = setOf("right correct yes no true oder verdad cierto vero")

// tagged says whether a question is a statement that is only asked to be confirmed: "I live in Paris, right?" It says what the
// speaker is not sure of.
func tagged(ws []word) bool {
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
		case (first == "am" || first == "are" || first == "do" || first == "did" || first == "have" || first == "has" || first == "does") && len(tail) <= 3 && (tail[len(tail)-1].in(inPersonal) || whoDoesNot[tail[len(tail)-1].folded]):
			return true
		}
	}
	return false
}

// quoted says whether an offset stands between quotation marks.
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

var supposing = setOf("if wenn falls si")

// unreal says whether a sentence tells what would be if something were otherwise: "If I lived in Paris, I would ..."
func unreal(ws []word) bool {
	if !slices.ContainsFunc(ws, func(w word) bool { return supposing[w.folded] }) { // most
		return false
	}
	supposes, would := false, false
	for i := range ws {
		w, next := ws[i].folded, folded(ws, i+1)
		switch {
		case supposing[w]:
			supposes = supposes || firstPerson[next] || next == "my" || next == "our"
		case w == "would" || w == "could":
			would = true
		default:
			raw := strings.ToLower(ws[i].raw)
			for _, end := range [...]string{"würde", "würden", "wäre", "wären", "hätte", "hätten", "könnte", "könnten"} {
				would = would || raw == end
			}
			if i > 1 && supposes {
				would = would || strings.HasSuffix(raw, "rais") || strings.HasSuffix(raw, "rait") || strings.HasSuffix(raw, "ría") || strings.HasSuffix(raw, "ríamos")
			}
		}
	}
	return supposes && would
}
