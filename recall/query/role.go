package query

import (
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

// Role is the part that a term plays in a query.
type Role uint8

const (
	OfRequest  Role = 1 << iota // it is about the conversation or the answer
	IsLight                     // many questions have it
	IsSocial                    // small talk has it
	HasRelated                  // Related has terms for it
	IsProper                    // of a word with a capital letter inside a sentence; not by RoleOf
	OfArea                      // a request with it is about an area of constraints
)

// RoleOf returns the roles of a stem.
func RoleOf(stem string) Role { return roles()[stem] }

// Load reads the word tables, so that no query has to wait for them.
func Load() {
	roles()
	translations()
}

var roles = sync.OnceValue(func() map[string]Role {
	m := map[string]Role{}
	for w := range requestWords {
		m[w] |= OfRequest
	}
	for w := range lightWords {
		m[w] |= IsLight
	}
	for w := range socialWords {
		m[w] |= IsSocial
	}
	for l, words := range foreignSocialWords {
		for w := range strings.FieldsSeq(words) {
			for _, l := range [...]text.Language{text.Language(l), text.English} { // a word alone doesn't reveal its language
				m[text.Stem(l, w)] |= IsSocial
			}
		}
	}
	for w := range related() {
		m[w.stem] |= HasRelated
	}
	for w := range constraints().asks {
		m[w] |= OfArea
	}
	return m
})

// lightWords occur in many questions and say little about what is sought.
var lightWords = stems(`done make take go give like want say tell thing something mention talk discuss type kind name many much long
time day new happen start use know think good lot really recent current plan try need feel find look come work see different way
anything everything favorite consider describe`)

// requestWords are about the conversation or the answer rather than about what
// is sought.
var requestWords = stems(`conversation chat session discuss discussion message mention order list item aspect summary summarize
overview comprehensive provide bring brought walk show explain tell help recommend remind suggest across throughout clear different
previous previously earlier step multiple describe detail give ask question answer`)

// socialWords make up small talk: thanks, praise, wishes, greetings.
var socialWords = stems(`thank thanks thx welcome great good nice cool awesome amazing wonderful fantastic lovely sweet kind perfect
excellent brilliant super neat fun funny happy glad pleased excited exciting proud sorry sad love loved like enjoy enjoyed hope wish
luck lucky congrats congratulations cheers bye goodbye night morning evening afternoon day weekend hello hi hey dear friend mate buddy
guy everyone totally definitely absolutely exactly really truly sure agree agreed true right yeah yep yup yes okay ok nope nah wow haha
lol aw aww oh sounds sound look looks feel feeling mean means appreciate support supportive inspire inspiring encourage best better well
take care keep going talk chat soon later catch see rest beautiful gorgeous pretty interesting sense course understand know think guess
bet got it alright fine problem worry welcome pleasure forward awhile time lot bit thing way idea point work helpful useful makes
make made try let share sharing stay strong positive enough continue proceed ahead next now later`)

// courtesyWords are the social words that thank, praise, wish or greet. With
// one, a message of few other words is small talk.
var courtesyWords = stems(`thank thanks thx welcome great nice cool awesome amazing wonderful fantastic lovely sweet perfect excellent brilliant super fun funny
happy glad excited exciting proud sorry sad love loved enjoy hope luck lucky congrats congratulations cheers bye goodbye hello hi hey wow haha lol aw aww yeah yep
sounds appreciate support supportive inspiring worry pleasure catch care beautiful gorgeous interesting soon talk later rock rocks absolutely totally definitely sure`)

// stems returns the English stems of words.
func stems(words string) map[string]bool {
	m := map[string]bool{}
	for w := range text.WordSet(words) {
		m[text.Stem(text.English, w)] = true
	}
	return m
}

// foreignSocialWords has the social words of other languages, except stop
// words.
var foreignSocialWords = [text.NumLanguages]string{
	text.German:     "super klasse prima perfekt genau gut toll wunderbar klar passt okay hallo moin tschüss servus vielen herzlichen dank weiter mach gern gerne bitteschön",
	text.French:     "parfait super génial excellent bonjour bonsoir salut accord d'accord d ça marche beaucoup continue parfaitement top cool",
	text.Spanish:    "perfecto genial estupendo vale hola bueno buenos buenas días tardes noches claro acuerdo adelante sigue continúa muchas",
	text.Italian:    "perfetto ottimo bene ciao buongiorno buonasera mille va continua certo accordo",
	text.Portuguese: "perfeito ótimo bom boa olá certo claro continua muito beleza",
	text.Dutch:      "perfect prima goed hallo hoi bedankt oké verder graag mooi",
}
