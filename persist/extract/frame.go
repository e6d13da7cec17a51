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
	if mayBeFiction.in(lower) && anySentence(own, fictional) {
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
	wishes     = rows(`
		off the record
		keep this out of your memory
		keep that out of your memory
		keep it out of your memory
		not for your memory
		merk dir das nicht
		merke dir das nicht
		merk dir das bitte nicht
		speicher das nicht
		speichere das nicht
		speichere das bitte nicht
		speicher das bitte nicht
		ne retiens pas
		ne retenez pas
		ne enregistre pas cela
		ne enregistre pas ca
		ne garde pas ca
		ne garde pas cela
		no guardes esto
		no guardes eso
		no lo guardes
		no recuerdes esto
		no recuerdes eso
		no memorices esto
	`)
)

// declining recognises "don't remember that", "do not store this: ...", "off the record".
func declining(ws []word) bool {
	for i := range ws {
		for _, row := range wishes[ws[i].folded] {
			if begins(ws[i:], row) {
				return true
			}
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

var fictions = rows(`
	pretend
	let us pretend
	let us role
	let us roleplay
	let us role-play
	role play
	role-play
	roleplay
	in this role
	in this role-play
	in the role of
	in this roleplay
	in this story
	in my novel
	for my novel
	for a novel
	for my story
	for a story
	for my screenplay
	for a screenplay
	act as if
	hypothetically
	hypothetical
	suppose
	imagine i
	imagine that i
	imagine we
	imagine that we
	for the sake of argument
	for the sake of the argument
	just kidding
	i am kidding
	i am joking
	i was kidding
	i was joking
	tun wir so
	angenommen
	imaginons
	supongamos
`)

// tales ask for a text: what comes behind them is what it is to tell. What stands before is the user's own: "Our Mia was born on May 3.
// Write a poem about it."
var tales = rows(`
	write a story
	write a short story
	write me a story
	write me a short story
	tell me a story
	write a poem
	write me a poem
	write a fairy tale
	schreib eine geschichte
	schreib mir eine geschichte
	schreibe eine geschichte
	erzahl mir eine geschichte
	ecris une histoire
	raconte une histoire
	raconte moi une histoire
	escribe una historia
	escribe un cuento
	cuentame un cuento
`)

// Role play goes on in the messages that follow, until it is said to be over.
var (
	playsBegin = rows(`
		let us role
		let us roleplay
		let us role-play
		let us play a role
		role play
		role-play
		roleplay
		pretend you
		pretend to be you
		pretend that you
		lass uns ein rollenspiel
		spielen wir ein rollenspiel
		rollenspiel
		faisons un jeu de role
		jeu de role
		hagamos un juego de rol
		juego de rol
	`)
	playsEnd = rows(`
		end of role
		end of the role
		end of roleplay
		end role
		end the role
		stop the role
		stop role
		stop roleplay
		out of character
		ooc
		back to reality
		enough of the role
		no more role
		rollenspiel ende
		ende des rollenspiels
		fin du jeu
		fin del juego
	`)
	mayPlay = newNeedles("role", "rolle", "pretend", "juego de rol", "character", "ooc", "reality", "fin du jeu", "fin del juego")
)

// plays says whether role play goes on behind a message, if it did before it.
func plays(own string, before bool) bool {
	if !mayPlay.in(smalled(own)) {
		return before
	}
	anySentence(own, func(ws []word) bool {
		for i := range ws {
			if i > 0 && !ws[i].clause && !ws[i-1].in(inLead|inConjunctions) {
				continue
			}
			before = (before || startsOne(ws[i:], playsBegin)) && !startsOne(ws[i:], playsEnd)
		}
		return false
	})
	return before
}

// startsOne says whether words begin with one of rows.
func startsOne(ws []word, rows map[string][][]string) bool {
	for _, row := range rows[ws[0].folded] {
		if begins(ws, row) {
			return true
		}
	}
	return false
}

func fictional(ws []word) bool { return someClause(ws, fictions) }

// someClause looks at the beginnings of clauses, behind greetings.
func someClause(ws []word, rows map[string][][]string) bool {
	for i := range ws {
		if i > 0 && !ws[i].clause && !ws[i-1].in(inLead|inConjunctions) {
			continue
		}
		if startsOne(ws[i:], rows) {
			return true
		}
	}
	return false
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
