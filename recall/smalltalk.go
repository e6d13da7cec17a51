package recall

import (
	"strings"
	"unicode"
)

// socialElsewhere are socialWords of other languages; those that carry no topic anyway are left out.
var socialElsewhere = [languages]string{
	langGerman:     "super klasse prima perfekt genau gut toll wunderbar klar passt okay hallo moin tschüss servus vielen herzlichen dank weiter mach gern gerne bitteschön",
	langFrench:     "parfait super génial excellent bonjour bonsoir salut accord d'accord d ça marche beaucoup continue parfaitement top cool",
	langSpanish:    "perfecto genial estupendo vale hola bueno buenos buenas días tardes noches claro acuerdo adelante sigue continúa muchas",
	langItalian:    "perfetto ottimo bene ciao buongiorno buonasera mille va continua certo accordo",
	langPortuguese: "perfeito ótimo bom boa olá certo claro continua muito beleza",
	langDutch:      "perfect prima goed hallo hoi bedankt oké verder graag mooi",
}

// smallTalk are whole messages in scripts without spaces, where words don't stand by themselves.
var smallTalk = set(`はい うん ええ いいえ ありがとう ありがとうございます ありがとうございました どうも 了解 了解です わかりました 分かりました お願いします よろしく
よろしくお願いします 続けて 続けてください いいね いいですね こんにちは おはよう おはようございます こんばんは なるほど 大丈夫 大丈夫です
好 好的 好吧 行 可以 是 是的 对 对的 嗯 嗯嗯 谢谢 谢谢你 谢谢您 多谢 感谢 不 不用 不是 没有 继续 请继续 你好 您好 早上好 晚安 再见 明白 明白了 知道了
收到 没问题 太好了 謝謝 好喔 對 繼續 沒問題 知道 可以的`)

// maxSmallTalk bounds a message of smallTalk, in bytes.
const maxSmallTalk = 60

// isSmallTalk reports whether a message is one of smallTalk.
func isSmallTalk(message string) bool {
	return len(message) <= maxSmallTalk && smallTalk[strings.TrimFunc(message, func(r rune) bool { return !unicode.IsLetter(r) })]
}
