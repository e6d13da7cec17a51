package query

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/remora-proxy/remora/text"
)

// Intent is the kind of answer that a query asks for.
type Intent uint8

const (
	WantsTime Intent = 1 << iota
	WantsNumber
	WantsName
	WantsAssistant // what the assistant said
	FirstPerson    // it speaks in the first person
	WantsAdvice    // it wants something made or advised, rather than to know what was said or done
)

// ReadIntent returns the intent of an English message in lower case.
func ReadIntent(text []byte) Intent {
	var in Intent
	var before []byte
	back := false // it asks about the past, which no advice answers
	for rest := text; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		switch string(w) {
		case "when", "date":
			in |= WantsTime
		case "day", "month", "year", "time":
			if string(before) == "what" || string(before) == "which" {
				in |= WantsTime
			}
		case "how":
			switch next, _ := cutWord(rest); string(next) {
			case "long":
				in |= WantsTime | WantsNumber
			case "recently":
				in |= WantsTime
			case "many", "much", "old", "often":
				in |= WantsNumber
			case "can", "could", "do", "should", "would", "to":
				in |= WantsAdvice
			}
		case "who", "whom", "whose", "where", "which", "name", "names":
			in |= WantsName
		case "suggest", "recommend", "advise":
			in |= WantsAdvice
		case "suggestions", "recommendations", "advice", "tips", "ideas":
			if string(before) == "any" || string(before) == "some" || string(before) == "your" {
				in |= WantsAdvice
			}
		case "help":
			if next, _ := cutWord(rest); string(next) == "me" {
				in |= WantsAdvice
			}
		case "should":
			if next, _ := cutWord(rest); string(next) == "i" || string(before) == "what" {
				in |= WantsAdvice
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
				in |= WantsAdvice
			}
			if hasSayingVerb(rest[:min(len(rest), maxSayingBytes)]) {
				in |= WantsAssistant
			}
		case "we":
			if hasPrefix(rest, " discuss") || hasPrefix(rest, " talk") {
				in |= WantsAssistant
			}
		case "our", "last", "previous", "earlier":
			if next, _ := cutWord(rest); string(next) == "conversation" || string(next) == "chat" || string(next) == "discussion" {
				in |= WantsAssistant
			}
		case "remind":
			back = true
			if hasPrefix(rest, " me") {
				in |= WantsAssistant
			}
		}
		before = w
	}
	if back {
		in &^= WantsAdvice
	}
	return in
}

// advising has the words with which other languages ask for advice or work.
var advising = text.WordSet(`soll sollen sollte sollten kannst könntest können könnten empfiehl empfehle empfehlen empfiehlst empfehlung empfehlungen vorschlag vorschläge tipp tipps ideen hilf
peux pourrais pouvez pourriez puis dois devrais recommande recommandez recommandes conseille conseillez conseils suggère suggères idées aide
puedo puedes podrías podría debo debería recomienda recomiendas recomiéndame recomendación sugiere sugieres consejos ideas ayúdame
posso puoi potresti dovrei consiglia consigli consigliami suggerisci suggerimenti aiutami devo deveria pode poderia recomenda recomende recomendações sugere sugira dicas ajude`)

// readForeignIntent is ReadIntent for other languages. It recognises requests
// for advice only.
func readForeignIntent(text []byte) Intent {
	if hasWordOf(advising, text) {
		return WantsAdvice
	}
	for _, w := range [...]string{"おすすめ", "お勧め", "ばいい", "どうすれば", "推荐", "推薦", "建议", "建議", "怎么办", "该怎么"} {
		if bytes.Contains(text, []byte(w)) {
			return WantsAdvice
		}
	}
	return 0
}

// cutWord cuts off the first word of a text in lower case: a run of letters,
// digits, apostrophes and bytes beyond ASCII.
func cutWord(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && !isWordByte(text[start]) {
		start++
	}
	end := start
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return text[start:end], text[end:]
}

// hasPrefix reports whether text begins with a string.
func hasPrefix(text []byte, with string) bool {
	return len(text) >= len(with) && string(text[:len(with)]) == with
}

// isWordByte reports whether c is part of a word.
func isWordByte(c byte) bool { return c >= 'a' && c <= 'z' || IsDigit(c) || c >= 0x80 || c == '\'' }

// maxSayingBytes is the maximum distance from "you" to a verb of saying.
const maxSayingBytes = 40

// sayingVerbs has the beginnings of such verbs.
var sayingVerbs = [...]string{"recommend", "suggest", "said", "say", "told", "tell", "mention", "provide", "gave", "give", "list", "explain", "advice",
	"advise", "propose", "describe"}

// hasSayingVerb reports whether a text has a verb of saying.
func hasSayingVerb(text []byte) bool {
	for rest := text; len(rest) > 0; {
		var w []byte
		w, rest = cutWord(rest)
		for _, s := range sayingVerbs {
			if hasPrefix(w, s) {
				return true
			}
		}
	}
	return false
}

// appendLower appends text in lower case, ASCII eight bytes at a time.
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

// hasWordOf reports whether a text in lower case contains one of these words.
func hasWordOf(words map[string]bool, lower []byte) bool {
	for rest := lower; len(rest) > 0; {
		var w []byte
		if w, rest = cutWord(rest); words[string(w)] {
			return true
		}
	}
	return false
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }
