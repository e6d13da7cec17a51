package query

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/remora-proxy/remora/storage"
	"github.com/remora-proxy/remora/text"
)

// A person can say that a memory is not wanted for a kind of question, by an
// example of one. The memory then has a tag with short hashes of the example's
// content words, and is left out for questions that have at least two thirds of
// them, whatever else they say. With one or two words that is all of them.
//
// Examples and questions are read in the same way, without regard to the
// language that the user mostly writes, because that may change. The hashes keep
// the words out of sight. They don't keep them secret from somebody who has the
// tag and a dictionary, which is why tags are sealed and callers don't see them.

const (
	// maxExampleWords limits the words of an example. The first count. A tag
	// with them has 123 bytes.
	maxExampleWords = 19
	// wordBytes is the size of a word's hash, which has two hex digits for each
	// byte.
	wordBytes = 3
)

// UnwantedTag returns the tag of a memory that is not wanted for questions such
// as this one. It is not ok if the question has no word that others of its kind
// would share.
func UnwantedTag(analyzer *text.Analyzer, question string) (tag string, ok bool) {
	var content, all []string
	for _, stem := range stemsOf(analyzer, HumanWords(question)) {
		if all = append(all, stem); RoleOf(stem)&(OfRequest|IsLight) == 0 {
			content = append(content, stem)
		}
	}
	if len(content) == 0 {
		content = all
	}
	b := []byte(storage.UnwantedTag)
	for _, stem := range content[:min(len(content), maxExampleWords)] {
		h := wordHash(stem)
		b = hex.AppendEncode(b, []byte{byte(h >> 16), byte(h >> 8), byte(h)})
	}
	return string(b), len(content) > 0
}

// AskedWords returns what IsExampleOf needs of a message, the human's words of
// it.
func AskedWords(analyzer *text.Analyzer, message string) (asked []uint32) {
	for _, stem := range stemsOf(analyzer, message) {
		asked = append(asked, wordHash(stem))
	}
	slices.Sort(asked)
	return asked
}

// IsExampleOf reports whether a tag is one of UnwantedTag, and a question with
// these words is of the kind of its example.
func IsExampleOf(tag string, asked []uint32) bool {
	digits, ok := strings.CutPrefix(tag, storage.UnwantedTag)
	if !ok {
		return false
	}
	words, err := hex.DecodeString(digits)
	if err != nil || len(words) == 0 || len(words)%wordBytes != 0 {
		return false
	}
	shared, all := 0, len(words)/wordBytes
	for w := range slices.Chunk(words, wordBytes) {
		if _, found := slices.BinarySearch(asked, uint32(w[0])<<16|uint32(w[1])<<8|uint32(w[2])); found {
			shared++
		}
	}
	return 3*shared >= 2*all
}

// stemsOf returns the distinct terms of a message, in order.
func stemsOf(analyzer *text.Analyzer, message string) (stems []string) {
	var a text.Analysis
	analyzer.Analyze(HeadAndTail(message), text.English, &a)
	seen := map[string]bool{text.EndOfStatement: true, text.EndOfQuestion: true}
	for _, stem := range a.Terms {
		if !seen[stem] {
			seen[stem] = true
			stems = append(stems, stem)
		}
	}
	return stems
}

func wordHash(stem string) uint32 {
	sum := sha256.Sum256([]byte(stem))
	return uint32(sum[0])<<16 | uint32(sum[1])<<8 | uint32(sum[2])
}
