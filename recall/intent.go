package recall

import (
	"regexp"
	"strings"
)

// intent is what kind of answer a query asks for.
type intent uint8

const (
	wantsTime intent = 1 << iota
	wantsNumber
	wantsName
	wantsAssistant // what the assistant said
	fromSpeaker    // the query speaks in the first person
)

// aboutAssistant finds queries about what the assistant said before.
var aboutAssistant = regexp.MustCompile(`\b(?:you|your)\b.{0,30}\b(?:recommend|suggest|said|say|told|tell|mention|provide|gave|give|list|explain|advi[sc]e|propose|describe)|remind me|(?:our|last|previous|earlier) (?:conversation|chat|discussion)|\bwe (?:discuss|talk)`)

// readIntent reads a query in lower case.
func readIntent(text string) intent {
	var in intent
	candidate := false
	words := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,?!:;"()`, r) })
	for i, w := range words {
		next, before := "", ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		if i > 0 {
			before = words[i-1]
		}
		switch w {
		case "when", "date":
			in |= wantsTime
		case "day", "month", "year", "time":
			if before == "what" || before == "which" {
				in |= wantsTime
			}
		case "how":
			switch next {
			case "long":
				in |= wantsTime | wantsNumber
			case "recently":
				in |= wantsTime
			case "many", "much", "old", "often":
				in |= wantsNumber
			}
		case "you", "your", "remind", "our", "we", "last", "previous", "earlier":
			candidate = true
		case "who", "whom", "whose", "where", "which", "name", "names":
			in |= wantsName
		}
	}
	if candidate && aboutAssistant.MatchString(text) {
		in |= wantsAssistant
	}
	return in
}
