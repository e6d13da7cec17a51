// Package prose generates reproducible text for benchmarks: statements, and
// questions about them. The same seed gives the same text in every run.
package prose

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Words of the generated texts: a few hundred thousand memories of natural text
// share a small set of very frequent function words and a long tail of rare
// ones. Function words are English, so that stop lists and stemmers work as
// they do in life; the tail is made of syllables and follows Zipf's law with
// exponent 1.1.
const (
	textVocabulary = 8000
	textZipf       = 1.1
)

var textOpenings = []string{
	"I told my", "We moved the", "Yesterday I saw the", "Please remember that the", "My sister likes the",
	"I am working on the", "They promised us a", "Next month we visit the", "I prefer the", "Our team needs a",
}

var textJoints = []string{
	"and the", "with a", "for my", "because the", "near the", "after a", "but not the", "from our", "while the", "in a",
}

// Generator makes sentences. The same seed gives the same sentences in every
// run. It is not safe for concurrent use.
type Generator struct {
	rnd   *rand.Rand
	zipf  *rand.Zipf
	words []string
	rank  map[string]int // of a word in words: the higher, the rarer
}

func New(seed uint64) *Generator {
	rnd := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	t := &Generator{
		rnd:   rnd,
		zipf:  rand.NewZipf(rnd, textZipf, 4, textVocabulary-1),
		words: vocabulary(),
		rank:  make(map[string]int, textVocabulary),
	}
	for i, w := range t.words {
		t.rank[w] = i
	}
	return t
}

// vocabulary is the same for every seed: questions of one generator hit
// memories of another.
func vocabulary() []string {
	rnd := rand.New(rand.NewPCG(7, 11))
	onsets := strings.Fields("b br c ch d dr f fl g gr h j k l m n p pl qu r s sh st t tr v w z")
	vowels := strings.Fields("a e i o u ai ea ou oa")
	codas := strings.Fields("l m n r s t nd rk ll st x ck p")
	seen := make(map[string]bool, textVocabulary)
	words := make([]string, 0, textVocabulary)
	for len(words) < textVocabulary {
		var b strings.Builder
		for range 1 + rnd.IntN(3) {
			b.WriteString(onsets[rnd.IntN(len(onsets))])
			b.WriteString(vowels[rnd.IntN(len(vowels))])
		}
		b.WriteString(codas[rnd.IntN(len(codas))])
		if w := b.String(); len(w) >= 4 && !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return words
}

func (t *Generator) word() string { return t.words[t.zipf.Uint64()] }

// sentence has three to six words of the vocabulary.
func (t *Generator) Sentence() string {
	var b strings.Builder
	b.WriteString(textOpenings[t.rnd.IntN(len(textOpenings))])
	for i := range 3 + t.rnd.IntN(4) {
		if i > 0 && i%2 == 0 {
			b.WriteString(" ")
			b.WriteString(textJoints[t.rnd.IntN(len(textJoints))])
		}
		b.WriteString(" ")
		b.WriteString(t.word())
	}
	b.WriteString(".")
	return b.String()
}

// paragraph has at least size bytes, with line breaks and quotation marks as
// they occur in prose and code, and ends with a whole sentence.
func (t *Generator) Paragraph(size int) string {
	var b strings.Builder
	for i := 1; b.Len() < size; i++ {
		s := t.Sentence()
		if i%3 == 0 {
			s = `"` + s + `"`
		}
		b.WriteString(s)
		if i%4 == 0 {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
	}
	return strings.TrimRight(b.String(), " \n")
}

// statement is what a user tells in a turn of 100 to 250 bytes.
func (t *Generator) Statement() string { return t.Paragraph(100 + t.rnd.IntN(100)) }

// question asks for what statement says: its four rarest words in their order,
// at most size bytes.
func (t *Generator) Question(statement string, size int) string {
	var found []string
	for w := range strings.FieldsFuncSeq(statement, func(r rune) bool { return r < 'a' || r > 'z' }) {
		if t.rank[w] > 0 {
			found = append(found, w)
		}
	}
	rarest := slices.Clone(found)
	slices.SortStableFunc(rarest, func(a, b string) int { return t.rank[b] - t.rank[a] })
	rarest = rarest[:min(4, len(rarest))]
	q := "What did I say about"
	for _, w := range found {
		if slices.Contains(rarest, w) && len(q)+len(w)+2 <= size {
			q += " " + w
		}
	}
	return q + "?"
}
