package query

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// Profile is a question about the user that no word of a memory answers: "what
// do you know about me?", "where were we?" The user's facts answer it, or for a
// name the statements that give one.
type Profile uint8

const (
	ProfileAll     Profile = iota + 1 // all that is known
	ProfileName                       // the user's name
	ProfileAge                        // the user's age or birthday
	ProfileLast                       // what was discussed last
	ProfileNothing                    // what no memory can answer: the time, the date
)

// maxProfileBytes is the maximum length of such a message.
const maxProfileBytes = 100

var profileQuestions = func() map[string]Profile {
	m := map[string]Profile{}
	for kind, lines := range map[Profile]string{
		ProfileAll: `what do you know about me
what do you remember about me
what do you remember of me
what have you learned about me
what do you know about me so far
tell me what you know about me
tell me what you remember about me
tell me about myself
who am i
do you know who i am
do you know me
do you remember me
what did i tell you about myself
was weißt du über mich
was weisst du über mich
was weißt du von mir
was weißt du alles über mich
was hast du dir über mich gemerkt
kennst du mich
erinnerst du dich an mich
wer bin ich
que sais tu de moi
que sais tu sur moi
qu'est ce que tu sais de moi
qu'est ce que tu sais sur moi
que savez vous de moi
qui suis je
tu te souviens de moi
qué sabes de mí
que sabes de mi
qué sabes sobre mí
quién soy
te acuerdas de mí
cosa sai di me
che cosa sai di me
chi sono
o que você sabe sobre mim
quem sou eu
私のことで何を知っていますか
私について何を知っていますか
私のことを知っていますか
私のことを覚えていますか
私は誰ですか
你知道我的什么
你对我了解多少
你对我有什么了解
你了解我什么
你知道关于我的什么
你记得我吗
你还记得我吗
我是谁`,
		ProfileName: `what's my name
whats my name
what is my name
do you know my name
do you remember my name
tell me my name
wie heiße ich
wie heisse ich
wie ist mein name
weißt du wie ich heiße
comment je m'appelle
comment est ce que je m'appelle
quel est mon nom
quel est mon prénom
cómo me llamo
como me llamo
cuál es mi nombre
come mi chiamo
como me chamo
qual é o meu nome
私の名前は
私の名前は何ですか
私の名前を覚えていますか
我叫什么
我叫什么名字
我的名字是什么`,
		ProfileAge: `how old am i
how old am i now
what is my age
what's my age
whats my age
do you know how old i am
do you remember how old i am
when is my birthday
when's my birthday
when was i born
what year was i born
in what year was i born
what is my birthday
what is my date of birth
what's my date of birth
what's my birthday
wie alt bin ich
weißt du wie alt ich bin
wann habe ich geburtstag
wann bin ich geboren
in welchem jahr bin ich geboren
quel âge j'ai
quel âge ai je
j'ai quel âge
quel est mon âge
tu sais quel âge j'ai
quand est mon anniversaire
c'est quand mon anniversaire
quand suis je né
quand suis je née
cuántos años tengo
cuantos años tengo
qué edad tengo
que edad tengo
cuál es mi edad
cuándo es mi cumpleaños
cuando es mi cumpleaños
cuándo nací
en qué año nací
quanti anni ho
qual è la mia età
quando è il mio compleanno
quando sono nato
quando sono nata
quantos anos eu tenho
quantos anos tenho
qual é a minha idade
quando é o meu aniversário
quando é meu aniversário
hoe oud ben ik
wanneer ben ik jarig
私は何歳ですか
私は何歳
僕は何歳ですか
私の誕生日はいつですか
私の年齢は
我多大了
我几岁了
我几岁
我多少岁
我今年多大
我今年多大了
我的生日是哪天
我的生日是什么时候
我什么时候出生的`,
		ProfileLast: `where were we
where did we leave off
where did we stop
what did we do last time
what did we talk about last time
what were we talking about
what were we working on
what was i working on
what were we doing
continue where we left off
let's continue where we left off
pick up where we left off
let's pick up where we left off
catch me up
wo waren wir
wo waren wir stehen geblieben
wo waren wir stehengeblieben
wo sind wir stehen geblieben
was haben wir zuletzt gemacht
worüber haben wir zuletzt gesprochen
où en étions nous
où en était on
on en était où
dónde nos quedamos
en qué nos quedamos
dónde estábamos
dove eravamo rimasti
onde paramos
前回は何を話しましたか
前回の続きをお願いします
上次我们聊到哪里了
上次我们说到哪了
我们上次说到哪里了
我们上次聊到哪了`,
		ProfileNothing: `what day is it
what day is it today
what day is today
what time is it
what's the time
what's the date
what's the date today
what's today's date
what is today's date
wie spät ist es
welcher tag ist heute
quelle heure est il
quel jour sommes nous
qué hora es
qué día es hoy
今天几号
今天星期几
现在几点
今何時ですか
今日は何曜日ですか`,
	} {
		for line := range strings.Lines(lines) {
			m[strings.TrimSpace(line)] = kind
		}
	}
	return m
}()

