package recall

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// "What do you know about me?" has no word that a fact shares, nor has "where were we?" (see lately.go). It is answered by the user's facts themselves, "what is my name?" by those
// in which users give it, however they do.

type self uint8

const (
	selfAll self = iota + 1
	selfName
	selfAge
	selfLast    // what was spoken of last
	selfNothing // what no memory tells
)

// maxSelf bounds such a message, in bytes.
const maxSelf = 100

var selfQuestions = func() map[string]self {
	m := map[string]self{}
	for kind, lines := range map[self]string{
		selfAll: `what do you know about me
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
		selfName: `what's my name
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
		selfAge: `how old am i
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
		selfLast: `where were we
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
		selfNothing: `what day is it
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

// greetings may stand before such a question.
var greetings = text.WordSet("hi hey hello ok okay so and well hallo und also bonjour salut et hola y")

// selfOf says whether a message asks for what is known of the user, or was spoken of last, and no more.
func selfOf(text string) self {
	if len(text) > maxSelf {
		return 0
	}
	words := strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for len(words) > 1 && greetings[words[0]] {
		words = words[1:]
	}
	return selfQuestions[strings.Join(words, " ")]
}

// maxProfile bounds the facts that are looked at, the newest of them, maxSaid the turns where no fact tells.
const (
	maxProfile = 1024
	maxSaid    = 256
	// maxAgeRead is how much text the expression for ages reads for one request, in bytes: it is slow.
	maxAgeRead = 32 << 10
)

// profileAge is how old a fact is that counts half as much as one of today.
const profileAge = 180 * dayMillis

// agedBy is what is left of the weight of what was said at a time, where it halves so often.
func agedBy(now, at, half storage.Time) float64 {
	return math.Exp2(-float64(max(now-at, 0)) / float64(half))
}

// profile ranks the facts that answer such a question, or for a name or an age what else the user said; none means that the words must.
func (ix *index) profile(q *query, f *filter, s *scratch) []hit {
	s.picked = s.picked[:0]
	if ix.profileOf(turnFact, maxProfile, q, f, s); len(s.picked) == 0 && q.self != selfAll {
		ix.profileOf(0, maxSaid, q, f, s)
	}
	slices.SortStableFunc(s.picked, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return s.picked
}

// profileOf looks at so many of the newest facts, or with no kind given of the newest turns.
func (ix *index) profileOf(kind flags, most int, q *query, f *filter, s *scratch) {
	looked, read := 0, 0
	for n := int32(len(ix.turns)) - 1; n >= 0 && looked < most && read < maxAgeRead; n-- {
		t := &ix.turns[n]
		if t.flags&(turnFact|turnDead|turnResource) != kind || kind == 0 && t.userLen == 0 || !f.pass(n) {
			continue
		}
		looked++
		s.text = ix.appendText(s.text[:0], t.mem)
		score := 0.5
		switch said := string(s.text); {
		case q.self == selfAge:
			score = 0
			if lower := lowerEnds(said); mayGiveAge(lower) {
				if read += len(lower); givesAge(lower) {
					score = 1
				}
			}
		case givesName(said):
			score = 4
		case q.self == selfName:
			score = 0
		case t.traits&(text.FirstPerson|text.HasPreference) != 0:
			score = 1
		}
		if score > 0 {
			s.picked = append(s.picked, hit{turn: n, score: score * agedBy(f.now, t.time, profileAge)})
		}
	}
}

// appendText appends the text of passage i.
func (ix *index) appendText(b []byte, i int32) []byte {
	u := ix.head(i).rest
	skipToText(&u)
	return ix.unpackText(&u, b)
}

// giving begins statements in which people give their names; "I'm Anna" is one by its capital.
var giving = strings.Split(`my name is |my name's |i am called |call me |please call me |ich heiße |ich heisse |mein name ist |je m'appelle |mon nom est |me llamo |mi nombre es |mi chiamo |`+
	`me chamo |meu nome é |我叫|我的名字|私の名前は`, "|")

// peoples are what people are with a capital and not called: "I'm German" gives no name.
var peoples = text.WordSet(`afghan african albanian algerian american arab arabic argentine argentinian armenian asian australian austrian belgian bengali black bolivian bosnian brazilian british
bulgarian cambodian canadian catalan chilean chinese colombian croatian cuban cypriot czech danish dutch ecuadorian egyptian english estonian ethiopian european filipino finnish
french georgian german ghanaian greek hawaiian hispanic hungarian icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese kenyan korean latina latino
latvian lebanese lithuanian malaysian maltese mexican mongolian moroccan nepalese nigerian norwegian pakistani palestinian persian peruvian polish portuguese romanian russian
scottish serbian singaporean slovak slovenian somali spanish sudanese swedish swiss syrian taiwanese thai tunisian turkish ugandan ukrainian uruguayan venezuelan vietnamese welsh
anglican atheist baptist buddhist catholic christian evangelical hindu jain jewish lutheran methodist mormon muslim orthodox presbyterian protestant quaker sikh sunni
aquarius aries cancer capricorn gemini leo libra pisces sagittarius scorpio taurus virgo`)

// clauses are the places in a text where a clause may begin.
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

// givesName reports whether a statement tells the user's name.
func givesName(said string) bool {
	for c := range clauses(said) {
		for _, lead := range [...]string{"I'm ", "I’m ", "I am "} {
			if rest, ok := strings.CutPrefix(c, lead); ok {
				first, n := utf8.DecodeRuneInString(rest)
				second, _ := utf8.DecodeRuneInString(rest[n:])
				word := strings.ToLower(rest[:len(rest)-len(strings.TrimLeftFunc(rest, unicode.IsLetter))])
				return unicode.IsUpper(first) && unicode.IsLower(second) && !peoples[word]
			}
		}
		lower := strings.ToLower(c)
		for _, g := range giving {
			if strings.HasPrefix(lower, g) {
				return true
			}
		}
	}
	return strings.HasSuffix(strings.TrimRight(said, `"”。 `), "と申します")
}

// age is how people say how old they are or when they were born.
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

// ageHints stand in such statements, if no figure does.
var ageHints = strings.Fields("born birth gebor geburt nasc nací né anniv cumple compleanno nato nata anivers verjaar 生日 誕生 出生")

// lowerEnds is the start and the end of a text in lower case: where people speak of themselves, of a long one.
func lowerEnds(said string) string { return strings.ToLower(ends(said)) }

// mayGiveAge reports whether a statement in lower case holds a figure or a hint. Most do not, and are not read by the expression.
func mayGiveAge(lower string) bool {
	return strings.ContainsAny(lower, "0123456789") || slices.ContainsFunc(ageHints, func(hint string) bool { return strings.Contains(lower, hint) })
}

// givesAge reports whether such a statement tells the user's age or birthday.
func givesAge(lower string) bool {
	return age.MatchString(strings.ReplaceAll(lower, "’", "'"))
}
