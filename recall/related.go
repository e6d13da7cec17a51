package recall

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/remora-proxy/remora/text"
)

//go:embed related.txt
var relatedText string

// relation says how a related term stands to the one of the query.
type relation uint8

const (
	synonym relation = iota // people use either word
	kindOf                  // a thing of the kind that the query names
)

type relatedTerm struct {
	stem string
	how  relation
}

// related maps a stem to the stems that a memory may use in its place. See related.txt for the form of the table.
// New has it read: the process of the store and the commands need none.
var related = sync.OnceValue(func() map[string][]relatedTerm { return readRelated(relatedText) })

func readRelated(table string) map[string][]relatedTerm {
	m := map[string][]relatedTerm{}
	seen := map[[2]string]bool{}
	add := func(from, to string, how relation) {
		pair := [2]string{text.Stem(text.English, from), text.Stem(text.English, to)}
		if pair[0] != pair[1] && !seen[pair] {
			seen[pair] = true
			m[pair[0]] = append(m[pair[0]], relatedTerm{pair[1], how})
		}
	}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		switch {
		case len(f) < 3 || f[0] == "#":
		case f[0] == "=":
			for _, a := range f[1:] {
				for _, b := range f[1:] {
					add(a, b, synonym)
				}
			}
		case f[0] == ">":
			for _, b := range f[2:] {
				add(f[1], b, kindOf)
			}
		}
	}
	return m
}
