package query

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/text"
)

//go:embed concepts.txt
var conceptsText string

// concept is a thing with its words by language.
type concept struct {
	words map[string][]string // stems by the code of the language
	kinds []string            // names of other concepts
}

// conceptLanguages are the codes of concepts.txt. The script of a word tells the
// languages apart that are Unknown here.
var conceptLanguages = map[string]text.Language{
	"en": text.English, "de": text.German, "fr": text.French, "es": text.Spanish, "it": text.Italian, "pt": text.Portuguese, "nl": text.Dutch,
	"ru": text.Unknown, "ar": text.Unknown, "ja": text.Unknown, "zh": text.Unknown, "ko": text.Unknown, "hi": text.Unknown,
}

// conceptStem returns the term that stands for a word: its stem, or in a script
// without spaces its first pair of characters.
func conceptStem(l text.Language, word string) string {
	if chars := []rune(word); l == text.Unknown && text.Spaceless(chars[0]) {
		return string(chars[:min(len(chars), 2)])
	}
	return text.Stem(l, strings.ToLower(word))
}

func readConcepts(table string) (all map[string]*concept, names []string) {
	all = map[string]*concept{}
	var c *concept
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2 || f[0] == "#":
		case f[0] == "@":
			c = &concept{words: map[string][]string{}}
			if len(f) > 3 {
				c.kinds = f[3:]
			}
			all[f[1]] = c
			names = append(names, f[1])
		default:
			for _, w := range f[1:] {
				// A short text may be taken for English, so that its words are
				// stemmed as such.
				for _, l := range [...]text.Language{conceptLanguages[f[0]], text.English} {
					if s := conceptStem(l, w); !slices.Contains(c.words[f[0]], s) && (l != text.English || text.IsASCII(s)) {
						c.words[f[0]] = append(c.words[f[0]], s)
					}
				}
			}
		}
	}
	return all, names
}

// addConcepts calls add for each pair of words that concepts.txt relates.
func addConcepts(add func(l text.Language, from, to string, how Relation)) {
	all, names := readConcepts(conceptsText)
	for _, name := range names {
		c := all[name]
		for code, words := range c.words {
			l := conceptLanguages[code]
			for _, from := range words {
				for _, to := range words {
					add(l, from, to, Synonym)
				}
				for _, k := range c.kinds {
					for _, to := range all[k].words[code] {
						add(l, from, to, KindOf)
					}
				}
			}
		}
	}
}
