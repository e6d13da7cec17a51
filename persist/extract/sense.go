package extract

import (
	"strings"

	"github.com/remora-proxy/remora/text"
)

// A statement is quoted without what leads up to it ("Hi, by the way, ..."),
// and a clause without its sentence. Words that change its sense must not get
// lost on the way: a denial, a doubt, a condition, a wish, or that somebody
// else says so.

// senseWords are such words, folded.
var senseWords = setOf(`not no never nobody nothing neither nor none without cannot hardly barely scarcely only longer else
	if unless whether maybe perhaps might may could would should wish doubt suppose imagine pretend dreamt dreamed false untrue wrong lie joke kidding
	according allegedly supposedly apparently used
	nicht nie niemals niemand nichts kein keine keinen keiner ohne kaum nur wenn falls sofern ob vielleicht bezweifle zweifle falsch gelogen luge scherz
	laut angeblich traumte getraumt wunschte
	pas jamais rien personne sans si peut doute faux mensonge selon reve seulement
	no nunca jamas nadie nada tampoco sin si quiza quizas tal dudo falso mentira segun sone ojala solo ya
	non nein`)

// reporting words say whose words or thoughts a statement is: "My brother says
// I ...", ", says my brother".
var reporting = setOf(`claim claims claimed say says said told tells thinks thought believe believes pretends acts
	sagt sagte behauptet meint glaubt dachte dit disait pretend pense croit dice dijo cree piensa`)

// interjects reports whether ws[i], one of the words that lead up to a
// statement, may be left out although it is a "no" or "only": what follows
// shows that it stands for itself.
func interjects(ws []word, i int) bool {
	next := &ws[i+1]
	switch ws[i].folded {
	case "no":
		return next.clause || next.in(inConjunctions|inCorrecting) || englishSubject[next.folded]
	case "non":
		return next.folded != "que"
	case "nur":
		return next.folded == "zur" // "nur zur Info"
	case "ya", "tampoco", "nunca":
		return false
	}
	return true
}

// meansIf reports whether ws[i] is the "si" that means "if", and not "yes".
func meansIf(ws []word, i int) bool {
	return ws[i].folded == "si" && !strings.ContainsRune(ws[i].raw, 'í') && i+1 < len(ws) && !ws[i+1].clause
}

var englishSubject = setOf("i we my our")

// changesSense reports whether quoting the words from from to to alone changes
// their sense, because of the words before them in their clause, or of those
// that begin what follows.
func changesSense(ws []word, from, to int) bool {
	same := true // ws[i] is in the clause
	for i := from - 1; i >= 0; i-- {
		w := &ws[i]
		if w.folded == "si" && !meansIf(ws, i) {
			continue
		}
		if w.in(inConjunctions) && !subordinating[w.folded] {
			break
		}
		same = same && (!ws[i+1].clause || w.in(inConjunctions) || reporting[w.folded])
		if same && (senseWords[w.folded] || reporting[w.folded]) || !same && governing[w.folded] {
			return true
		}
	}
	for to < len(ws) && ws[to].in(inConjunctions) {
		to++
	}
	if to == len(ws) || ws[to].in(inAsking) && !denies[folded(ws[to:], 1)] {
		return false // a question or a command
	}
	for i := to; i < min(to+senseReach, len(ws)); i++ {
		if senseWords[ws[i].folded] || reporting[ws[i].folded] {
			return true
		}
	}
	return false
}

// governing words begin a clause on which the next one depends: "If all goes
// well, I ...", "According to my mother, I ...".
var governing = setOf(`if unless whether suppose supposing imagine according allegedly supposedly maybe perhaps
	wenn falls sofern ob laut angeblich vielleicht angenommen si selon segun quiza quizas ojala`)

// changesSenseBefore reports whether what is quoted from at on leaves words
// behind that may change its sense, or is all from ws[main] on.
func changesSenseBefore(ws []word, main, at int) bool {
	for i := main; i < len(ws) && ws[i].start < at; i++ {
		if w := ws[i].folded; senseWords[w] || reporting[w] || governing[w] {
			return true
		}
	}
	return at <= ws[main].start
}

// senseReach is how many words of what follows a clause may deny it or report
// it: ", says my brother", ", which is not true".
const senseReach = 4

var (
	subordinating = setOf("that because since although while weil denn obwohl dass que parce car porque pues aunque")
	denies        = setOf("is was nicht no es est")
)

// changesSenseOf is changesSense for a quotation of a message's own words, as a
// model gives it. It reports true if no sentence has the words without others
// that change their sense.
func changesSenseOf(own, quote string) bool {
	var space, quoted [stackWords]word
	wanted := appendWords(quoted[:0], quote)
	found := false
	for _, s := range text.Sentences(own) {
		ws := appendWords(space[:0], s)
		for i := 0; i+len(wanted) <= len(ws); i++ {
			if !sameWords(ws[i:i+len(wanted)], wanted) {
				continue
			}
			found = true
			if !changesSense(ws, i, i+len(wanted)) {
				return false
			}
		}
	}
	return found // words that go over sentences are quoted with all between them
}

func sameWords(a, b []word) bool {
	for i := range a {
		if a[i].folded != b[i].folded {
			return false
		}
	}
	return true
}
