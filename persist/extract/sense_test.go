package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// senses are, for a language, statements that are facts, and frames that deny
// them, hedge them, wish for them or report them as somebody else's. %s is the
// statement as it stands in the middle of a sentence. A frame's key is the part
// without which the sentence has another sense.
type senses struct {
	language string
	facts    []string
	frames   []string // "key | frame"
}

var allSenses = []senses{
	{"en", []string{
		"I live in Paris", "I drink milk every morning", "I am allergic to peanuts", "I work at Globex as a nurse", "my sister is called Mara",
		"I eat meat", "we moved to Hamburg last year", "I like working in the heat", "my favourite colour is green", "I own a red bicycle",
	}, []string{
		"not true | It is not true that %s.", "never | I never said that %s.", "don't think | I don't think %s.", "no longer | No longer can I say that %s.",
		"doubt | I doubt that %s.", "not | Not that %s.", "if | If %s, tell me what to pack.", "if | Tell me what to do if %s.", "might | It might be that %s.", "maybe | Maybe %s.",
		"perhaps | Perhaps %s.", "unless | Unless %s, nothing changes.", "wish | I wish %s.", "pretend | Let us pretend %s.", "brother | My brother says %s.",
		"brother | My brother told me that %s.", "she | She thinks that %s.", "wrong | It is wrong that %s.", "whether | I wonder whether %s.", "as if | He acts as if %s.",
		"if only | If only %s.", "suppose | Suppose %s.", "no way | No way %s.", "hardly | Hardly can one say that %s.", "lie | It is a lie that %s.",
		"according | According to my mother, %s.", "dreamt | I dreamt that %s.", "used | It used to be that %s.", "nobody | Nobody believes that %s.",
		"isn't | It isn't the case that %s.", "without | Without it being so that %s.", "neither | Neither is it so that %s.", "not | %s, not!", "not true | %s, which is not true.",
		"joke | %s, that was a joke.", "brother | %s, says my brother.", "she | %s, she claims.", "maybe not | %s, or maybe not.", "if | %s if all goes well.", "not anymore | %s, but not anymore.",
		"imagine | Imagine that %s.", "only if | Only if %s will it work.", "never | Never remember that %s.", "don't | Don't assume that %s.", "not | Not %s.", "nor | Nor %s.", "far from | It is far from true that %s.",
	}},
	{"de", []string{
		"ich wohne in Paris", "ich trinke jeden Morgen Milch", "ich bin allergisch gegen Nüsse", "ich arbeite bei Globex als Pfleger", "meine Schwester heißt Mara", "ich esse Fleisch", "meine Lieblingsfarbe ist grün",
	}, []string{
		"nicht | Es stimmt nicht, dass %s.", "nie | Ich habe nie gesagt, %s.", "nicht | Nicht dass es heißt, %s.", "bezweifle | Ich bezweifle, dass %s.", "vielleicht | Vielleicht, %s.", "falls | Falls es so ist: %s.",
		"wenn | Wenn ich sage, %s, dann lüge ich.", "Bruder | Mein Bruder sagt, %s.", "angeblich | Angeblich gilt: %s.", "sie | Sie glaubt, %s.", "gelogen | %s, das war gelogen.", "nicht mehr | %s, aber nicht mehr.",
		"kein | Kein Mensch glaubt, %s.", "sagt | %s, sagt mein Bruder.", "nur | Nur montags gilt: %s.", "ob | Ich frage mich, ob %s.", "laut | Laut meiner Mutter: %s.",
	}},
	{"fr", []string{
		"je vis à Paris", "je bois du lait chaque matin", "je suis allergique aux noix", "je travaille chez Globex comme infirmier", "ma sœur s'appelle Mara", "je mange de la viande", "ma couleur préférée est le vert",
	}, []string{
		"pas | Il n'est pas vrai que %s.", "jamais | Je n'ai jamais dit que %s.", "doute | Je doute que %s.", "peut-être | Peut-être que %s.", "si | Si %s, dis-moi quoi faire.", "frère | Mon frère dit que %s.",
		"elle | Elle pense que %s.", "faux | Il est faux que %s.", "personne | Personne ne croit que %s.", "rêvé | J'ai rêvé que %s.", "dit | %s, dit mon frère.", "plus | %s, mais plus maintenant.", "selon | Selon ma mère, %s.", "mensonge | C'est un mensonge que %s.", "non | Non que %s.",
	}},
	{"es", []string{
		"vivo en París", "bebo leche cada mañana", "puedo beber leche", "soy alérgico a las nueces", "trabajo en Globex como enfermero", "mi hermana se llama Mara", "como carne", "soporto el calor", "mi color favorito es el verde", "me gusta el frío",
	}, []string{
		"No | No %s.", "ya no | Ya no %s.", "nunca | Nunca %s.", "no es | No es verdad que %s.", "dudo | Dudo que %s.", "quizás | Quizás %s.", "tal vez | Tal vez %s.", "si | Si %s, dime qué hacer.", "hermano | Mi hermano dice que %s.",
		"ella | Ella cree que %s.", "falso | Es falso que %s.", "nadie | Nadie cree que %s.", "soñé | Soñé que %s.", "dice | %s, dice mi hermano.", "ya no | %s, pero ya no.", "según | Según mi madre, %s.", "mentira | Es mentira que %s.", "tampoco | Tampoco %s.", "jamás | Jamás %s.", "ojalá | Ojalá %s.",
	}},
	{"it", []string{"abito a Parigi", "sono allergica alle noci", "bevo latte ogni mattina", "mia sorella si chiama Mara", "lavoro come infermiera", "mi piace il freddo", "posso bere latte", "mangio carne"}, []string{
		"non | Non %s.", "non è vero | Non è vero che %s.", "forse | Forse %s.", "se | Se %s, dimmi cosa fare.", "fratello | Mio fratello dice che %s.", "dubito | Dubito che %s.", "falso | È falso che %s.",
		"nessuno | Nessuno crede che %s.", "sognato | Ho sognato che %s.", "dice | %s, dice mio fratello.", "non più | %s, ma non più.", "secondo | Secondo mia madre, %s.", "bugia | È una bugia che %s.", "mai | Mai %s.",
	}},
	{"pt", []string{"moro em Paris", "sou alérgica a nozes", "bebo leite toda manhã", "minha irmã se chama Mara", "trabalho como enfermeira", "gosto de frio", "posso beber leite", "como carne"}, []string{
		"não | Não %s.", "não é verdade | Não é verdade que %s.", "talvez | Talvez %s.", "se | Se %s, diga o que fazer.", "irmão | Meu irmão diz que %s.", "duvido | Duvido que %s.", "falso | É falso que %s.",
		"ninguém | Ninguém acredita que %s.", "sonhei | Sonhei que %s.", "diz | %s, diz meu irmão.", "não mais | %s, mas não mais.", "segundo | Segundo minha mãe, %s.", "mentira | É mentira que %s.", "nunca | Nunca %s.",
	}},
	{"nl", []string{"ik woon in Parijs", "ik ben allergisch voor noten", "ik drink elke ochtend melk", "mijn zus heet Mara", "ik werk als verpleegkundige", "ik hou van kou", "ik eet vlees"}, []string{
		"niet waar | Het is niet waar dat %s.", "misschien | Misschien %s.", "als | Als %s, zeg me wat ik moet doen.", "broer | Mijn broer zegt dat %s.", "betwijfel | Ik betwijfel of %s.", "onwaar | Het is onwaar dat %s.",
		"niemand | Niemand gelooft dat %s.", "droomde | Ik droomde dat %s.", "zegt | %s, zegt mijn broer.", "niet meer | %s, maar niet meer.", "volgens | Volgens mijn moeder: %s.", "gelogen | %s, dat is gelogen.",
	}},
	{"ru", []string{"я живу в Париже", "у меня аллергия на орехи", "я пью молоко каждое утро", "мою сестру зовут Мара", "я работаю медсестрой", "я люблю холод", "я ем мясо"}, []string{
		"неправда | Неправда, что %s.", "возможно | Возможно, %s.", "если | Если %s, скажи, что делать.", "брат | Мой брат говорит, что %s.", "сомневаюсь | Сомневаюсь, что %s.", "ложь | Это ложь, что %s.",
		"никто | Никто не верит, что %s.", "приснилось | Мне приснилось, что %s.", "говорит | %s, говорит мой брат.", "больше нет | %s, но больше нет.", "будто | Говорят, будто %s.", "не | Не то чтобы %s.",
	}},
	{"ar", []string{"أسكن في باريس", "عندي حساسية من المكسرات", "أشرب الحليب كل صباح", "أختي اسمها مارا", "أعمل ممرضة", "أحب البرد"}, []string{
		"لا | لا %s.", "غير صحيح | غير صحيح أن %s.", "ربما | ربما %s.", "إذا | إذا %s فماذا أفعل.", "أخي | أخي يقول إن %s.", "أشك | أشك أن %s.", "كذب | هذا كذب أن %s.", "حلمت | حلمت أن %s.", "لو | لو %s.", "يقول | %s، يقول أخي.",
	}},
	{"hi", []string{"मैं पेरिस में रहता हूँ", "मुझे मेवों से एलर्जी है", "मैं हर सुबह दूध पीता हूँ", "मेरी बहन का नाम मारा है", "मुझे ठंड पसंद है"}, []string{
		"सच नहीं | यह सच नहीं है कि %s।", "शायद | शायद %s।", "अगर | अगर %s तो क्या करूँ।", "भाई | मेरा भाई कहता है कि %s।", "शक | मुझे शक है कि %s।", "झूठ | यह झूठ है कि %s।", "सपना | मैंने सपना देखा कि %s।", "झूठ | %s, यह झूठ है।",
	}},
	{"ko", []string{"저는 파리에 살아요", "저는 견과류 알레르기가 있어요", "제 여동생 이름은 마라예요", "저는 추위를 좋아해요"}, []string{
		"아마 | 아마 %s.", "만약 | 만약 %s, 어떻게 할까요.", "형 | 형이 %s라고 말해요.", "거짓말 | %s, 그건 거짓말이에요.", "것 같 | %s인 것 같아요.", "꿈 | 꿈에서 %s.",
	}},
	{"zh", []string{"我住在巴黎", "我喜欢喝牛奶", "我对花生过敏", "我在医院工作", "我养了一只猫"}, []string{
		"不是 | 不是说%s。", "没有 | 我没有说过%s。", "如果 | 如果%s，该怎么办。", "可能 | 可能%s。", "弟弟 | 我弟弟说%s。", "她 | 她以为%s。", "也许 | 也许%s。", "假的 | %s，这是假的。", "不是 | 请记住不是%s。",
	}},
	{"ja", []string{"私はパリに住んでいます", "私は牛乳が好きです", "私は病院で働いています", "私は猫を飼っています"}, []string{
		"ではない | %sというわけではない。", "もし | もし%sなら教えて。", "弟 | 弟は%sと言った。", "かもしれない | %sかもしれない。", "嘘 | %sというのは嘘です。", "と思われた | %sと思われた。",
	}},
}

