package text

// stemEnglish is Snowball's English stemmer (Porter's second,
// snowballstem.org/algorithms/english/stemmer.html) for a word of at most
// maxWord lower-case ASCII letters, at a tenth of the cost. A fuzz test holds
// the two together.
func stemEnglish(w string) string {
	switch w {
	case "skis":
		return "ski"
	case "skies":
		return "sky"
	case "dying":
		return "die"
	case "lying":
		return "lie"
	case "tying":
		return "tie"
	case "idly", "gently", "singly":
		return w[:len(w)-1]
	case "ugly":
		return "ugli"
	case "early":
		return "earli"
	case "only":
		return "onli"
	case "sky", "news", "howe", "atlas", "cosmos", "bias", "andes":
		return w
	}
	if len(w) < 3 {
		return w
	}
	s := stemming{n: len(w)}
	copy(s.b[:], w)
	s.mark()
	s.plural()
	switch string(s.b[:s.n]) {
	case "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed":
	default:
		s.past()
		s.lastY()
		s.long()
		s.longer()
		s.rest()
		s.last()
	}
	for i, c := range s.b[:s.n] {
		if c == 'Y' {
			s.b[i] = 'y'
		}
	}
	if stem := s.b[:s.n]; s.n > len(w) || string(stem) != w[:s.n] {
		return string(stem)
	}
	return w[:s.n]
}

// stemming is a word on its way to its stem.
type stemming struct {
	b      [MaxWord + 1]byte // a y that is a consonant is a Y
	n      int               // letters left
	r1, r2 int               // where the regions begin that are called so
}

func isVowel(c byte) bool {
	const vowels = 1 | 1<<('e'-'a') | 1<<('i'-'a') | 1<<('o'-'a') | 1<<('u'-'a') | 1<<('y'-'a')
	return c >= 'a' && vowels>>(c-'a')&1 != 0
}

// mark finds the y that are consonants, and the regions: each begins behind the
// first consonant behind a vowel.
func (s *stemming) mark() {
	w := s.b[:s.n]
	for i, c := range w {
		if c == 'y' && (i == 0 || isVowel(w[i-1])) {
			w[i] = 'Y'
		}
	}
	behind := func(i int) int {
		for i < len(w) && !isVowel(w[i]) {
			i++
		}
		for i < len(w) && isVowel(w[i]) {
			i++
		}
		return min(i+1, len(w))
	}
	switch {
	case len(w) >= 5 && (string(w[:5]) == "gener" || string(w[:5]) == "arsen"):
		s.r1 = 5
	case len(w) >= 6 && string(w[:6]) == "commun":
		s.r1 = 6
	default:
		s.r1 = behind(0)
	}
	s.r2 = behind(s.r1)
}

func (s *stemming) ends(suffix string) bool {
	return s.n >= len(suffix) && string(s.b[s.n-len(suffix):s.n]) == suffix
}

// swap puts something else, which is no longer, in the place of the suffix, if
// that stands in the region.
func (s *stemming) swap(suffix, with string, region int) {
	if at := s.n - len(suffix); at >= region {
		s.n = at + copy(s.b[at:], with)
	}
}

// vowelBefore reports whether a vowel stands before i.
func (s *stemming) vowelBefore(i int) bool {
	for i--; i >= 0; i-- {
		if isVowel(s.b[i]) {
			return true
		}
	}
	return false
}

// short reports whether a short syllable ends before i.
func (s *stemming) short(i int) bool {
	if i < 2 || isVowel(s.b[i-1]) || !isVowel(s.b[i-2]) {
		return false
	}
	if i == 2 {
		return true
	}
	c := s.b[i-1]
	return c != 'w' && c != 'x' && c != 'Y' && !isVowel(s.b[i-3])
}

// swaps is swap for the first of these suffixes that the word has; what each
// becomes follows it.
func (s *stemming) swaps(region int, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if s.ends(pairs[i]) {
			s.swap(pairs[i], pairs[i+1], region)
			return
		}
	}
}

// plural is step 1a.
func (s *stemming) plural() {
	switch {
	case s.ends("sses"):
		s.n -= 2
	case s.ends("ied"), s.ends("ies"):
		if s.n -= 2; s.n <= 2 { // as of dies
			s.n++
		}
	case s.b[s.n-1] == 's' && s.b[s.n-2] != 's' && s.b[s.n-2] != 'u' && s.vowelBefore(s.n-2):
		s.n--
	}
}

