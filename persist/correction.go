package persist

import (
	"slices"
	"strings"
)

// takesBack returns how many words say that something said before was wrong, 0 if these don't.
func takesBack(ws []word) int {
	for _, row := range takingBack[ws[0].folded] {
		if begins(ws, row) {
			return len(row)
		}
	}
	if ws[0].in(inCorrecting) && (len(ws) == 1 || ws[1].clause || ws[1].in(inCorrecting)) {
		return 1
	}
	return 0
}

var takingBack = rows(`
	i meant
	i mean
	i was wrong
	got that wrong
	i got that wrong
	my mistake
	my bad
	scratch that
	make that
	make it
	let me correct that
	hang on
	ich meinte
	ich meine
	mein fehler
	stimmt nicht
	je voulais dire
	je me suis trompe
	je me suis trompee
	queria decir
	quise decir
	me equivoque
	me he equivocado
`)

// noes take something back as well as they answer a question.
var noes = setOf("no nein nee non")

// corrects says whether a sentence begins by taking something back, and whether by no more than a "no".
func corrects(ws []word) (back, bare bool) {
	for i := 0; i < len(ws); {
		no := noes[ws[i].folded]
		if n := takesBack(ws[i:]); n > 0 && (n > 1 || !no) {
			return true, false
		} else if n == 0 && !ws[i].in(inLead) {
			break
		} else if n > 0 || no && i == 0 && i+1 < len(ws) && ws[i+1].clause {
			back = true
		}
		i++
	}
	return back, back
}

// maxAsked bounds the words of a question that are held; its last are.
const maxAsked = 64

// askedBefore reads what the message before one of the user's asks: its telling words, sorted. asks is false where nothing is asked. What is not
// held, or not to its end, may ask anything.
func askedBefore(window []windowMessage, i int) (words []string, asks bool) {
	if i == 0 || len(window[i-1].text) > maxHeldAssistant-4 {
		return nil, true
	}
	if window[i-1].user {
		return nil, false
	}
	var space [stackWords]word
	for _, s := range sentences(window[i-1].text) {
		if strings.HasSuffix(strings.TrimRight(s, `"')]*_ `), "?") {
			content, _ := contentOf(appendWords(space[:0], s))
			for _, w := range content {
				words = append(words, strings.Clone(w)) // kept for longer than the message
			}
			asks = true
		}
	}
	words = words[max(0, len(words)-maxAsked):]
	slices.Sort(words)
	return words, asks
}

// takesBack says whether a statement that corrects may be about an older one. What one can have many of loses none unless the
// correction names it ("..., not peanuts"), and a "no" answers what was asked.
func (f *fact) takesBack(old *fact) bool {
	own := slices.DeleteFunc(slices.Clone(old.content), func(w string) bool {
		_, shared := slices.BinarySearch(f.content, w)
		return shared
	})
	if len(own) > 0 && ofMany(f.norm) && ofMany(old.norm) {
		return false
	}
	if len(own) == 0 {
		own = old.content
	}
	return !f.answers || slices.ContainsFunc(own, func(w string) bool {
		_, about := slices.BinarySearch(f.asked, w)
		return about
	})
}

// manyValued words tell what one may have many of at a time.
var manyValued = setOf(`allergic allergy allergies intolerant intolerance like love enjoy hate dislike speak
	allergisch allergie allergien unvertraglichkeit mag liebe hasse spreche
	allergique allergies intolerante aime adore deteste
	alergico alergica alergia alergias gusta gustan encanta encantan odio hablo`)

func ofMany(norm string) bool {
	for w := range strings.FieldsSeq(norm) {
		if manyValued[w] {
			return true
		}
	}
	return false
}
