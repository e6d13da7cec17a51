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
	wantsAdvice    // asks for something to be made or advised, rather than what was said or done
)

// readIntent reads a query in lower case.
func readIntent(text string) intent {
	var in intent
	before := ""
	back := false // it looks back, whatever else it asks
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
			case "can", "could", "do", "should", "would", "to":
				in |= wantsAdvice
			}
		case "who", "whom", "whose", "where", "which", "name", "names":
			in |= wantsName
		case "suggest", "recommend", "advise":
			in |= wantsAdvice
		case "suggestions", "recommendations", "advice", "tips", "ideas":
			if before == "any" || before == "some" || before == "your" {
				in |= wantsAdvice
			}
		case "help":
			if next, _ := cutWord(rest); next == "me" {
				in |= wantsAdvice
			}
		case "should":
			if next, _ := cutWord(rest); next == "i" || before == "what" {
				in |= wantsAdvice
			}
		case "did", "summary", "summarize", "summarise", "recap", "overview":
			back = true
		case "order":
			back = back || before == "the"
		case "throughout", "across":
			if next, _ := cutWord(rest); next == "our" || next == "my" {
				back = true
			}
		case "you", "your":
			if before == "can" || before == "could" || before == "would" || before == "will" {
				in |= wantsAdvice
			}
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
			back = true
			if strings.HasPrefix(rest, " me") {
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