// senseLeads may stand before any sentence and change nothing.
var senseLeads = map[string][]string{
	"en": {"", "Well, ", "Hi, ", "By the way, ", "No, ", "Sorry, ", "And ", "Actually, ", "Remember that ", "Please remember: ", "I am vegan, and ", "What can I cook? "},
	"de": {"", "Hallo, ", "Übrigens, ", "Nein, ", "Und ", "Merk dir: ", "Ich bin Veganer, und "},
	"fr": {"", "Salut, ", "Au fait, ", "Non, ", "Et ", "Souviens-toi : "},
	"es": {"", "Hola, ", "Por cierto, ", "Sí, ", "Y ", "Recuerda que "},
	"it": {"", "Ciao, ", "Comunque, ", "E ", "Ricorda che "},
	"pt": {"", "Oi, ", "Aliás, ", "E ", "Lembre que "},
	"nl": {"", "Hoi, ", "Trouwens, ", "En ", "Onthoud dat "},
	"ru": {"", "Привет, ", "Кстати, ", "И ", "Запомни, что "},
	"ar": {"", "مرحبا، ", "بالمناسبة، ", "تذكر أن "},
	"hi": {"", "नमस्ते, ", "वैसे, ", "याद रखें कि "},
	"ko": {"", "그런데 "},
	"zh": {"", "你好，"}, "ja": {"", "ちなみに、"},
}

