package persist

import "unicode/utf8"

// wordFilter finds whether a text may hold one of a few words: most text does not, and is spared a reader of words.
type wordFilter struct {
	words   map[string]bool
	lengths [27 * 27]uint64 // of the words that begin with two letters, as a set of bits; where the second is none, 0
}

// newWordFilter takes words of the letters a to z, of maxWord bytes at most. What is none it leaves out.
func newWordFilter(sets ...map[string]bool) *wordFilter {
	f := &wordFilter{words: map[string]bool{}}
	for _, set := range sets {
		for w := range set {
			plain := w != "" && len(w) <= maxWord
			for i := range len(w) {
				plain = plain && w[i] >= 'a' && w[i] <= 'z'
			}
			if plain {
				f.words[w] = true
				f.lengths[startOf(w)] |= 1 << len(w)
			}
		}
	}
	return f
}

// startOf numbers the first two letters.
func startOf[T string | []byte](w T) int {
	n := int(w[0]-'a'+1) * 27
	if len(w) > 1 {
		n += int(w[1] - 'a' + 1)
	}
	return n
}

// may is a cheap necessary condition of has: w are letters of ASCII, at most maxWord.
func (f *wordFilter) may(w string) bool {
	n := int(w[0]|0x20-'a'+1) * 27
	if len(w) > 1 {
		n += int(w[1] | 0x20 - 'a' + 1)
	}
	return f.lengths[n]&(1<<len(w)) != 0
}

func (f *wordFilter) has(w []byte) bool {
	return f.lengths[startOf(w)]&(1<<len(w)) != 0 && f.words[string(w)]
}

// in is a cheap necessary condition of one of the words being among those that eachWord finds in text: it looks at rows of
// letters, whatever stands between them, and folds those that are not ASCII.
func (f *wordFilter) in(text string) bool {
	var lower [maxWord]byte
	n := 0
	for i := 0; i <= len(text); i++ {
		c := byte(' ')
		if i < len(text) {
			c = text[i]
		}
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			if n < maxWord {
				lower[n] = c | 0x20
			}
			n++
			continue
		}
		if c < utf8.RuneSelf {
			if n > 0 && n <= maxWord && f.has(lower[:n]) {
				return true
			}
			n = 0
			continue
		}
		from, to := i-n, i
		for to < len(text) && (text[to] >= utf8.RuneSelf || text[to]|0x20 >= 'a' && text[to]|0x20 <= 'z') {
			to++
		}
		if f.inFolded(text[from:to]) {
			return true
		}
		i, n = to-1, 0
	}
	return false
}

// inFolded is in for a row of letters and whatever is not ASCII.
func (f *wordFilter) inFolded(row string) bool {
	var space [4 * maxWord]byte
	folded := append(appendFolded(space[:0], row), ' ')
	from := 0
	for i, c := range folded {
		if c >= 'a' && c <= 'z' {
			continue
		}
		if n := i - from; n > 0 && n <= maxWord && f.has(folded[from:i]) {
			return true
		}
		from = i + 1
	}
	return false
}
