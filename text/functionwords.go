package text

import (
	"slices"
	"strings"
	"sync"
)

// functionWords are the stop words of the languages other than English. They
// also reveal a text's language.
var functionWords = [NumLanguages]string{
	German: `der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen ich du er sie es wir ihr mich dich
sich uns euch mir dir ihm ihnen mein meine meinen meinem meiner dein deine deinen sein seine seinen ihre ihren unser unsere ist sind war waren bin
bist seid wird werden wurde wurden worden habe hast hat haben hatte hatten kann kannst können könnte muss müssen soll sollen sollte will wollen
möchte darf mit von zu zum zur im in am an auf aus bei beim nach seit vor für über unter durch um gegen ohne bis als wie wo wer was wann warum
welche welcher welches dass daß weil wenn ob denn doch noch schon auch nur sehr so dann da hier dort jetzt mal bitte danke ja nein man mehr
gibt gab immer etwas alle alles andere anderen diese dieser dieses diesem diesen jede jeder jedes`,
	French: `le la les l' un une des du de d' et ou mais ne pas plus je tu il elle on nous vous ils elles me te se moi toi lui leur leurs y en mon ma
mes ton ta tes son sa ses notre nos votre vos ce cet cette ces qui que quoi dont où quand comment pourquoi combien quel quelle quels quelles est
sont suis es êtes sommes était étaient été être ai as a avons avez ont avait avoir fait faire peut peux pouvez dans sur sous avec sans pour par
chez vers entre au aux si très bien aussi encore déjà toujours jamais tout tous toute toutes rien c'est j'ai n'est qu'il d'un d'une s'il merci oui
non puis donc alors comme`,
	Spanish: `el la los las un una unos unas lo al del de y o u pero no ni sí yo tú él ella nosotros vosotros ellos ellas usted ustedes me te se nos os le
les mi mis tu tus su sus nuestro nuestra nuestros que qué quién quien cuál cuando cuándo cómo como dónde donde por porque para con sin sobre entre
desde hasta en es son soy eres somos era eran fue fueron ser estar estoy está están estaba he has ha hemos han había haber hay tengo tiene tienes
tienen este esta estos estas ese esa eso esto aquel muy más menos también ya todavía siempre nunca todo todos toda todas nada algo si gracias`,
	Italian: `il lo la gli le un uno una dei degli delle di del dello della dell' da dal dalla al allo alla ai agli alle nel nella nei nelle sul sulla con
su per tra fra e ed o ma non né io tu lui lei noi voi loro mi ti si ci vi mio mia miei mie tuo tua tuoi suo sua suoi nostro nostra che chi cui cosa
quando come dove perché quale quali quanto è sono sei siamo siete era erano stato stata essere ho hai ha abbiamo avete hanno aveva avere c'è questo
questa questi queste quello quella molto più meno anche già ancora sempre mai tutto tutti tutta niente se grazie sì`,
	Portuguese: `o os as um uma uns umas do da dos das de no na nos nas ao aos à às pelo pela e ou mas não nem eu tu ele ela nós vós eles elas você vocês
me te se lhe lhes meu minha meus minhas teu tua seu sua seus suas nosso nossa que quem qual quais quando como onde porque por para com sem sobre
entre desde até em é são sou és somos era eram foi foram ser estar estou está estão estava tenho tem têm tinha ter há havia este esta estes estas
esse essa isso isto aquele muito mais menos também já ainda sempre nunca tudo todos toda todas nada algo se obrigado obrigada sim`,
	Dutch: `de het een en of maar niet geen ik jij je hij zij ze wij we jullie u mij me jou hem haar ons hen hun mijn jouw zijn onze deze dit die dat
is ben bent was waren wordt worden werd heb hebt heeft hebben had hadden kan kunnen kon moet moeten zal zullen zou wil willen mag in op aan van
voor met bij naar uit over onder door om tegen zonder tot als hoe waar wie wat wanneer waarom welke omdat dan toen daar hier nu nog al ook wel
zeer heel meer altijd nooit iets niets alle alles ja nee dank er te`,
	Swedish: `och eller men inte ingen jag du han hon den det vi ni de mig dig honom henne oss er dem min mitt mina din ditt dina hans hennes sin sitt sina
vår vårt våra en ett är var vara blir blev har hade ha kan kunde ska skulle vill måste får i på av för med till från om under över genom mot utan
som vad vem när var hur varför vilken att eftersom då där här nu också redan bara mycket mer alltid aldrig något alla allt ja nej tack`,
	Danish: `og eller men ikke ingen jeg du han hun den det vi i de mig dig ham hende os jer dem min mit mine din dit dine hans hendes sin sit sine vores en
et er var være bliver blev har havde have kan kunne skal skulle vil ville må på af for med til fra om under over gennem mod uden som hvad hvem
hvornår hvor hvordan hvorfor hvilken at fordi da der her nu også allerede kun meget mere altid aldrig noget alle alt ja nej tak`,
	Norwegian: `og eller men ikke ingen jeg du han hun den det vi dere de meg deg ham henne oss dem min mitt mine din ditt dine hans hennes sin sitt sine
vår vårt våre en ei et er var være blir ble har hadde ha kan kunne skal skulle vil ville må på av for med til fra om under over gjennom mot uten
som hva hvem når hvor hvordan hvorfor hvilken at fordi da der her nå også allerede bare mye mer alltid aldri noe alle alt ja nei takk`,
	Finnish: `ja tai mutta ei en et emme ette eivät minä sinä hän me te he minun sinun hänen meidän teidän heidän minua sinua minulla sinulla minulle se ne tämä
tuo nämä on olen olet olemme ovat oli olivat olla ollut kun jos että koska kuin niin myös vielä jo vain hyvin aina mitä mikä kuka missä milloin
miten miksi mistä mihin joka jotka kaikki kanssa ilman kiitos kyllä nyt siellä täällä`,
	Russian: `и или но не ни я ты он она оно мы вы они меня тебя его её ее нас вас их мне тебе ему ей нам вам им мной мой моя моё мои твой твоя твои свой
своя наш наша ваш ваша это этот эта эти тот та те что чтобы кто какой какая какие когда где куда как почему зачем сколько в во на с со к ко у о об
от до из за по под над при для без про через между если потому так там тут здесь сейчас уже ещё еще только очень тоже также всегда никогда всё все
был была было были быть есть будет да нет же ли бы вот`,
	Turkish: `ve veya ama fakat değil ben sen o biz siz onlar bana sana ona bize size benim senin onun bizim sizin bu şu bir mi mı mu mü ne kim nerede nasıl
neden niçin hangi için ile gibi kadar daha çok en de da ki var yok evet hayır şimdi sonra önce her hiç bütün`,
	Hungarian: `és vagy de nem ne én te ő mi ti ők engem téged nekem neked neki az egy ez azt ezt hogy mert ha mint is csak már még nagyon mindig soha ki mit
hol mikor hogyan miért melyik van volt vannak lesz lenni igen itt ott most minden`,
	Romanian: `și sau dar nu eu tu el ea noi voi ei ele mă te se ne vă îmi îți meu mea mei mele tău ta său sa nostru este sunt ești era erau fost fi am ai are
avem aveți au un o unei unui cu de la în din pe pentru fără prin către că ce cine când unde cum cât dacă acest această acești mai foarte și
tot toate nimic da mulțumesc`,
	Arabic: `في من على إلى عن مع هذا هذه ذلك تلك التي الذي و أو لكن لا ما لم لن أن إن كان كانت هو هي هم أنا أنت نحن كل بعد قبل عند حتى كيف متى أين لماذا هل`,
}