func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 1 && r[0] != 'I' {
		return strings.ToLower(string(r[:1])) + string(r[1:])
	}
	return s
}

func upperFirst(s string) string {
	r := []rune(s)
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}

// frames calls check with every frame of every fact: the text, the key without
// which it has another sense, and the fact.
func eachSense(check func(language, text, key, fact string)) {
	for _, l := range allSenses {
		for _, fact := range l.facts {
			for _, f := range l.frames {
				key, frame, _ := strings.Cut(f, " | ")
				inner := fact
				if strings.HasPrefix(frame, "%s") {
					inner = upperFirst(fact)
				}
				sentence := fmt.Sprintf(frame, inner)
				for _, lead := range senseLeads[l.language] {
					text := sentence
					if lead != "" && !strings.HasSuffix(lead, "? ") {
						text = lowerFirst(sentence)
					}
					check(l.language, lead+text, key, fact)
				}
			}
		}
	}
}

// opposite returns the quotation of a candidate of text that says fact without
// what key says of it, "" if there is none.
func opposite(text, key, fact string) (quote string) {
	Statements(text, time.Time{}, func(c *Candidate) {
		if strings.Contains(fold(c.Quote), fold(fact)) && !strings.Contains(fold(c.Quote), fold(key)) {
			quote = c.Quote
		}
	})
	return quote
}

