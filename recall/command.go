package recall

import (
	"bytes"

	"github.com/remora-proxy/remora/text"
)

// A command is a message of a few words: "run the tests", "commit this". What it is about stands in what is visible, so what the
// memory may add is how the user wants it done ("always run the linter before committing"), never that it was said before or what went on
// around it then.

const (
	// commandTerms is the most terms of a command of its own.
	commandTerms = 3
	// commandFloor is floorShare for commands.
	commandFloor = 0.5
)

// askingWords begin messages that ask without a question mark.
var askingWords = text.WordSet(`what whats what's which who whose whom where when why how is are was were am do does did can could would should has have had will any
wer wie wo was wann warum wieso welche welcher welches wen wem ist sind hat habe kann gibt qui que quoi où quand comment pourquoi combien quel quelle est
qué que quién quien dónde donde cuándo cuando cómo como cuál cual cuánto hay chi cosa dove quando come quale quem onde qual wat waar wanneer hoe`)

// isCommand reports whether a message with these terms of its own is a command of a few words.
func (q *query) isCommand(a *text.Analysis) bool {
	return !q.asks && a.Traits&(text.HasNumber|text.FirstPerson|text.HasName) == 0 && q.intent == 0 && len(q.dates) == 0 && len(q.terms) > 0 && len(q.terms) <= commandTerms
}

// opensAsking reports whether a text in lower case begins with one of askingWords.
func opensAsking(lower []byte) bool {
	first, _ := cutWord(lower)
	if i := bytes.IndexByte(first, '\''); i > 0 { // "what's"
		first = first[:i]
	}
	return askingWords[string(first)]
}

// echoes reports whether all that the user says in an answered turn are words of the query: the same was said before.
func (s *selection) echoes(n int32) bool {
	t := &s.ix.turns[n]
	if t.traits&text.HasQuestion != 0 || t.asstLen == 0 {
		return false
	}
	said := false
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		h := s.ix.head(i)
		if h.assistant {
			continue
		}
		if h.terms > commandTerms+2 { // with marks
			return false
		}
		for at := 0; at < len(h.packed); {
			var id uint32
			if id, at = nextTerm(h.packed, at); !text.IsMark(id) && s.q.termOf(id) < 0 {
				return false
			}
		}
		said = true
	}
	return said
}

// onlyFigures reports whether nothing is asked about but small numbers: "what's 2+2?"
func (q *query) onlyFigures() bool {
	for _, t := range q.terms {
		if len(t.stem) > 2 || !isDigit(t.stem[0]) || !isDigit(t.stem[len(t.stem)-1]) {
			return false
		}
	}
	return len(q.terms) > 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