// greetings may precede such a question.
var greetings = text.WordSet("hi hey hello ok okay so and well hallo und also bonjour salut et hola y")

// profileOf returns the profile question that a message is, as a whole, or 0.
func profileOf(text string) Profile {
	if len(text) > maxProfileBytes {
		return 0
	}
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for len(words) > 1 && greetings[words[0]] {
		words = words[1:]
	}
	return profileQuestions[strings.Join(words, " ")]
}

// nameLeads has the beginnings of statements in which people give their names.
// "I'm Anna" is recognised by its capital.
var nameLeads = strings.Split(`my name is |my name's |i am called |call me |please call me |ich heiße |ich heisse |mein name ist |je m'appelle |mon nom est |me llamo |mi nombre es |mi chiamo |`+
	`me chamo |meu nome é |我叫|我的名字|私の名前は`, "|")

// nationalities has capitalised words that are not names: "I'm German".
var nationalities = text.WordSet(`afghan african albanian algerian american arab arabic argentine argentinian armenian asian australian austrian belgian bengali black bolivian bosnian brazilian british
bulgarian cambodian canadian catalan chilean chinese colombian croatian cuban cypriot czech danish dutch ecuadorian egyptian english estonian ethiopian european filipino finnish
french georgian german ghanaian greek hawaiian hispanic hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese kenyan korean latina latino
latvian lebanese lithuanian malaysian maltese mexican mongolian moroccan nepalese nigerian norwegian pakistani palestinian persian peruvian polish portuguese romanian russian
scottish serbian singaporean slovak slovenian somali spanish sudanese swedish swiss syrian taiwanese thai tunisian turkish ugandan ukrainian uruguayan venezuelan vietnamese welsh
anglican atheist baptist buddhist catholic christian evangelical hindu jain jewish lutheran methodist mormon muslim orthodox presbyterian protestant quaker sikh sunni
aquarius aries cancer capricorn gemini leo libra pisces sagittarius scorpio taurus virgo`)

// clauses iterates over the places in a text where a clause may begin.
func clauses(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			text = strings.TrimLeft(text, "\"“ ,.!;:\n，。！、")
			if text == "" || !yield(text) {
				return
			}
			i := strings.IndexAny(text, ",.!;:\n，。！、")
			if i < 0 {
				return
			}
			text = text[i:]
		}
	}
}

// GivesName reports whether a statement gives the name of its speaker.
func GivesName(said string) bool {
	for c := range clauses(said) {
		for _, lead := range [...]string{"I'm ", "I’m ", "I am "} {
			if rest, ok := strings.CutPrefix(c, lead); ok {
				first, n := utf8.DecodeRuneInString(rest)
				second, _ := utf8.DecodeRuneInString(rest[n:])
				word := strings.ToLower(rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))])
				return unicode.IsUpper(first) && unicode.IsLower(second) && !nationalities[word]
			}
		}
		lower := strings.ToLower(c)
		for _, g := range nameLeads {
			if strings.HasPrefix(lower, g) {
				return true
			}
		}
	}
	return strings.HasSuffix(strings.TrimRight(said, `"”。 `), "と申します")
}

