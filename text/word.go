package text

import (
	"hash/maphash"
	"strings"
	"sync"
	"unicode"
)

// word is what is known of a word in a language, as it is spelled. It is never
// changed once it is in a cache.
type word struct {
	hash    uint64   // of the spelling and the language; 64 seeded bits, so that nobody can make two words share one
	terms   []string // stems; none for a stop word
	numbers []uint32 // of terms, by an analyzer that numbers them
	traits  Traits
	hints   timeHints
	cue     Cue
	phrases *[]cuePhraseEntry // that begin with the word, or nil
}

// word returns what is known of a word: from one of its two places in the
// cache, or by reading it. The newest word of a place moves the one there to
// the second place.
func (a *Analyzer) word(l Language, w string) *word {
	hash := maphash.String(a.seed, w) + uint64(l)*0x9e3779b97f4a7c15
	i := int(hash) & (len(a.cache) - 2)
	first := a.cache[i].Load()
	if first != nil && first.hash == hash {
		return first
	}
	if second := a.cache[i+1].Load(); second != nil && second.hash == hash {
		return second
	}
	var known word
	if lower := w[0] | 0x20; lower != w[0] && isPlain(w) { // "Garden" is "garden"
		known = *a.word(l, string(lower)+w[1:])
		first = a.cache[i].Load()
	} else {
		known = readWord(l, strings.Clone(w))
		if a.number != nil {
			for _, t := range known.terms {
				known.numbers = append(known.numbers, a.number(t))
			}
		}
	}
	known.hash = hash
	a.cache[i].Store(&known)
	if first != nil {
		a.cache[i+1].Store(first)
	}
	return &known
}

// readWord finds the terms of a word: its stem, and of a compound (an
// identifier, a host name, letters next to digits) the whole and the stems of
// its parts.
func readWord(l Language, w string) (known word) {
	lower := strings.ReplaceAll(strings.ToLower(w), "’", "'")
	english := englishWords()[lower]
	known.traits, known.hints = english.traits, readTimeHints(lower)
	known.cue, known.phrases = cueOf(l, lower)
	if isYear(lower) {
		known.traits |= HasTime
	}
	if isDigit(lower[0]) {
		known.traits |= HasNumber
	}
	if l <= English && english.stop || l > English && IsStop(l, lower) {
		return known
	}
	if isPlain(w) {
		known.terms = []string{Stem(l, lower)}
		return known
	}
	if i := strings.IndexByte(lower, '\''); i > 0 && i <= 2 && l > English && i+1 < len(lower) { // l'ami, d'un, qu'il
		lower, w = lower[i+1:], lower[i+1:]
		if IsStop(l, lower) {
			return known
		}
	}
	if base, ok := strings.CutSuffix(lower, "'s"); ok {
		if lower = base; IsStop(l, lower) {
			return known
		}
		w = w[:strings.LastIndexAny(w, "'’")]
	}
	parts := split(w)
	if len(parts) == 1 {
		known.terms = []string{Stem(l, strings.ToLower(parts[0]))}
		return known
	}
	if len(parts) > 1 {
		if whole := strings.Trim(lower, "_.:'"); whole != "" {
			known.terms = append(known.terms, whole)
		}
	}
	for _, p := range parts {
		if p = strings.ToLower(p); !IsStop(l, p) {
			known.terms = append(known.terms, Stem(l, p))
		}
	}
	return known
}

// englishWord is what the lists say of an English word in lower case.
type englishWord struct {
	traits Traits
	stop   bool
}

// englishWords joins the lists, so that a word is looked up once.
var englishWords = sync.OnceValue(func() map[string]englishWord {
	m := map[string]englishWord{}
	add := func(words map[string]bool, t Traits, stop bool) {
		for w := range words {
			e := m[w]
			m[w] = englishWord{traits: e.traits | t, stop: e.stop || stop}
		}
	}
	add(stopWords, 0, true)
	add(firstPersonWords, FirstPerson, false)
	add(timeWords, HasTime, false)
	add(numberWords, HasNumber, false)
	add(preferenceWords, HasPreference, false)
	add(orderWords, orderBit, false)
	return m
})

// isPlain reports whether a word is an ASCII letter followed by small ones, so
// that split leaves it whole.
func isPlain(w string) bool {
	for i := 1; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return asciiClasses[w[0]] == classLetter
}

func isYear(w string) bool {
	return len(w) == 4 && (w[:2] == "19" || w[:2] == "20") && isDigit(w[2]) && isDigit(w[3])
}

// split cuts a word at signs, where upper case follows lower case, and between
// letters and digits.
func split(w string) []string {
	var parts []string
	start := -1
	var before rune
	for i, r := range w {
		alnum := unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)
		if start >= 0 && (!alnum || unicode.IsLower(before) && unicode.IsUpper(r) || unicode.IsDigit(before) != unicode.IsDigit(r)) {
			parts = append(parts, w[start:i])
			start = -1
		}
		if alnum && start < 0 {
			start = i
		}
		before = r
	}
	if start >= 0 {
		parts = append(parts, w[start:])
	}
	return parts
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
