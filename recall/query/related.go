package query

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

//go:embed related.txt
var relatedText string

// Relation is how a related term relates to the one in the query.
type Relation uint8

const (
	Synonym Relation = iota // people use either word
	KindOf                  // a thing of the kind that the query names
)

// RelatedTerm is a term that a memory may use instead of one in the query.
type RelatedTerm struct {
	Stem string
	How  Relation
}

// wordOf is a stem of a language. In scripts that reveal theirs it is Unknown.
type wordOf struct {
	stem     string
	language text.Language
}

// Related returns the terms that a memory in the same language may use instead
// of stem.
func Related(stem string, in text.Language) []RelatedTerm {
	if related, ok := related()[wordOf{stem, in}]; ok || in == text.Unknown {
		return related
	}
	return related()[wordOf{stem, text.Unknown}]
}

// related maps stems to their related terms. related.txt, which is English, and
// concepts.txt describe their formats.
var related = sync.OnceValue(func() map[wordOf][]RelatedTerm { return readRelated(relatedText) })

func readRelated(table string) map[wordOf][]RelatedTerm {
	m := map[wordOf][]RelatedTerm{}
	seen := map[[2]wordOf]bool{}
	addStem := func(l text.Language, from, to string, how Relation) {
		pair := [2]wordOf{{from, l}, {to, l}}
		if from != to && !seen[pair] {
			seen[pair] = true
			m[pair[0]] = append(m[pair[0]], RelatedTerm{to, how})
		}
	}
	add := func(from, to string, how Relation) {
		addStem(text.English, text.Stem(text.English, from), text.Stem(text.English, to), how)
	}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		switch {
		case len(f) < 3 || f[0] == "#":
		case f[0] == "=":
			for _, a := range f[1:] {
				for _, b := range f[1:] {
					add(a, b, Synonym)
				}
			}
		case f[0] == ">":
			for _, b := range f[2:] {
				add(f[1], b, KindOf)
			}
		}
	}
	addConcepts(addStem)
	return m
}
