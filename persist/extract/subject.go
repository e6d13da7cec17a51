package extract

import (
	"slices"
	"strings"
)

// A subject is what a statement gives a value to, if it has one value at a
// time: where somebody lives, when a deadline is, what a favourite is. Of two
// statements with one subject and different values the newer holds. Most
// statements have no subject and add to what is known.

// attributes have one value at a time, whatever it is. comparables do only if
// old and new value are of one kind: "my manager is called Tom" and "my manager
// is away" do not exclude each other.
var (
	attributes = setOf(`name nickname surname pronouns address email birthday hometown city timezone favorite favourite preferred diet
		adresse geburtstag lieblingsfarbe lieblingsessen wohnort nom prenom anniversaire prefere preferee nombre apellido direccion cumpleanos favorito favorita`)
	comparables = setOf(`age job title role employer company boss manager supervisor landlord doctor dentist salary rent budget deadline pension
		weight height size goal target car number appointment meeting flight launch release exam wedding party trip demo interview port version
		branch region license lease rate limit password team thesis submission surgery freeze standup migration database db editor host price password
		chef chefin miete budget frist termin abgabe hochzeit gehalt vermieter arzt version datenbank
		loyer echeance salaire rendez-vous livraison mariage chef base
		alquiler presupuesto plazo fecha entrega sueldo jefe jefa cita boda base`)
	copulas  = setOf("is are was ist sind est sont es son moved runs costs liegt betragt lauft cuesta coute")
	owners   = setOf("my our the mein meine unser unsere der die das mon ma mes notre le la les mi mis nuestro nuestra el los")
	dwelling = setOf("live living based moved relocated settled wohne lebe habite demenage emmenage vis vivo resido mudado mude mudamos")
	atPlaces = setOf("in to at near outside bei a en")
	working  = setOf("work working arbeite travaille trabajo")
	atFirms  = setOf("at for bei chez para en fur")
)

// subjectOf returns what a statement is about and the value that it gives, or
// "".
func subjectOf(ws []word) (subject, value string) {
	_, from := mainWord(ws)
	ws = ws[from:]
	if len(ws) < 3 {
		return "", ""
	}
	if owners[folded(ws, 0)] {
		for i := 1; i < len(ws) && i <= 7; i++ {
			if !copulas[ws[i].folded] {
				continue
			}
			if i == 1 {
				break
			}
			about, kind := attributeOf(ws[1:i]), ""
			if about == "" {
				break
			}
			rest := ws[i+1:]
			if len(rest) > 0 && lexicon().negation[rest[0].folded] {
				break // "my name is not Peter" does not say what it is
			}
			if !strings.HasPrefix(about, "=") {
				if kind = kindOfValue(rest); kind == "" {
					break
				}
			}
			return strings.TrimPrefix(about, "=") + "|" + kind, normalised(rest)
		}
	}
	if subject, value, ok := renamed(ws); ok {
		return subject, value
	}
	for i := range min(len(ws), 6) {
		w := folded(ws, i)
		next := folded(ws, i+1)
		switch {
		case (w == "call" || w == "appelle" || w == "appelez") && (next == "me" || next == "moi"), w == "nenn" && next == "mich", w == "je" && next == "me" && folded(ws, i+2) == "appelle":
			if value := ws[min(i+2, len(ws)):]; spokenBySpeaker(ws[:i]) && isName(value) {
				return "name|", normalised(value)
			}
		case w == "llamame", w == "heisse", w == "llamo":
			return "name|", normalised(ws[i+1:])
		case dwelling[w] && atPlaces[next] && bySpeaker(ws[:i]):
			return "home|", normalised(ws[i+2:])
		case w == "nach" && (firstPerson[folded(ws, 0)] || firstPerson[folded(ws, 1)] || firstPerson[folded(ws, 2)]):
			for j := i + 2; j < min(len(ws), i+5); j++ {
				if f := folded(ws, j); f == "umgezogen" || f == "gezogen" {
					return "home|", normalised(ws[i+1 : j])
				}
			}
		case working[w] && atFirms[next] && bySpeaker(ws[:i]):
			return "work|", normalised(ws[i+2:])
		case (w == "prefer" || w == "prefere" || w == "prefiero" || w == "bevorzuge") && bySpeaker(ws[:i]):
			if a, b, ok := preferredOver(ws[i+1:]); ok {
				both := []string{a, b}
				slices.Sort(both)
				return "prefer " + strings.Join(both, " / ") + "|", a
			}
		case (w == "i" && next == "am" || w == "ich" && next == "bin") && isAge(ws, i+2):
			if i == 0 || ws[i].clause && !conditional(ws[:i]) {
				return "age|number", folded(ws, i+2)
			}
		case (w == "ai" || w == "tengo") && bySpeaker(ws[:i]) && (folded(ws, i+2) == "ans" || folded(ws, i+2) == "anos"):
			return "age|number", next
		case (w == "weigh" || w == "wiege" || w == "pese" || w == "peso") && bySpeaker(ws[:i]) && strings.ContainsAny(next+folded(ws, i+2), "0123456789"):
			return "weight|number", normalised(ws[i+1:])
		case w == "decided" || w == "chose" || w == "picked" || w == "going" && next == "with" || w == "entschieden" || w == "decide" || w == "decidido" || w == "choisi" || w == "elegido":
			for j := len(ws) - 1; j > i; j-- {
				if f := ws[j].folded; f == "for" || f == "fur" || f == "pour" || f == "para" {
					if about, _ := contentOf(ws[j+1:]); len(about) > 0 && j > i+1 {
						return "decision " + strings.Join(about, " ") + "|", normalised(ws[i+1 : j])
					}
				}
			}
		}
	}
	return "", ""
}