// telltales reveal a text's language but are no stop words: what people
// introduce themselves with, where the function words are those of several
// languages ("me llamo Javier, vivo en Valencia y ...").
var telltales = [NumLanguages]string{
	German:     "hallo heiße wohne arbeite",
	French:     "bonjour bonsoir salut m'appelle appelle habite j'habite travaille",
	Spanish:    "hola llamo llama vivo vive trabajo quiero puedo hija hijo años cumpleaños",
	Italian:    "ciao chiamo abito vivo lavoro",
	Portuguese: "olá oi chamo moro trabalho",
}

// languagesOf maps a word to the languages in which it is a function word or a
// telltale.
var languagesOf = func() map[string][]Language {
	m := map[string][]Language{}
	add := func(w string, l Language) {
		if !slices.Contains(m[w], l) {
			m[w] = append(m[w], l)
		}
	}
	for w := range stopWords {
		add(w, English)
	}
	for l, words := range functionWords {
		for _, w := range strings.Fields(words) {
			add(w, Language(l))
		}
	}
	for l, words := range telltales {
		for _, w := range strings.Fields(words) {
			add(w, Language(l))
		}
	}
	return m
}()

// allTelltales are those of all languages. None is a function word anywhere.
var allTelltales = WordSet(strings.Join(telltales[:], " "))

// IsFunctionWord reports whether a lower-case word is a function word or a
// telltale of any language.
func IsFunctionWord(w string) bool { return len(languagesOf[w]) > 0 }

// IsStop reports whether a lower-case word carries no topic in the language.
func IsStop(l Language, w string) bool {
	if l <= English {
		return stopWords[w]
	}
	return slices.Contains(languagesOf[w], l) && !allTelltales[w]
}

// unaccentedStops holds the function words of each language without their
// accents.
var unaccentedStops = sync.OnceValue(func() (all [NumLanguages]map[string]bool) {
	for l, words := range functionWords {
		all[l] = map[string]bool{}
		for w := range strings.FieldsSeq(unaccented(words)) {
			for part := range strings.SplitSeq(w, "'") {
				all[l][part] = true
			}
		}
	}
	return all
})
