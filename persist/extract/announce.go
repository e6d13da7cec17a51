package extract

import "strings"

// announces reports whether a sentence introduces a text to work on, which
// makes up the rest of the message: "Proofread this email:". It commands
// something about a text or points to one, and ends in a colon.
func announces(s string) bool {
	before, _, ok := strings.Cut(s, ": ")
	if !ok {
		if before, ok = strings.CutSuffix(s, ":"); !ok {
			return false
		}
	}
	var space [stackWords]word
	ws := appendWords(space[:0], before)
	ordered := false
	for i := range ws {
		w := ws[i].folded
		switch {
		case textWork[w] && (i == 0 || ws[i].clause || ws[i-1].in(inLead|inConjunctions) || beforeWork[ws[i-1].folded]):
			ordered = true
		case textKinds[w] && (pointers[folded(ws, i-1)] || pointers[folded(ws, i-2)]), ordered && pointers[w] && i+1 == len(ws):
			return true
		}
	}
	return ordered && len(ws) <= maxAnnouncement
}

// maxAnnouncement is the largest number of words of a command that a text
// follows.
const maxAnnouncement = 8

var (
	textWork = setOf(`translate proofread rewrite rephrase reword paraphrase summarize summarise correct polish shorten edit improve review classify label tag
		ubersetze ubersetz korrigiere korrigier verbessere lektoriere kurze umformuliere traduis traduisez corrige corrigez resume resumez reformule
		traduce traduzca corrija resuma reescribe mejora`)
	beforeWork = setOf("please you can could to bitte du mir s'il plait favor puedes peux")
	pointers   = setOf("this these following below here's here folgende folgenden folgender diese diesen dieser suivant suivante ce cet cette ces siguiente este esta estos")
	textKinds  = setOf(`text email e-mail mail message letter paragraph passage article essay abstract excerpt review post tweet comment transcript speech
		poem lyrics story quote sentence log logs output error trace chapter cv resume
		nachricht brief absatz artikel aufsatz satz courriel lettre paragraphe phrase correo mensaje carta parrafo articulo frase`)
)
