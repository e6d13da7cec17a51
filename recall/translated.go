package recall

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

//go:embed translated.txt
var translatedText string

// translatedShare is what a word of another language counts for the query's.
const translatedShare = 0.9

// translation is a word's stem in another language.
type translation struct {
	stem string
	of   text.Language
}

// translated maps the stems of each language to those of the same in others. New has it read.
var translated = sync.OnceValue(func() map[translation][]translation {
	m := map[translation][]translation{}
	columns := [...]text.Language{text.English, text.German, text.French, text.Spanish, text.Italian, text.Portuguese, text.Dutch}
	for line := range strings.Lines(translatedText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var all []translation
		for i, column := range strings.Split(line, "|") {
			for w := range strings.FieldsSeq(strings.ToLower(column)) {
				if t := (translation{text.Stem(columns[i], w), columns[i]}); !slices.Contains(all, t) {
					all = append(all, t)
				}
			}
		}
		for _, from := range all {
			for _, to := range all {
				if to.of != from.of && !slices.Contains(m[from], to) {
					m[from] = append(m[from], to)
				}
			}
		}
	}
	return m
})

// leastSpoken is the least share of a user's passages, one in so many, that makes a language one of theirs: a word or two may be taken for any.
const leastSpoken = 64

// tongues are the languages of an index beside the query's, a bit for each.
func (ix *index) tongues(q *query) (others uint32) {
	all := 0
	for l := text.English; l <= text.Dutch; l++ {
		all += ix.spoken[l]
	}
	for l := text.English; l <= text.Dutch; l++ {
		if l != q.language && ix.spoken[l] > 0 && ix.spoken[l] >= all/leastSpoken {
			others |= 1 << l
		}
	}
	return others
}

// translate appends the words of other languages that mean a term, of those that the index knows.
func (ix *index) translate(words []queryWord, t *queryTerm, q *query, tongues uint32) []queryWord {
	for _, to := range translated()[translation{t.stem, q.language}] {
		if tongues>>to.of&1 == 0 || q.has(to.stem) {
			continue
		}
		if id, ok := ix.terms.find(to.stem); ok && ix.posts[id].df > 0 {
			words = append(words, queryWord{id: id, share: translatedShare, how: "translation"})
		}
	}
	return words
}