// renamed reads "we renamed the staging database to orders_2" and "we moved the
// standup, it's now at ten": another value for what "the staging database is
// ..." gives one to.
func renamed(ws []word) (subject, value string, ok bool) {
	if !firstPerson[ws[0].folded] {
		return "", "", false
	}
	i := 1
	for i < len(ws) && (ws[i].in(inAdverb) || auxiliary[ws[i].folded]) {
		i++
	}
	if i+2 >= len(ws) || !renaming[ws[i].folded] || !owners[ws[i+1].folded] {
		return "", "", false
	}
	about := ws[i+2:]
	for j := 1; j < len(about) && j <= 4; j++ {
		rest := about[j:]
		switch w := rest[0].folded; {
		case w == "to":
			rest = rest[1:]
		case w == "it" && folded(rest, 1) == "is":
			rest = rest[2:]
			for len(rest) > 0 && (rest[0].folded == "now" || rest[0].folded == "called") {
				rest = rest[1:]
			}
		default:
			continue
		}
		name := attributeOf(about[:j])
		kind := ""
		if !strings.HasPrefix(name, "=") {
			kind = kindOfValue(rest)
		}
		if name == "" || len(rest) == 0 || kind == "" && !strings.HasPrefix(name, "=") {
			return "", "", false
		}
		return strings.TrimPrefix(name, "=") + "|" + kind, normalised(rest), true
	}
	return "", "", false
}

var renaming = setOf("renamed moved changed switched migrated postponed pushed rescheduled")

// attributeOf returns the content words before the verb if one of them is an
// attribute, with = if any value excludes any other.
func attributeOf(ws []word) string {
	mark, found := "", false
	for i := range ws {
		switch w := ws[i].folded; {
		case attributes[w], strings.HasPrefix(w, "lieblings"):
			mark, found = "=", true
		case comparables[w]:
			found = true
		}
	}
	if !found {
		return ""
	}
	var parts []string
	for i := range ws {
		switch w := ws[i].folded; {
		case w == "db":
			parts = append(parts, "database")
		case attributes[w], comparables[w]:
			parts = append(parts, w) // as "call me" and "I weigh" use it
		case !ws[i].in(inStop):
			parts = append(parts, stemmed(w))
		}
	}
	return mark + strings.Join(parts, " ")
}

