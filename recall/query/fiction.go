package query

import (
	"bytes"
	"unicode/utf8"

	"github.com/remora-proxy/remora/text"
)

// fictionWords begin texts in which "I" is not the user: a text to be
// translated, a play, a fantasy.
var fictionWords = text.WordSet(`translate imagine pretend suppose hypothetically roleplay role-play übersetze übersetz übersetzen angenommen rollenspiel
traduis traduire traduisez imagine imaginons imagina traduce traducir traduzca supongamos traduci traduza`)

// beforeFiction may precede them.
var beforeFiction = text.WordSet("lol haha ok okay hey hi so please can could you let's lets just now bitte kannst du peux tu puedes stell dir vor")

// maxFictionOpening is how much of a text is read for how it begins, in bytes.
const maxFictionOpening = 60

// IsFiction reports whether what "I" says in a text may be anybody's, while the
// query asks for something else.
func (q *Query) IsFiction(said []byte) bool {
	if len(said) > 0 && said[0] >= utf8.RuneSelf {
		head := said[:min(len(said), 3*maxFictionOpening)]
		if quotes := bytes.IndexAny(head, "「“『"); quotes > 0 && (bytes.Contains(head[:quotes], []byte("翻译")) || bytes.Contains(head[:quotes], []byte("翻譯")) || bytes.Contains(head[:quotes], []byte("訳して"))) {
			return true
		}
	}
	var space [maxFictionOpening]byte
	lower := space[:copy(space[:], said)]
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' || i > 0 && lower[i-1] == 0xc3 && c >= 0x80 && c < 0x9f { // À to Þ
			lower[i] = c | 0x20
		}
	}
	for range 6 {
		var w []byte
		if w, lower = cutWord(lower); len(w) == 0 {
			return false
		}
		if word := string(w); fictionWords[word] {
			return !q.Has(text.Stem(text.English, word))
		} else if !beforeFiction[word] {
			return false
		}
	}
	return false
}

// maxHandOver is how far into a text a quotation may begin that the user hands
// over to be worked on, in bytes.
const maxHandOver = 200

// openingQuotes begin quotations.
var openingQuotes = [...]string{`"`, "“", "„", "«", "「", "『", "‘"}

// QuotesAnother reports whether what a text says in answer to the query stands
// in a quotation that it hands over: `what should I reply to "I'm moving to
// Oslo"?` Words of the query before the quotation make it the user's.
func (q *Query) QuotesAnother(said []byte) bool {
	head := said[:min(len(said), maxHandOver)]
	at := -1
	for i, c := range head {
		if c != ':' && !bytes.HasPrefix(head[i:], []byte("：")) {
			continue
		}
		rest := bytes.TrimLeft(bytes.TrimPrefix(head[i:], []byte("：")), ": \n")
		for _, quote := range openingQuotes {
			if bytes.HasPrefix(rest, []byte(quote)) {
				at = i
			}
		}
		if at >= 0 {
			break
		}
	}
	if at < 0 {
		return false
	}
	before := bytes.ToLower(head[:at])
	for _, t := range q.Terms {
		if t.Role&(IsLight|OfRequest) == 0 && !t.Borrowed && bytes.Contains(before, []byte(t.Stem[:max(len(t.Stem)-1, min(len(t.Stem), 3))])) {
			return false
		}
	}
	return true
}
