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

// Related returns the terms that a memory may use instead of stem.
func Related(stem string) []RelatedTerm { return related()[stem] }

// related maps stems to their related terms. related.txt describes its format.
var related = sync.OnceValue(func() map[string][]RelatedTerm { return readRelated(relatedText) })

func readRelated(table string) map[string][]RelatedTerm {
	m := map[string][]RelatedTerm{}
	seen := map[[2]string]bool{}
	add := func(from, to string, how Relation) {
		pair := [2]string{text.Stem(text.English, from), text.Stem(text.English, to)}
		if pair[0] != pair[1] && !seen[pair] {
			seen[pair] = true
			m[pair[0]] = append(m[pair[0]], RelatedTerm{pair[1], how})
		}
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
	return m
}