// kindOfValue returns "number" for numbers and dates, "name" for names, "" for
// others.
func kindOfValue(ws []word) string {
	for i := range ws {
		w := ws[i].folded
		if hasDigit(w) || ws[i].in(inWeekdays|inMonths|inRelative) || smallNumber[w] > 1 {
			return "number"
		}
	}
	for i := range min(len(ws), 3) {
		if capital(ws[i].raw) {
			return "name"
		}
	}
	return ""
}

// bySpeaker reports whether the words before a verb make the speaker its
// subject, and affirm it: "I", "My wife and I", "I have been", nothing in
// Spanish. "I have a sister living in ..." is about the sister, and "I no
// longer work at ..." does not say where the speaker works.
func bySpeaker(ws []word) bool {
	if conditional(ws) {
		return false
	}
	for i := range ws {
		if w := ws[i].folded; lexicon().negation[w] || w == "no" || w == "ya" {
			return false
		}
	}
	for i := len(ws) - 1; i >= 0; i-- {
		switch w := ws[i].folded; {
		case firstPerson[w]:
			return true
		case !lexicon().sets["adverb"][w] && !auxiliary[w]:
			return false
		}
	}
	return true
}

var (
	firstPerson   = setOf("i we ich wir je nous yo nosotros")
	auxiliary     = setOf("am are have had been do bin sind habe haben suis sommes ai avons estoy estamos he hemos me nos")
	conditions    = setOf("if when whenever before after until till once unless while wenn falls als bevor bis nachdem sobald quand lorsque si cuando hasta antes despues")
	allowedBefore = setOf("please you can could should may just simply always do prefer to that bitte du kannst darfst sollst tu peux vous pouvez il svp puedes everyone everybody")
)

// conditional reports whether a clause is about another time or case: "when I
// am 60".
func conditional(ws []word) bool {
	for i := range ws {
		if conditions[ws[i].folded] {
			return true
		}
	}
	return false
}

// spokenBySpeaker reports whether the words before "call me" have no other
// subject: "my kids call me ..." gives no name.
func spokenBySpeaker(ws []word) bool {
	for i := range ws {
		if !allowedBefore[ws[i].folded] && !firstPerson[ws[i].folded] && !lexicon().sets["adverb"][ws[i].folded] {
			return false
		}
	}
	return true
}

// isName reports whether what follows "call me" may be a name: "call me at 8"
// and "call me back" have none.
func isName(ws []word) bool {
	return len(ws) > 0 && !lexicon().stop[ws[0].folded] && !conditions[ws[0].folded] && !lexicon().relative[ws[0].folded] && !strings.ContainsAny(ws[0].folded, "0123456789")
}

// preferredOver reads "tea over coffee".
func preferredOver(ws []word) (a, b string, ok bool) {
	for i := 1; i < len(ws)-1; i++ {
		switch ws[i].folded {
		case "over", "to", "gegenuber", "instead", "rather", "a", "than":
			left, _ := contentOf(ws[:i])
			right, _ := contentOf(ws[i+1:])
			if len(left) > 0 && len(right) > 0 {
				return strings.Join(left, " "), strings.Join(right, " "), true
			}
		}
	}
	return "", "", false
}

// isAge reports whether a number at ws[i] is the speaker's age: it ends the
// clause, or "years" follows.
func isAge(ws []word, i int) bool {
	if i >= len(ws) || len(ws[i].folded) > 3 || strings.Trim(ws[i].folded, "0123456789") != "" {
		return false
	}
	return i+1 == len(ws) || ws[i+1].clause || ws[i+1].in(inConjunctions) || among(yearWords, ws[i+1].folded)
}
