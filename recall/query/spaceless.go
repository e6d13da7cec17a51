package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// In scripts without spaces a question becomes characters and pairs of them.
// Many are no words: particles, or the end of one word with the start of the
// next. They must not weigh like words, or no memory seems to answer.

const (
	// insideWeight is the share of a character's weight inside a known word.
	insideWeight = 0.15
	// formWeight is that of characters with which questions and requests are
	// formed.
	formWeight = 0.3
)

// formCharacters form questions and requests in Chinese and Japanese.
var formCharacters = text.WordSet(`给 帮 请 请问 写 写一 一首 首 挑 选 一 一下 下 点 好 关 关于 于 把 被 让 跟 对 为 从 到 能 可 可以 以 应该 应 该 想 要 需要 知道 知 道 告诉 现在 现 今 最 还 再 又 吧 呀 嘛 家 做 叫 用 去 来 看 找 给我 帮我
推荐 推 荐 建议 建 议 解释 释 分析 析 介绍 介 绍 如何 如 何 为什 什么 人有 里有
教 書 书 聞 聞き 下さ 誰で 何で 今日 日`)

// koreanEndings are what Korean words may end in, the longest first: particles
// and forms of "to be" and "to do".
var koreanEndings = strings.Fields(`이었나요 이었어요 인가요 이에요 입니다 입니까 에서는 에게서 이라고 으로는 했어요 했나요 하나요 합니까 합니다 하는지 있나요 있어요 있습니까 됩니까 되나요 나요 까요 예요 에요 이야 해요 하고 하면 하는 에서 에게 한테 으로 까지 부터 이랑 보다 처럼 마다 였죠 이죠 인지 은 는 이 가 을 를 의 에 로 와 과 도 만 요 죠 야 해`)

// koreanForms are words that form questions.
var koreanForms = text.WordSet("제 제가 저 저는 저의 나 나는 나의 내 내가 우리 뭐 뭐예요 무엇 무엇인가요 누구 누구예요 언제 어디 어떻게 왜 얼마 몇 무슨 어떤 좀 안 되는 것 수 있는 해주세요 알려")

// weighSpaceless corrects the weights of terms of scripts without spaces.
func (q *Query) weighSpaceless() {
	korean := koreanWords(q.Text)
	terms := q.Terms[:0]
	for _, t := range q.Terms {
		first, n := utf8.DecodeRuneInString(t.Stem)
		switch {
		case !text.Spaceless(first):
		case unicode.Is(unicode.Hangul, first):
			if len(korean) > 0 && !t.Borrowed && !containsAny(korean, t.Stem) {
				continue
			}
			if len(t.Stem) == n && longer(korean, t.Stem) {
				t.Weight *= insideWeight
			}
		case formCharacters[t.Stem]:
			t.Weight *= formWeight
		case len(t.Stem) == n && (unicode.Is(unicode.Katakana, first) || q.insideRelated(t.Stem)):
			t.Weight *= insideWeight
		}
		terms = append(terms, t)
	}
	q.Terms = terms
}

// insideRelated reports whether a character is in a pair of the query that is a
// word with related ones.
func (q *Query) insideRelated(c string) bool {
	for _, t := range q.Terms {
		if t.Role&HasRelated != 0 && len(t.Stem) > len(c) && strings.Contains(t.Stem, c) {
			return true
		}
	}
	return false
}

// koreanWords returns the words of a Korean text without their endings, except
// those that form questions.
func koreanWords(s string) (words []string) {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.Is(unicode.Hangul, r) }) {
		if koreanForms[w] {
			continue
		}
		for again := 0; again < 2; again++ {
			for _, e := range koreanEndings {
				if base, ok := strings.CutSuffix(w, e); ok && utf8.RuneCountInString(base) >= 2 {
					w = base
					break
				}
			}
		}
		if !koreanForms[w] {
			words = append(words, w)
		}
	}
	return words
}

func containsAny(words []string, part string) bool {
	for _, w := range words {
		if strings.Contains(w, part) {
			return true
		}
	}
	return false
}

// longer reports whether a character is part of a longer word.
func longer(words []string, c string) bool {
	for _, w := range words {
		if len(w) > len(c) && strings.Contains(w, c) {
			return true
		}
	}
	return false
}
