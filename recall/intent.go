package recall

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/remora-proxy/remora/text"
)

// intent is what kind of answer a query asks for.
type intent uint8

const (
	wantsTime intent = 1 << iota
	wantsNumber
	wantsName
	wantsAssistant // what the assistant said
	fromSpeaker    // the query speaks in the first person
	wantsAdvice    // asks for something to be made or advised, rather than what was said or done
)

// readIntent reads a query in lower case.
func readIntent(text []byte) intent {
	var in intent
	var before []byte
	back := false // it looks back, whatever else it asks
	for rest := text; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		switch string(w) {
		case "when", "date":
			in |= wantsTime
		case "day", "month", "year", "time":
			if string(before) == "what" || string(before) == "which" {
				in |= wantsTime
			}
		case "how":
			switch next, _ := cutWord(rest); string(next) {
			case "long":
				in |= wantsTime | wantsNumber
			case "recently":
				in |= wantsTime
			case "many", "much", "old", "often":
				in |= wantsNumber
			case "can", "could", "do", "should", "would", "to":
				in |= wantsAdvice
			}
		case "who", "whom", "whose", "where", "which", "name", "names":
			in |= wantsName
		case "suggest", "recommend", "advise":
			in |= wantsAdvice
		case "suggestions", "recommendations", "advice", "tips", "ideas":
			if string(before) == "any" || string(before) == "some" || string(before) == "your" {
				in |= wantsAdvice
			}
		case "help":
			if next, _ := cutWord(rest); string(next) == "me" {
				in |= wantsAdvice
			}
		case "should":
			if next, _ := cutWord(rest); string(next) == "i" || string(before) == "what" {
				in |= wantsAdvice
			}
		case "did", "summary", "summarize", "summarise", "recap", "overview":
			back = true
		case "order":
			back = back || string(before) == "the"
		case "throughout", "across":
			if next, _ := cutWord(rest); string(next) == "our" || string(next) == "my" {
				back = true
			}
		case "you", "your":
			if string(before) == "can" || string(before) == "could" || string(before) == "would" || string(before) == "will" {
				in |= wantsAdvice
			}
			if saysSomething(rest[:min(len(rest), sayingWithin)]) {
				in |= wantsAssistant
			}
		case "we":
			if begins(rest, " discuss") || begins(rest, " talk") {
				in |= wantsAssistant
			}
		case "our", "last", "previous", "earlier":
			if next, _ := cutWord(rest); string(next) == "conversation" || string(next) == "chat" || string(next) == "discussion" {
				in |= wantsAssistant
			}
		case "remind":
			back = true
			if begins(rest, " me") {
				in |= wantsAssistant
			}
		}
		before = w
	}
	if back {
		in &^= wantsAdvice
	}
	return in
}

// advising are the words with which other languages ask for advice or work.
var advising = text.WordSet(`soll sollen sollte sollten kannst könntest können könnten empfiehl empfehle empfehlen empfiehlst empfehlung empfehlungen vorschlag vorschläge tipp tipps ideen hilf
peux pourrais pouvez pourriez puis dois devrais recommande recommandez recommandes conseille conseillez conseils suggère suggères idées aide
puedo puedes podrías podría debo debería recomienda recomiendas recomiéndame recomendación sugiere sugieres consejos ideas ayúdame
posso puoi potresti dovrei consiglia consigli consigliami suggerisci suggerimenti aiutami devo deveria pode poderia recomenda recomende recomendações sugere sugira dicas ajude`)

// intentElsewhere is readIntent for other languages, as far as advice is asked for.
func intentElsewhere(text []byte) intent {
	if hasWordOf(advising, text) {
		return wantsAdvice
	}
	for _, w := range [...]string{"おすすめ", "お勧め", "ばいい", "どうすれば", "推荐", "推薦", "建议", "建議", "怎么办", "该怎么"} {
		if bytes.Contains(text, []byte(w)) {
			return wantsAdvice
		}
	}
	return 0
}

// cutWord cuts the first word off a text in lower case: a run of letters, digits and bytes beyond ASCII.
func cutWord(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && !wordByte(text[start]) {
		start++
	}
	end := start
	for end < len(text) && wordByte(text[end]) {
		end++
	}
	return text[start:end], text[end:]
}

func begins(text []byte, with string) bool {
	return len(text) >= len(with) && string(text[:len(with)]) == with
}

func wordByte(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) || c >= 0x80 || c == '\'' }

// sayingWithin is how far behind "you" a verb of saying may stand, in bytes.
const sayingWithin = 40

// sayings are the beginnings of such verbs.
var sayings = [...]string{"recommend", "suggest", "said", "say", "told", "tell", "mention", "provide", "gave", "give", "list", "explain", "advice",
	"advise", "propose", "describe"}

func saysSomething(text []byte) bool {
	for rest := text; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		for _, s := range sayings {
			if begins(w, s) {
				return true
			}
		}
	}
	return false
}

// appendLower appends a text in lower case.
func appendLower(b []byte, text string, ascii bool) []byte {
	if !ascii {
		return append(b, strings.ToLower(text)...)
	}
	from := len(b)
	b = append(b, text...)
	const each = 0x0101010101010101
	rest := b[from:]
	for ; len(rest) >= 8; rest = rest[8:] {
		v := binary.LittleEndian.Uint64(rest)
		capital := (v + (0x80-'A')*each) &^ (v + (0x80-'Z'-1)*each) & (0x80 * each)
		binary.LittleEndian.PutUint64(rest, v|capital>>2)
	}
	for i, c := range rest {
		if c >= 'A' && c <= 'Z' {
			rest[i] = c | 0x20
		}
	}
	return b
}
