package text

import (
	"strings"
	"unicode"
)

// smallTalk lists whole messages in scripts without spaces, where words aren't
// separated.
var smallTalk = WordSet(`はい うん ええ いいえ ありがとう ありがとうございます ありがとうございました どうも 了解 了解です わかりました 分かりました お願いします よろしく
よろしくお願いします 続けて 続けてください いいね いいですね こんにちは おはよう おはようございます こんばんは なるほど 大丈夫 大丈夫です
好 好的 好吧 行 可以 是 是的 对 对的 嗯 嗯嗯 谢谢 谢谢你 谢谢您 多谢 感谢 不 不用 不是 没有 继续 请继续 你好 您好 早上好 晚安 再见 明白 明白了 知道了
收到 没问题 太好了 謝謝 好喔 對 繼續 沒問題 知道 可以的 恭喜 恭喜你 恭喜您 不客气 不客氣 没关系 沒關係 当然 當然 当然可以 好的明白了 嗨 太棒了 真棒
おめでとう おめでとうございます どういたしまして 承知しました 承知いたしました かしこまりました もちろん もちろんです すごい すごいですね かわいいですね
素敵ですね それはよかったです よかったです よかったですね おやすみ おやすみなさい お疲れ様です お疲れ様でした 네 예 아니요 고마워 고마워요 감사합니다 안녕하세요 좋아요 알겠습니다 계속`)

// particles are the characters of scripts without spaces, and pairs of them,
// that carry no topic: the kana of grammar, and what occurs in every other
// Chinese sentence. A pair with any other character is a term.
var particles = func() map[string]bool {
	m := WordSet(`です ます した して てい いる いま まし ませ せん すか ので から まで でし たい ない こと もの よう これ それ あれ この その あの いて れて った んで んな とか には では とは のは
なに 何 私 僕 我 你 您 他 她 它 们 們 的 了 是 在 有 和 不 吗 嗎 呢 吧 啊 这 這 那 个 個 什 么 麼 怎 就 都 也 很 会 會 要 说 說 什么 什麼 怎么 怎麼 哪 哪里 哪裡 哪个 哪個 里 裡 谁 誰 几 幾 多少 どこ いつ だれ 我们 我們 你们 你們 我的 你的 这个 這個 那个 那個`)
	for r := 'ぁ'; r <= 'ゖ'; r++ { // hiragana
		m[string(r)] = true
	}
	return m
}()

// maxSmallTalk is the longest message that can be small talk, in bytes.
const maxSmallTalk = 60

// IsSmallTalk reports whether a whole message in a script without spaces is
// small talk.
func IsSmallTalk[T string | []byte](message T) bool {
	return len(message) <= maxSmallTalk && smallTalk[strings.TrimFunc(string(message), func(r rune) bool { return !unicode.IsLetter(r) })]
}

// hinge lists the characters that join words, and those of questions and
// persons.
const hinge = "はがをにでともへのやな我你您他她的了是在吗嗎呢吧什么麼怎哪谁誰"

// hinges reports whether one of two neighbours joins words, so that the pair is
// no word. Two kana don't count.
func hinges(a, b string) bool {
	return strings.Contains(hinge, a) && !kana(b) || strings.Contains(hinge, b) && !kana(a)
}

// kana reports whether a character is hiragana.
func kana(c string) bool { return c >= "ぁ" && c <= "ゟ" }
