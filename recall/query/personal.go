package query

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// Personal says what a message asks of the user's own affairs. "When do I have
// to work?" likely has an answer among the memories even if they use other
// words; "how far is the moon?" has none even if they use the same.
type Personal uint8

const (
	NotPersonal      Personal = iota
	PersonalRequest           // work or advice on something of the user's: "suggest a gift for my son"
	PersonalQuestion          // "where do I work?"
)

// personalOf returns how personal a message is.
func (q *Query) personalOf() Personal {
	if !q.AboutUser && !(q.Language > text.English && hasSpeakerEnding(q.Lower, q.Language)) {
		return NotPersonal
	}
	if q.Asks {
		if asksHowTo(q.Lower) && !hasWordOf(possessives, q.Lower) {
			return NotPersonal
		}
		return PersonalQuestion
	}
	if hasWordOf(possessives, q.Lower) || !q.isASCII() && AboutSpeaker(q.Lower) {
		return PersonalRequest
	}
	return NotPersonal
}

func (q *Query) isASCII() bool { return text.IsASCII(string(q.Lower)) }

// possessives say that something is the speaker's.
var possessives = text.WordSet(`my our ours mine us we mein meine meinen meinem meiner meines unser unsere unseren unserem unserer wir mon ma mes notre nos nous
mi mis nuestro nuestra nuestros nuestras mio mia miei mie nostro nostra nostri nostre meu minha meus minhas nosso nossa mijn ons onze wij
мой моя моё мое мои моего моей моих моему моим мою наш наша наше наши нашего нашей нас нам`)

// howTo are the beginnings of questions about how anybody does a thing, in
// which "I" is not the user in particular.
var howTo = strings.Split("how do i |how can i |how could i |how should i |how would i |how to |how might i |what happens if i |wie kann ich |wie mache ich |wie könnte ich |comment puis-je |comment je peux |"+
	"comment faire |cómo puedo |cómo hago |como posso |como faço |come posso |come faccio |hoe kan ik |как мне |как я могу ", "|")

func asksHowTo(lower []byte) bool {
	lower = bytes.TrimLeft(lower, " ¿\t\n")
	for _, lead := range howTo {
		if hasPrefix(lower, lead) {
			return true
		}
	}
	return false
}

// hasSpeakerEnding reports whether a word ends as verbs do of which the speaker
// is the subject, in languages that leave the pronoun out: "tenemos",
// "abbiamo"; in Arabic also nouns with the speaker's suffix: "my wife".
func hasSpeakerEnding(lower []byte, l text.Language) bool {
	var endings []string
	switch l {
	case text.Spanish, text.Portuguese:
		endings = []string{"mos"}
	case text.Italian:
		endings = []string{"iamo"}
	case text.Arabic:
		endings = []string{"ي", "نا", "ني"}
	default:
		return false
	}
	for w := range strings.FieldsFuncSeq(string(lower), func(r rune) bool { return strings.ContainsRune(" ,.;:!?¿¡؟،", r) }) {
		for _, e := range endings {
			if strings.HasSuffix(w, e) && utf8.RuneCountInString(w) >= 4 {
				return true
			}
		}
	}
	return false
}
