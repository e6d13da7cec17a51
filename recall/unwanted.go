package recall

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/remora-proxy/remora/recall/query"
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
	// wordDigits is the number of hex digits of a word's hash.
	wordDigits = 6
)

// UnwantedTag returns the tag of a memory that is not wanted for questions such
// as this one. It is not ok if the question has no word that others of its kind
// would share.
func (e *Engine) UnwantedTag(question string) (tag string, ok bool) {
	var content, all []string
	for _, stem := range e.searcher.stems(query.HumanWords(question)) {
		if all = append(all, stem); query.RoleOf(stem)&(query.OfRequest|query.IsLight) == 0 {
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

// stems returns the distinct terms of a message, in order.
func (e *searcher) stems(message string) (stems []string) {
	var a text.Analysis
	e.analyzer.Analyze(query.HeadAndTail(message), text.English, &a)
	seen := map[string]bool{text.EndOfStatement: true, text.EndOfQuestion: true}
	for _, stem := range a.Terms {
		if !seen[stem] {
			seen[stem] = true
			stems = append(stems, stem)
		}
	}
	return stems
}

func wordHash(stem string) uint32 { return uint32(xxh3.HashString(stem) >> 40) }

// askedWords returns the hashes of a message's terms, sorted.
func (e *searcher) askedWords(message string) (hashes []uint32) {
	for _, stem := range e.stems(message) {
		hashes = append(hashes, wordHash(stem))
	}
	slices.Sort(hashes)
	return hashes
}

// isExampleOf reports whether a question with these words is of the kind of a
// tag's example.
func isExampleOf(tag string, asked []uint32) bool {
	digits, ok := strings.CutPrefix(tag, storage.UnwantedTag)
	words, err := hex.DecodeString(digits)
	const size = wordDigits / 2
	if !ok || err != nil || len(words) < size || len(words)%size != 0 {
		return false
	}
	shared, all := 0, len(words)/size
	for w := range slices.Chunk(words, size) {
		if _, found := slices.BinarySearch(asked, uint32(w[0])<<16|uint32(w[1])<<8|uint32(w[2])); found {
			shared++
		}
	}
	return 3*shared >= 2*all
}

// isUnwanted reports whether a memory of the turn is not wanted for questions
// such as this one. What was said in one exchange is not torn apart.
func (f *filter) isUnwanted(t *turn) bool {
	if len(f.asked) == 0 || t.flags&turnUnwanted == 0 {
		return false
	}
	for i := t.mem; i < t.mem+int32(t.count); i++ {
		_, tags := f.ix.labels(i)
		if slices.ContainsFunc(tags, func(tag string) bool { return isExampleOf(tag, f.asked) }) {
			f.leftOut = true
			return true
		}
	}
	return false
}

func hasUnwantedTag(m *storage.Memory) bool {
	return slices.ContainsFunc(m.Tags, func(tag string) bool { return strings.HasPrefix(tag, storage.UnwantedTag) })
}
