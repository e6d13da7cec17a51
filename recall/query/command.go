package query

import (
	"bytes"

	"github.com/remora-proxy/remora/text"
)

// A command is a message of a few words: "run the tests", "commit this". What
// it is about is visible in the conversation, so memory can only add how the
// user wants it done ("always run the linter before committing").

// commandTerms is the maximum number of terms of a command.
const commandTerms = 3

// questionWords begin messages that ask without a question mark.
var questionWords = text.WordSet(`what whats what's which who whose whom where when why how is are was were am do does did can could would should has have had will any
wer wie wo was wann warum wieso welche welcher welches wen wem ist sind hat habe kann gibt qui que quoi où quand comment pourquoi combien quel quelle est
qué que quién quien dónde donde cuándo cuando cómo como cuál cual cuánto hay chi cosa dove quando come quale quem onde qual wat waar wanneer hoe`)

// isCommand reports whether a message with these terms is a command.
func (q *Query) isCommand(a *text.Analysis) bool {
	return !q.Asks && a.Traits&(text.HasNumber|text.FirstPerson|text.HasName) == 0 && q.Intent == 0 && len(q.Dates) == 0 && len(q.Terms) > 0 && len(q.Terms) <= commandTerms
}

// startsQuestion reports whether a text in lower case begins with one of
// questionWords.
func startsQuestion(lower []byte) bool {
	first, _ := cutWord(lower)
	if i := bytes.IndexByte(first, '\''); i > 0 { // "what's"
		first = first[:i]
	}
	return questionWords[string(first)]
}

// maxRemark is the maximum length of a remark, in bytes.
const maxRemark = 80

// isRemark reports whether a message with these terms is a remark: it begins
// with small talk or a function word, and asks, orders and tells nothing in
// particular.
func (q *Query) isRemark(a *text.Analysis) bool {
	if q.Asks || len(q.Text) > maxRemark || a.Traits&(text.HasNumber|text.HasQuestion) != 0 || q.Intent&WantsAdvice != 0 || len(q.Dates) > 0 || q.isUnspaced() {
		return false
	}
	q.Courteous = q.isCourteous(a)
	first, rest := cutWord(q.Lower)
	second, _ := cutWord(rest)
	if i := bytes.IndexByte(first, '\''); i > 0 { // "that's"
		first = first[:i]
	}
	return q.Courteous && RoleOf(text.Stem(a.Language, string(first)))&IsSocial != 0 || remarkStarts[string(first)] && !requestVerbs[string(second)]
}

// remarkStarts begin statements: "they were humbled".
var remarkStarts = text.WordSet("i you he she it we they that this there those these and so but still your my our his her their")

// isCourteous reports whether a message has a word of courtesy.
func (q *Query) isCourteous(a *text.Analysis) bool {
	for rest := q.Lower; len(rest) > 0; {
		var w []byte
		if w, rest = cutWord(rest); len(w) == 0 {
			continue
		}
		stem := text.Stem(a.Language, string(w))
		if courtesyWords[stem] || a.Language > text.English && RoleOf(stem)&IsSocial != 0 {
			return true
		}
	}
	return false
}
