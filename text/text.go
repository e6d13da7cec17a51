// Package text reads natural language: words, stems, languages, dates, and
// which part of a message a person typed.
//
// An [Analyzer] turns a text into the terms that an index stores and a query
// looks up, so that both agree. It splits words by UAX #29 after NFKC, detects
// the language by function words, leaves stop words out and stems the rest by
// Snowball. Scripts without spaces become characters and pairs of them.
//
// Every function is pure; the only state is the analyzer's cache. Input is
// untrusted: functions take any bytes and linear time, and Analyze and
// HumanWords read at most [MaxText] of a text. What an analyzer finds is part
// of the format of stored indexes, so a change of it needs a new blob version
// in recall.
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