// age matches how people say how old they are or when they were born.
var age = regexp.MustCompile(`\bi(?:'m| am|'ll be| will be| turn| turned| just turned| recently turned) (?:now |only |already |almost |nearly |about |turning )?\d{1,3}(?: ?years? old| next| this| in | on |[,.;!"”]|$| and| but| yesterday| today)` +
	`|\bi(?:'m| am) an? \d{1,3}[- ]years?[- ]old|\bi was born\b|\bmy (?:\d+\w* )?(?:birthday|birth date|date of birth|age|year of birth)\b` +
	`|\bich (?:bin|werde|wurde) (?:\pL+ )?\d{1,3}(?: jahre|[,.;!"”]|$| und)|\bich (?:bin|wurde) [^.!?]{0,40}geboren|\bmein (?:\d+\. )?(?:geburtstag|geburtsdatum)|\bich habe? [^.!?]{0,30}geburtstag` +
	`|\bj'ai (?:\pL+ )?\d{1,3} ans|\bje suis née?(?:\PL|$)|\bmon anniversaire` +
	`|\btengo (?:\pL+ )?\d{1,3} años|\bnací(?:\PL|$)|\bmi cumpleaños` +
	`|\bho (?:\pL+ )?\d{1,3} anni|\bsono nat[oa]\b|\bil mio compleanno` +
	`|\btenho (?:\pL+ )?\d{1,3} anos|\bnasci\b|\bmeu aniversário` +
	`|\bik ben \d{1,3}(?: jaar|[,.;!"”]|$| en)|\bik ben (?:\pL+ )*geboren|\bmijn verjaardag` +
	`|^"?\d{1,3}歳|[。、私僕俺](?:は|、)?(?:今年)?\d{1,3}歳|(?:私|僕)の誕生日|年生まれです` +
	`|我(?:今年|已经|现在)?\d{1,3}[岁歲]|我(?:的|是)?[^。！？]{0,12}(?:出生|生日|年生)`)

// ageHints are parts of such statements that have no figure.
var ageHints = strings.Fields("born birth gebor geburt nasc nací né anniv cumple compleanno nato nata anivers verjaar 生日 誕生 出生")

// MayGiveAge reports whether a statement in lower case has a figure or a hint.
// Most don't, and need not be matched by GivesAge, which is slow.
func MayGiveAge(lower string) bool {
	return strings.ContainsAny(lower, "0123456789") || slices.ContainsFunc(ageHints, func(hint string) bool { return strings.Contains(lower, hint) })
}

// GivesAge reports whether a statement in lower case gives the age or birthday of
// its speaker.
func GivesAge(lower string) bool {
	return age.MatchString(strings.ReplaceAll(lower, "’", "'"))
}

// speakerWords are those with which other languages speak of oneself.
var speakerWords = text.WordSet(`ich mein meine meinen meinem meiner meines mir mich wir uns unser unsere unseren unserem unserer
je j'ai j'habite j mon ma mes moi me m'a nous notre nos suis ai-je suis-je dois-je
soy sou yo mi mis me mí conmigo tengo vivo trabajo hago juego toco debo puedo estudio llamo gasto pago estoy tomo uso voy nosotros nuestro nuestra nuestros nuestras
io mio mia miei mie mi ho sono faccio lavoro abito vivo suono gioco devo posso pago uso noi nostro nostra nostri nostre
eu meu minha meus minhas tenho moro trabalho faço jogo toco devo posso pago uso estou tomo vivo nosso nossa nós gente
ik mijn mij me wij we ons onze
я мне меня мной мой моя моё мое мои моего моей моему моим моих мою мы нас нам наш наша наше наши нашего нашей
मैं मेरा मेरी मेरे मुझे मुझको मैंने हम हमारा हमारी हमारे हमें
أنا نحن لي لدي عندي لدينا عندنا أعمل أسكن أعيش أتعلم ألعب ندفع نسافر`)

// speakerSigns are the same in scripts without spaces.
var speakerSigns = strings.Fields("我 咱 私 僕 俺 うちの わたし 저는 저의 제가 제 나는 내가 나의 우리")

// AboutSpeaker reports whether a text in lower case, in another language than
// English, is about its speaker.
func AboutSpeaker(lower []byte) bool {
	for _, sign := range speakerSigns {
		if bytes.Contains(lower, []byte(sign)) {
			return true
		}
	}
	return hasWordOf(speakerWords, lower)
}
