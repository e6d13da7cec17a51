package recall

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// corpusEmbedder makes vectors from the co-occurrence of words in a corpus
// (random indexing: Kanerva, Kristoferson and Holst, 2000) and from the letters
// of words. It shares nothing with the analysis that recall searches by: no
// stems, stop words, related words or fields. Tests use it in place of a model,
// which is much better.
type corpusEmbedder struct {
	dim     int
	idf     map[string]float64
	context map[string][]float64
	offset  []float64 // what all vectors have in common, as those of real models do
	shared  float64

	mu         sync.Mutex // guards all below
	directions map[string]*[16]int32
	letters    map[string][]float64 // by word
	made       map[string][]float32 // by text
}

func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func seeded(s string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(s))
	return rand.New(rand.NewPCG(h.Sum64(), 7))
}

// direction returns the random direction of s: positions, of which the first
// half count negative.
func (e *corpusEmbedder) direction(s string) *[16]int32 {
	d, ok := e.directions[s]
	if !ok {
		r := seeded(s)
		d = new([16]int32)
		for i := range d {
			d[i] = r.Int32N(int32(e.dim))
		}
		e.directions[s] = d
	}
	return d
}

func (e *corpusEmbedder) add(to []float64, s string, weight float64) {
	for i, at := range e.direction(s) {
		if i < 8 {
			to[at] -= weight
		} else {
			to[at] += weight
		}
	}
}

func trainEmbedder(dim int, shared float64, texts []string) *corpusEmbedder {
	e := &corpusEmbedder{dim: dim, idf: map[string]float64{}, context: map[string][]float64{}, shared: shared, offset: make([]float64, dim),
		directions: map[string]*[16]int32{}, letters: map[string][]float64{}, made: map[string][]float32{}}
	df := map[string]float64{}
	for _, t := range texts {
		seen := map[string]bool{}
		for _, w := range plainWords(t) {
			if !seen[w] {
				seen[w] = true
				df[w]++
			}
		}
	}
	for w, n := range df {
		e.idf[w] = math.Log(1 + float64(len(texts))/n)
	}
	const window = 6
	for _, t := range texts {
		words := plainWords(t)
		for i, w := range words {
			c := e.context[w]
			if c == nil {
				c = make([]float64, dim)
				e.context[w] = c
			}
			for j := max(i-window, 0); j < min(i+window+1, len(words)); j++ {
				if j != i && e.idf[words[j]] > 2.5 {
					e.add(c, words[j], e.idf[words[j]]/math.Sqrt(df[words[j]]))
				}
			}
		}
	}
	for _, c := range e.context {
		unit(c, 1)
	}
	r := seeded("offset")
	for i := range e.offset {
		e.offset[i] = r.NormFloat64()
	}
	unit(e.offset, 1)
	return e
}

func unit(v []float64, length float64) {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	if sum > 0 {
		f := length / math.Sqrt(sum)
		for i := range v {
			v[i] *= f
		}
	}
}

func (e *corpusEmbedder) vector(text string) []float32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v, ok := e.made[text]; ok {
		return slices.Clone(v)
	}
	sum := make([]float64, e.dim)
	for _, w := range plainWords(text) {
		idf, ok := e.idf[w]
		if !ok {
			idf = 6
		}
		idf = max(idf-2, 0)
		for i, x := range e.context[w] {
			sum[i] += 0.5 * idf * x
		}
		letters := e.letters[w]
		if letters == nil {
			letters = make([]float64, e.dim)
			padded := "<" + w + ">"
			for n := 3; n <= 5; n++ {
				for i := 0; i+n <= len(padded); i++ {
					e.add(letters, padded[i:i+n], 1)
				}
			}
			unit(letters, 1)
			e.letters[w] = letters
		}
		for i, x := range letters {
			sum[i] += idf * x
		}
	}
	unit(sum, 1)
	out := make([]float32, e.dim)
	for i := range out {
		out[i] = float32(sum[i] + e.shared*e.offset[i])
	}
	e.made[text] = unit32(out)
	return slices.Clone(out)
}

func unit32(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func (e *corpusEmbedder) Model() string { return "corpus" }

func (e *corpusEmbedder) Query(_ context.Context, text string) ([]float32, error) {
	return e.vector(text), nil
}

func (e *corpusEmbedder) Documents(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		out = append(out, e.vector(t))
	}
	return out, nil
}
