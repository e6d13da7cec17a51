package recall

import "strings"

// intent is what kind of answer a query asks for.
type intent uint8

const (
	wantsTime intent = 1 << iota
	wantsNumber
	wantsName
	wantsAssistant // what the assistant said
	fromSpeaker    // the query speaks in the first person
)

// readIntent reads a query in lower case.
func readIntent(text string) intent {
	var in intent
	before := ""
	for rest := text; rest != ""; {
		var w string
		w, rest = cutWord(rest)
		switch w {
		case "when", "date":
			in |= wantsTime
		case "day", "month", "year", "time":
			if before == "what" || before == "which" {
				in |= wantsTime
			}
		case "how":
			switch next, _ := cutWord(rest); next {
			case "long":
				in |= wantsTime | wantsNumber
			case "recently":
				in |= wantsTime
			case "many", "much", "old", "often":
				in |= wantsNumber
			}
		case "who", "whom", "whose", "where", "which", "name", "names":
			in |= wantsName
		case "you", "your":
			if saysSomething(rest[:min(len(rest), sayingWithin)]) {
				in |= wantsAssistant
			}
		case "we":
			if strings.HasPrefix(rest, " discuss") || strings.HasPrefix(rest, " talk") {
				in |= wantsAssistant
			}
		case "our", "last", "previous", "earlier":
			if next, _ := cutWord(rest); next == "conversation" || next == "chat" || next == "discussion" {
				in |= wantsAssistant
			}
		case "remind":
			if strings.HasPrefix(rest, " me") {
				in |= wantsAssistant
			}
		}
		before = w
	}
	return in
}

// cutWord cuts the first word off a text in lower case: a run of letters, digits and bytes beyond ASCII.
func cutWord(text string) (word, rest string) {
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

func wordByte(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) || c >= 0x80 || c == '\'' }

// sayingWithin is how far behind "you" a verb of saying may stand, in bytes.
const sayingWithin = 40

// sayings are the beginnings of such verbs.
var sayings = [...]string{"recommend", "suggest", "said", "say", "told", "tell", "mention", "provide", "gave", "give", "list", "explain", "advice",
	"advise", "propose", "describe"}

func saysSomething(text string) bool {
	for rest := text; rest != ""; {
		var w string
		w, rest = cutWord(rest)
		for _, s := range sayings {
			if strings.HasPrefix(w, s) {
				return true
			}
		}
	}
	return false
}
