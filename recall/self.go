package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/storage"
)

// "What do you know about me?" has no word that a fact shares, nor has "where were we?" (see lately.go). It is answered by the user's facts themselves, "what is my name?" by those
// in which users give it, however they do.

type self uint8

const (
	selfAll self = iota + 1
	selfName
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
var greetings = set("hi hey hello ok okay so and well hallo und also bonjour salut et hola y")

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

// maxProfile bounds the facts that are looked at, the newest of them.
const maxProfile = 1024

// profileAge is how old a fact is that counts half as much as one of today.
const profileAge = 180 * dayMillis

// profile ranks the facts that answer such a question; none means that the words must.
func (ix *index) profile(q *query, f *filter, s *scratch) []hit {
	hits := s.picked[:0]
	var text []byte
	looked := 0
	for n := int32(len(ix.turns)) - 1; n >= 0 && looked < maxProfile; n-- {
		t := &ix.turns[n]
		if t.flags&turnFact == 0 || t.flags&turnDead != 0 || !f.pass(n) {
			continue
		}
		looked++
		text = ix.appendText(text[:0], t.mem)
		score := 0.5
		switch named := givesName(string(text)); {
		case named:
			score = 4
		case q.self == selfName:
			continue
		case t.traits&(firstPerson|wishes) != 0:
			score = 1
		}
		if f.now > t.time {
			score *= math.Exp2(-float64(f.now-t.time) / float64(profileAge))
		}
		hits = append(hits, hit{turn: n, score: score})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	s.picked = hits
	return hits
}

// appendText appends the text of passage i.
func (ix *index) appendText(b []byte, i int32) []byte {
	u := ix.head(i).rest
	var m storage.Memory
	b, _, _ = ix.unpackLine(&u, ix.mems[i].turn, &m, b, nil)
	return b
}

// giving begins statements in which people give their names; "I'm Anna" is one by its capital.
var giving = strings.Split(`my name is |my name's |i am called |call me |please call me |ich heiße |ich heisse |mein name ist |je m'appelle |mon nom est |me llamo |mi nombre es |mi chiamo |`+
	`me chamo |meu nome é |我叫|我的名字|私の名前は`, "|")

// givesName reports whether a fact tells the user's name.
func givesName(fact string) bool {
	said := strings.TrimLeft(fact, `"`)
	for _, lead := range [...]string{"I'm ", "I’m ", "I am "} {
		if rest, ok := strings.CutPrefix(said, lead); ok {
			first, n := utf8.DecodeRuneInString(rest)
			second, _ := utf8.DecodeRuneInString(rest[n:])
			return unicode.IsUpper(first) && unicode.IsLower(second)
		}
	}
	lower := strings.ToLower(said)
	for _, g := range giving {
		if strings.HasPrefix(lower, g) {
			return true
		}
	}
	return strings.Contains(said, "，我叫") || strings.HasSuffix(strings.TrimRight(said, `"`), "と申します")
}
