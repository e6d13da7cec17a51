package extract

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Chinese and Japanese do not separate words, so patterns of words find nothing
// in them. For comparing, each character is a word. A few regular expressions
// recognise statements in the first person, names, due dates and what is to be
// remembered.

//go:embed ideographs.txt
var ideographText string

// ideograph reports whether a letter is a Chinese character or kana.
func ideograph(r rune) bool {
	return r >= 0x3041 && r <= 0x30FF && r != '・' || r >= 0x3400 && r <= 0x9FFF || r == '々' || r >= 0xF900 && r <= 0xFAFF || r >= 0x20000 && r <= 0x3FFFF
}

// hasIdeographs reports whether text has at least two ideographs, and more than
// one for every three other letters.
func hasIdeographs(text string) bool {
	n, letters := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			if text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z' {
				letters++
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if ideograph(r) {
			n++
		} else if unicode.IsLetter(r) {
			letters++
		}
		i += size
	}
	return n > 1 && n > letters/3
}

// ideographRule gives a mark to sentences that an expression matches as a
// whole.
type ideographRule struct {
	mark mark
	says *regexp.Regexp
}

// ideographRules are compiled when the first such sentence is read: many users
// never write one. Each line in the section of a mark is a rule; the first that
// matches decides. The text is constant, and tests read it.
var ideographRules = sync.OnceValue(func() []ideographRule {
	var rules []ideographRule
	var section mark
	var parts []string // {name}, its value
	for line := range strings.Lines(ideographText) {
		line = strings.TrimSpace(line)
		name, is, defines := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ':':
			section = markOf(line[1:])
		case defines:
			parts = append(parts, name, "(?:"+strings.NewReplacer(parts...).Replace(is)+")")
		default:
			rules = append(rules, ideographRule{section, regexp.MustCompile("^(?:" + strings.NewReplacer(parts...).Replace(line) + ")$")})
		}
	}
	return rules
})

// judgeIdeographs is judge for a sentence in Chinese or Japanese.
func judgeIdeographs(s string) span {
	bare := strings.TrimRight(s, "。.!！~～ 　?？")
	asks := strings.ContainsAny(s, "?？")
	for _, rule := range ideographRules() {
		if asks && rule.mark != markRemember {
			return span{reject: RejectQuestion} // but for "can you remember that ...?"
		}
		m := rule.says.FindStringSubmatchIndex(bare)
		if m == nil {
			continue
		}
		quote := strings.TrimSpace(bare)
		if len(m) > 2 && m[2] >= 0 { // the part to keep
			quote = strings.TrimSpace(bare[m[2]:m[3]])
		}
		if rule.mark == markRemember {
			if quote == "" {
				return span{reject: RejectCommand, points: true}
			}
			if asksIn(quote) {
				continue // "do you remember where I live?"
			}
		}
		switch rule.mark {
		case markQuestion:
			return span{reject: RejectQuestion}
		case markCommand:
			return span{reject: RejectCommand}
		case markTransient:
			return span{reject: RejectPassing}
		case markSmallTalk:
			return span{reject: RejectSmallTalk}
		case markForget:
			return span{forget: quote}
		}
		c := &Candidate{Quote: quote, kind: rule.mark, words: words(quote)}
		if rule.mark == markRemember {
			c.kind, c.Requested = markFact, true
		}
		if len(c.words) < 2 {
			return span{reject: RejectCommand} // nothing but signs to remember
		}
		return span{candidate: c}
	}
	return span{reject: RejectNothing}
}

// asksIn reports whether a text holds a word that asks.
func asksIn(s string) bool { return askingIdeographs.in(s) }

var askingIdeographs = needles{"哪", "什么", "什麼", "谁", "誰", "怎么", "怎麼", "为什么", "為什麼", "多少", "几点", "幾點", "どこ", "いつ", "なに", "何", "だれ", "なぜ", "どう", "어디", "언제", "무엇", "누구", "왜", "뭐"}

// hasHangul reports whether most letters of a text are Korean.
func hasHangul(text string) bool {
	n, letters := 0, 0
	for _, r := range text {
		if unicode.Is(unicode.Hangul, r) {
			n++
		} else if unicode.IsLetter(r) {
			letters++
		}
	}
	return n > 1 && n > letters/3
}

// commonIdeographs are in every other sentence.
const commonIdeographs = "的一是不了在人我有他这這个個们們来來到上大为為和地道出要以时時会會可也你对對生能而子那得于於着下自之年过過后後作里裡没沒她说說吗嗎呢吧什么麼怎请請私何今日"