// past is step 1b.
func (s *stemming) past() {
	cut := 0
	switch s.b[s.n-1] {
	case 'd':
		if s.ends("eed") {
			s.swap("eed", "ee", s.r1)
		} else if s.ends("ed") {
			cut = 2
		}
	case 'g':
		if s.ends("ing") {
			cut = 3
		}
	case 'y':
		if s.ends("eedly") {
			s.swap("eedly", "ee", s.r1)
		} else if s.ends("edly") {
			cut = 4
		} else if s.ends("ingly") {
			cut = 5
		}
	}
	if cut == 0 {
		return
	}
	if !s.vowelBefore(s.n - cut) {
		return
	}
	s.n -= cut
	switch {
	case s.ends("at"), s.ends("bl"), s.ends("iz"):
	case s.ends("bb"), s.ends("dd"), s.ends("ff"), s.ends("gg"), s.ends("mm"), s.ends("nn"), s.ends("pp"), s.ends("rr"), s.ends("tt"):
		s.n--
		return
	case s.n != s.r1 || !s.short(s.n):
		return
	}
	s.b[s.n] = 'e'
	s.n++
}

// lastY is step 1c.
func (s *stemming) lastY() {
	if s.n > 2 && s.b[s.n-1]|0x20 == 'y' && !isVowel(s.b[s.n-2]) {
		s.b[s.n-1] = 'i'
	}
}

// long is step 2.
func (s *stemming) long() {
	if s.n < 3 {
		return
	}
	switch s.b[s.n-2] {
	case 'a':
		s.swaps(s.r1, "ational", "ate", "tional", "tion")
	case 'c':
		s.swaps(s.r1, "enci", "ence", "anci", "ance")
	case 'e':
		s.swaps(s.r1, "izer", "ize")
	case 'g':
		if s.ends("logi") {
			s.swap("ogi", "og", s.r1)
		}
	case 'l':
		switch s.b[s.n-3] {
		case 'b', 'l', 's':
			s.swaps(s.r1, "abli", "able", "bli", "ble", "alli", "al", "fulli", "ful", "lessli", "less", "ousli", "ous")
		case 'c', 'd', 'e', 'g', 'h', 'k', 'm', 'n', 'r', 't':
			s.swaps(s.r1, "entli", "ent", "li", "")
		}
	case 'o':
		s.swaps(s.r1, "ization", "ize", "ation", "ate", "ator", "ate")
	case 's':
		s.swaps(s.r1, "alism", "al", "iveness", "ive", "fulness", "ful", "ousness", "ous")
	case 't':
		s.swaps(s.r1, "aliti", "al", "iviti", "ive", "biliti", "ble")
	}
}

// longer is step 3.
func (s *stemming) longer() {
	switch s.b[s.n-1] {
	case 'e':
		if s.ends("ative") {
			s.swap("ative", "", s.r2)
		} else {
			s.swaps(s.r1, "alize", "al", "icate", "ic")
		}
	case 'i':
		s.swaps(s.r1, "iciti", "ic")
	case 'l':
		s.swaps(s.r1, "ational", "ate", "tional", "tion", "ical", "ic", "ful", "")
	case 's':
		s.swaps(s.r1, "ness", "")
	}
}

// rest is step 4.
func (s *stemming) rest() {
	switch s.b[s.n-1] {
	case 'c':
		s.swaps(s.r2, "ic", "")
	case 'e':
		s.swaps(s.r2, "ance", "", "ence", "", "able", "", "ible", "", "ate", "", "ive", "", "ize", "")
	case 'i':
		s.swaps(s.r2, "iti", "")
	case 'l':
		s.swaps(s.r2, "al", "")
	case 'm':
		s.swaps(s.r2, "ism", "")
	case 'n':
		if s.ends("sion") || s.ends("tion") {
			s.swap("ion", "", s.r2)
		}
	case 'r':
		s.swaps(s.r2, "er", "")
	case 's':
		s.swaps(s.r2, "ous", "")
	case 't':
		s.swaps(s.r2, "ant", "", "ement", "", "ment", "", "ent", "")
	}
}

// last is step 5.
func (s *stemming) last() {
	switch at := s.n - 1; {
	case s.ends("e"):
		if at >= s.r2 || at >= s.r1 && !s.short(at) {
			s.n--
		}
	case s.ends("ll"):
		s.swap("l", "", s.r2)
	}
}
