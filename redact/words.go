package redact

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed words.tsv
var wordData string

// role is what a word does in a sentence that tells a secret; see words.tsv. A
// word may have several.
type role uint16

const (
	roleCopula role = 1 << iota
	roleAfter
	roleAs
	roleFiller
	roleInto
	roleAnd
	roleOpen
	roleBlock
	roleOther
)

// kind is what a keyword announces.
type kind uint8

const (
	kindPassword kind = iota
	kindPIN
	kindCode
	kindKey
)

// secretWord is a keyword that announces a secret in a sentence.
type secretWord struct {
	text string
	kind kind
	// compound words become another noun by a noun after them.
	compound bool
	// zero words are of a language without a copula: the value may follow.
	zero      bool
	languages []string
	own       []map[string]role // roles that words have only in these languages
}

// role returns the roles of another word of the sentence, in any case.
func (w secretWord) role(word string) role {
	v, word := lexicon(), strings.ToLower(word)
	r := v.roles[word]
	for _, own := range w.own {
		r |= own[word]
	}
	return r
}

// vocabulary is the data of words.tsv.
type vocabulary struct {
	keywords []secretWord
	roles    map[string]role
	// particles are the copulas of languages without blanks, postposed those
	// after a value.
	particles, postposed []string
	objects, changes     beginnings
}

// beginnings are those of words, by their first byte.
type beginnings map[byte][]string

// of reports whether word, in lower case, begins with one of b.
func (b beginnings) of(word string) bool { return word != "" && hasAnyPrefix(word, b[word[0]]) }

// lexicon reads the embedded data, whose syntax a test checks.
var lexicon = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{roles: map[string]role{}, objects: beginnings{}, changes: beginnings{}}
	byLanguage := map[string]map[string]role{}
	kinds := map[string]kind{"password": kindPassword, "pin": kindPIN, "code": kindCode, "key": kindKey}
	roles := map[string]role{
		"copula": roleCopula, "after": roleAfter, "as": roleAs, "filler": roleFiller, "into": roleInto, "and": roleAnd,
		"open": roleOpen, "block": roleBlock, "other": roleOther,
	}
	for column := range rows(wordData) {
		k, isKeyword := kinds[column[0]]
		languages := strings.Fields(column[2])
		for word := range strings.SplitSeq(column[3], ",") {
			switch {
			case isKeyword:
				v.keywords = append(v.keywords, secretWord{text: word, kind: k, compound: column[1] == "compound", zero: column[1] == "zero", languages: languages})
			case column[0] == "object":
				v.objects[word[0]] = append(v.objects[word[0]], word)
			case column[0] == "change":
				v.changes[word[0]] = append(v.changes[word[0]], word)
			case column[1] == "own":
				for _, l := range languages {
					if byLanguage[l] == nil {
						byLanguage[l] = map[string]role{}
					}
					byLanguage[l][word] |= roles[column[0]]
				}
			default:
				v.roles[word] |= roles[column[0]]
			}
			if r, _ := utf8.DecodeRuneInString(word); isUnspaced(r) {
				switch column[0] {
				case "copula":
					v.particles = append(v.particles, word)
				case "after":
					v.postposed = append(v.postposed, word)
				}
			}
		}
	}
	for i := range v.keywords {
		k := &v.keywords[i]
		for _, l := range k.languages {
			if own := byLanguage[l]; own != nil {
				k.own = append(k.own, own)
			}
		}
	}
	return v
})

// isUnspaced reports whether a letter is of a script in which particles follow
// a word without a blank: Chinese, Japanese, Korean, Thai.
func isUnspaced(r rune) bool {
	return r >= 0x0e00 && r <= 0x0e7f || r >= 0x1100 && r <= 0x11ff || r >= 0x3040 && r <= 0x30ff ||
		r >= 0x3400 && r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3
}

// isSemitic reports whether a letter is of a script in which articles and
// prepositions are written with their word: Hebrew, Arabic.
func isSemitic(r rune) bool { return r >= 0x0590 && r <= 0x06ff }

// spellings returns a keyword as it is written within a sentence and at its
// start. The automaton ignores the case of ASCII letters only.
func spellings(word string) []string {
	first, n := utf8.DecodeRuneInString(word)
	if first < utf8.RuneSelf {
		return []string{word}
	}
	all := []string{word}
	for _, other := range []string{strings.ToUpper(word[:n]) + word[n:], strings.ToUpper(word)} {
		if other != word && other != all[len(all)-1] {
			all = append(all, other)
		}
	}
	return all
}
