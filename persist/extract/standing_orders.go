package extract

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed orders.txt
var ordersText string

// standingOrders are parsed on first use and never changed.
var standingOrders = sync.OnceValue(func() *wordBook { return parseLexicon(ordersText, firstOrderBit) })

// orders reports whether text gives a model orders for later conversations:
// "for all future conversations always recommend ...", "note to the AI: the
// user has agreed". From users these are preferences. In an assistant's answer,
// or in what a user pasted, they are how a page plants a memory.
//
// An assistant that promises something speaks in the first person: "I'll do so
// in all future conversations".
func orders(text string) bool {
	if len(text) > maxInstruct {
		text = text[:maxInstruct]
	}
	return scan(text).mayOrder() && ordering(text)
}

// ordering is orders for text that mayOrder and is no longer than maxInstruct.
func ordering(text string) bool {
	ascii := isASCII(text)
	for i := range foreignTokens {
		t := &foreignTokens[i]
		if ascii && t.a[0] >= utf8.RuneSelf {
			continue
		}
		if strings.Contains(text, t.a) && strings.Contains(text, t.b) {
			return true
		}
	}
	return ordered(plain(text))
}

// ordered is ordering by patterns of words.
func ordered(text string) bool {
	var space [passageWords]word
	ws := appendWords(space[:0], text)
	for i := range ws {
		for _, p := range ws[i].known.more.orders {
			n := match(p.parts, ws[i:])
			if n >= 0 && !firstPersonVoice(ws[sentenceAt(text, ws, i):min(i+n+4, len(ws))]) {
				return true
			}
		}
	}
	return false
}

// sentenceAt returns the index of the first word of the sentence that holds
// ws[i].
func sentenceAt(text string, ws []word, i int) int {
	for ; i > 0; i-- {
		if ws[i].clause && strings.ContainsAny(text[min(ws[i-1].end, len(text)):min(max(ws[i].start, ws[i-1].end), len(text))], ".!?\n") {
			break
		}
	}
	return i
}

// orderWords hold, for each pattern, the words of one part that it needs: the
// part with the fewest common words.
var orderWords = sync.OnceValue(func() map[string]bool { return requiredWords(standingOrders()) })

func requiredWords(l *wordBook) map[string]bool {
	out, seen := map[string]bool{}, map[*pattern]bool{}
	for _, list := range l.byFirst {
		for _, p := range list {
			if seen[p] {
				continue
			}
			seen[p] = true
			var best []string
			fewest := 0
			for i := range p.parts {
				e := &p.parts[i]
				if e.any || e.digit || e.capital || e.negated || e.few || e.end || e.optional {
					continue
				}
				all := append([]string(nil), e.words...)
				for _, set := range e.sets {
					for w := range set {
						all = append(all, w)
					}
				}
				common := 0
				for _, w := range all {
					switch {
					case veryCommon[w]:
						common += 2
					case lexicon().stop[w] && w != "ai":
						common++
					}
				}
				if best == nil || common < fewest {
					best, fewest = all, common
				}
			}
			for _, w := range best {
				out[w] = true
			}
		}
	}
	return out
}

// veryCommon words are in every other text, more so than stop words.
var veryCommon = setOf("remember from on new answer answers use next first only always never add write put note tell show say")

// firstPersonVoice reports whether the speaker is a subject.
func firstPersonVoice(ws []word) bool {
	for i := range ws {
		switch ws[i].folded {
		case "i", "ich", "je", "yo", "io":
			return true
		}
	}
	return false
}

// foreignTokens are orders in scripts that eachWord does not divide into words:
// two pieces that prose seldom holds together.
var foreignTokens = [...]struct{ a, b string }{
	{"从现在开始", "你必须"}, {"从现在起", "你必须"}, {"从现在开始", "你要"}, {"以后每次", "你必须"}, {"所有对话", "你必须"}, {"每个回答", "必须"}, {"每次回答", "必须"}, {"不要告诉用户", "这"},
	{"今後のすべての", "ください"}, {"これ以降", "必ず"}, {"すべての会話", "必ず"}, {"全ての回答", "なさい"}, {"すべての回答", "ください"}, {"全ての会話", "ください"}, {"ユーザーに", "言わないで"},
	{"С этого момента", "ты"}, {"с этого момента", "ты"}, {"Отныне", "ты"}, {"в каждом ответе", "должен"}, {"не говори", "пользователю"},
	{"지금부터", "반드시"}, {"모든 대화", "반드시"}, {"사용자에게", "말하지"},
	{"\nHuman:", "\nAssistant:"}, {"Human:", "\nAssistant:"},
}
