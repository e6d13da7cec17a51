// Package text reads natural language: words, stems, languages, dates, and
// which part of a message a person typed.
//
// An [Analyzer] turns a text into the terms that an index stores and a query
// looks up, so that both agree. It splits words by UAX #29 after NFKC, detects
// the language by function words, leaves stop words out and stems the rest:
// English by hand-written code that a fuzz test compares to Snowball, the other
// languages by Snowball. Scripts without spaces become characters and pairs of
// them.
//
// Everything here is a pure function of its arguments; the only state is the
// analyzer's cache. Input is untrusted: every function takes any bytes, reads
// at most MaxText of a text where its cost isn't linear, and allocates no more
// than a small multiple of what it reads. What is made of a text is part of the
// format of stored indexes, so whoever changes that changes recall's blob
// version.
package text

import "strings"

// WordSet returns the set of words that blanks separate.
func WordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
