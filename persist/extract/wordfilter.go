package extract

// wordFilter is a set of words for looking up runs of letters of which few are
// in it.
type wordFilter struct {
	words   map[string]bool
	lengths [27 * 27]uint64 // of the words by their first two letters, as bits
}

// newWordFilter takes words of the letters a to z, of at most maxWord bytes,
// and leaves out others.
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

// may is a cheap necessary condition of has, in either case. w has 1 to maxWord
// ASCII letters.
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