// No rule takes words out of a sentence that change its sense: no fact comes
// out of a sentence that denies it, doubts it, wishes for it or says that
// somebody else says it, unless these words come with it.
func TestNoFactOfOppositeSense(t *testing.T) {
	n, wrong := 0, 0
	eachSense(func(language, text, key, fact string) {
		n++
		if quote := opposite(text, key, fact); quote != "" {
			if wrong++; wrong <= 400 {
				t.Errorf("%s: %q becomes %q", language, text, quote)
			}
		}
	})
	t.Logf("%d of %d sentences", wrong, n)
}

// A denial is kept, and compared as one.
func TestDenials(t *testing.T) {
	for text, want := range map[string]string{
		"No soporto el calor.":                               "No soporto el calor.",
		"No puedo beber leche.":                              "No puedo beber leche.",
		"Hola, no como carne de cerdo.":                      "no como carne de cerdo.",
		"Sí, vivo en París.":                                 "vivo en París.",
		"No longer living in Paris with my sister Mara.":     "",
		"No, I live in Paris.":                               "I live in Paris.",
		"No wait, I live in Paris.":                          "I live in Paris.",
		"Don't forget that I can't drink milk.":              "I can't drink milk.",
		"Nein, ich wohne in Paris.":                          "ich wohne in Paris.",
		"Sorry, no I live in Paris.":                         "I live in Paris.",
		"I live in Paris, what should I see?":                "I live in Paris",
		"I don't drink milk, and I live in Paris, okay?":     "I don't drink milk, and I live in Paris",
		"If you ask me, I prefer tea, but what do you like?": "",
	} {
		got := ""
		Statements(text, time.Time{}, func(c *Candidate) { got = c.Quote })
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for denial, fact := range map[string]string{"No soporto el calor": "Soporto el calor", "No como carne": "Como carne"} {
		a, b := ParseStatement(denial), ParseStatement(fact)
		if !a.Negative || b.Negative || !a.Opposes(&b) {
			t.Errorf("%q and %q do not oppose each other", denial, fact)
		}
	}
}

// The facts themselves are found, whatever leads up to them.
func TestFactsOfSenses(t *testing.T) {
	for _, l := range allSenses {
		found, all := 0, 0
		for _, fact := range l.facts {
			for _, lead := range senseLeads[l.language] {
				all++
				text := lead + upperFirst(fact) + "."
				if lead != "" && !strings.HasSuffix(lead, "? ") {
					text = lead + fact + "."
				}
				Statements(text, time.Time{}, func(c *Candidate) {
					if strings.Contains(fold(c.Quote), fold(fact)) {
						found++
					}
				})
			}
		}
		t.Logf("%s: %d of %d", l.language, found, all)
	}
}

// Of frames within frames, with other sentences around them, one key is left at
// least: the fact alone never comes out.
func FuzzSense(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint8(0), uint8(1), uint8(2), uint8(3))
	f.Add(uint8(3), uint8(7), uint8(0), uint8(12), uint8(4), uint8(1))
	tails := []string{"", " Thanks!", " What do you think?", " Gracias.", " Und du?", "\n- one\n- two"}
	f.Fuzz(func(t *testing.T, language, fact, outer, inner, lead, tail uint8) {
		l := allSenses[int(language)%len(allSenses)]
		said := l.facts[int(fact)%len(l.facts)]
		text, keys := said, []string{}
		for _, n := range []uint8{inner, outer} {
			key, frame, _ := strings.Cut(l.frames[int(n)%len(l.frames)], " | ")
			if strings.HasPrefix(frame, "%s") {
				text = upperFirst(text)
			} else {
				text = lowerFirst(text)
			}
			text, keys = fmt.Sprintf(frame, strings.TrimRight(text, ".!。")), append(keys, key)
		}
		leads := senseLeads[l.language]
		if before := leads[int(lead)%len(leads)]; before != "" && !strings.HasSuffix(before, "? ") {
			text = before + lowerFirst(text)
		}
		text += tails[int(tail)%len(tails)]
		if quote := opposite(text, keys[0], said); quote != "" && !strings.Contains(fold(quote), fold(keys[1])) {
			t.Errorf("%q becomes %q, without %q", text, quote, keys)
		}
	})
}
