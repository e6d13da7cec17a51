package recall

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// maxText bounds the text of one memory or query that is read, in bytes; the rest is left out.
const maxText = 64 << 10

// maxWord bounds a word, in bytes; longer ones (encoded data) are left out.
const maxWord = 96

// analyzer turns text into terms. It is safe for concurrent use: its only state is a cache of a fixed number of words.
type analyzer struct {
	seed  wordSeed
	cache []atomic.Pointer[word]
	// of is there where it reads for an index. Such an analyzer is of one goroutine, the one that builds the index.
	of *reading
}

// How many words an analyzer remembers, powers of two: a table in which a newer word takes the place of an older one. The
// engine's own serves questions and new turns; a large load has one for its time.
const (
	cachedWords = 1 << 13
	loadWords   = 1 << 15 // of finding.known
)

func newAnalyzer(words int) *analyzer {
	return &analyzer{seed: newWordSeed(), cache: make([]atomic.Pointer[word], words)}
}

// newAnalyzerOf returns one that reads for an index.
func newAnalyzerOf(ix *index, words int) *analyzer {
	seed := newWordSeed()
	return &analyzer{seed: seed, of: &reading{ix: ix, finding: newFinding(seed, words)}}
}

// traits say what a word or a text is about beside its terms.
type traits uint8

const (
	firstPerson traits = 1 << iota // speaks of the speaker
	hasTime                        // a date, or a word such as yesterday
	hasNumber
	hasName // a capital letter inside a sentence
	wishes  // says how the speaker likes things to be, or orders them for good
	asks    // a sentence ends in a question mark
	orders  // of a word only: at the start of a sentence it begins an order
)

// wishWithin is how many words a word such as "prefer" may stand behind the "I" that it belongs to.
const wishWithin = 3

const ofWords = wishes | orders // those traits of a word that are not at once the text's

// The marks stand in a text's terms where a sentence ends. No term equals one.
const (
	endOfStatement = "."
	endOfQuestion  = "?"
)

// analysis is what is known of a text.
type analysis struct {
	of       *index     // the analyzer's
	terms    []string   // in order, with repetitions, and a mark after each sentence but an unfinished last one
	standing []standing // of terms
	numbers  []uint32   // where there is an index: those of terms, instead of them
	proper   []string   // those of words with a capital letter inside a sentence
	hints    timeHints  // only of ASCII
	ascii    bool
	traits   traits
	language language // langUnknown where nothing tells it
	sink     byte     // gives the reads of ahead a use
}

func (a *analysis) endSentence(mark string, number uint32) {
	switch {
	case a.sentenceOpens():
	case a.of != nil:
		a.numbers = append(a.numbers, number)
	default:
		a.add(mark)
	}
}

func (a *analysis) add(term string) {
	if a.of != nil {
		a.numbers = append(a.numbers, a.of.term(term))
		return
	}
	a.terms, a.standing = append(a.terms, term), append(a.standing, unsure)
}

// sentenceOpens reports whether no term of a sentence was read since the last mark.
func (a *analysis) sentenceOpens() bool {
	if a.of != nil {
		return atStart(a.numbers)
	}
	n := len(a.terms)
	return n == 0 || a.terms[n-1] == endOfStatement || a.terms[n-1] == endOfQuestion
}

// analyze reads text: NFKC, words by UAX #29, stop words out, stems; scripts without spaces by characters and pairs of
// them.
//
// The language is the text's own where its function words tell it, else the one given.
func (a *analyzer) analyze(text string, otherwise language, out *analysis) {
	out.of, out.numbers = nil, out.numbers[:0]
	out.terms, out.standing, out.proper, out.traits, out.hints = out.terms[:0], out.standing[:0], out.proper[:0], 0, 0
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	ascii := a.isASCII(text)
	if !ascii && !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
		ascii = a.isASCII(text)
	}
	out.ascii = ascii
	if a.of != nil {
		out.of = a.of.ix
		a.readFor(text, ascii, otherwise, out)
		return
	}
	a.read(text, span32{0, int32(len(text))}, out.tongue(text, ascii, otherwise), &sentence{start: true, spoke: wishWithin + 1}, out)
}

// tongue tells a text's language, and returns that in which its words are read.
func (a *analysis) tongue(text string, ascii bool, otherwise language) language {
	if a.language = detect(text, ascii, otherwise); a.language == langUnknown {
		return otherwise
	}
	return a.language
}

// sentence is where reading has come to.
type sentence struct {
	start bool // at its start or after a comma, where a capital letter says nothing
	spoke int  // how many words ago the speaker named themselves
}

// read reads what stands at a place of a text, which begins and ends where a word or a sign does.
func (a *analyzer) read(text string, place span32, lang language, sentence *sentence, out *analysis) {
	base, ascii := int(place.from), out.ascii
	var it *words.Iterator[string]
	if !ascii {
		it = words.FromString(text[base:]) // and what follows, or what is cut off there would end otherwise
	}
	prev, prevEnd := "", -1 // the character before, in scripts without spaces
	from, end := 0, 0
	var next [wordsAhead]asciiToken // of ASCII
	read, at := 0, 0                // of next
	start, spoke := sentence.start, sentence.spoke
	for {
		var w string
		var e *word // what is known of it
		if ascii {
			if at == read {
				if read, at = a.ahead(lang, text, end, &next, out), 0; read == 0 {
					break
				}
			}
			t := &next[at]
			at++
			from, end = int(t.from), int(t.end)
			w = text[from:end]
			if t.place >= 0 {
				if e = a.cache[t.place].Load(); e.hash != t.hash { // another has taken its place
					e = a.word(lang, w)
				}
			}
		} else {
			if !it.Next() || base+it.Start() >= int(place.to) {
				break
			}
			w, from = it.Value(), base+it.Start()
		}
		r, n := rune(w[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(w)
		}
		switch {
		case e != nil: // a word that has come before
		case r == '?' || r == '؟' || r == '？':
			out.endSentence(endOfQuestion, markQuestion)
			out.traits |= asks
			start = true
			continue
		case len(w) == n && (r == '.' || r == '!' || r == ';' || r == '\n' || r == '\r' || r == '。' || r == '！'):
			out.endSentence(endOfStatement, markStatement)
			start = true
			continue
		case r == ',' || r == ':':
			start = true
			continue
		case r == '\r': // CR LF
			out.endSentence(endOfStatement, markStatement)
			continue
		case r < utf8.RuneSelf && asciiKinds[r] > kindJoiner && r != '.' || r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsNumber(r):
			continue
		case len(w) > maxWord:
			if ascii {
				out.hints |= readTimeHints(strings.ToLower(w))
			}
			continue
		case spaceless(r):
			for i := 0; i < len(w); {
				_, n := utf8.DecodeRuneInString(w[i:])
				c := w[i : i+n]
				if !particles[c] {
					out.add(c)
				}
				if prevEnd == from+i {
					if pair := text[prevEnd-len(prev) : prevEnd+n]; !particles[pair] && !hinges(prev, c) {
						out.add(pair)
					}
				}
				prev, prevEnd = c, from+i+n
				i += n
			}
			continue
		}
		var m meaning
		switch {
		case a.of != nil:
			m = a.meaning(lang, w)
		case e == nil:
			e = a.word(lang, w)
			fallthrough
		default:
			m.traits = e.traits
		}
		spoke++
		if m.traits != 0 {
			out.traits |= m.traits &^ ofWords
			if m.traits&firstPerson != 0 {
				spoke = 0
			}
			if m.traits&wishes != 0 && spoke <= wishWithin || m.traits&orders != 0 && start && out.sentenceOpens() {
				out.traits |= wishes
			}
		}
		if e != nil && e.hints != 0 {
			if out.hints |= e.hints; e.hints&hintYear != 0 && end < len(text) && (text[end] == '-' || text[end] == '/') {
				out.hints |= hintISO
			}
		}
		switch {
		case a.of != nil:
			out.numbers = a.of.appendTerms(out.numbers, m)
		case len(e.terms) != 1:
			for _, t := range e.terms {
				out.add(t)
			}
		default:
			out.terms, out.standing = append(out.terms, e.terms[0]), append(out.standing, e.standing)
		}
		if !start && unicode.IsUpper(r) && len(w) > 1 && w[1] != '\'' {
			out.traits |= hasName
			if e != nil { // else nobody asks
				out.proper = append(out.proper, e.terms...)
			}
		}
		start = start && (w == "Please" || w == "please")
	}
	sentence.start, sentence.spoke = start, spoke
}

// languageFactor tells the hashes of a word in one language from those in another.
const languageFactor = 0x9e3779b97f4a7c15

func (a *analyzer) hash(l language, w string) uint64 {
	return a.seed.of(w) + uint64(l)*languageFactor
}

// place is the first of a word's two places in the cache.
func (a *analyzer) place(hash uint64) int { return int(hash) & (len(a.cache) - 2) }

// word finds a word in its two places in the cache, or reads it, which moves the one that stands in the first to the second.
func (a *analyzer) word(l language, w string) *word {
	hash := a.hash(l, w)
	i := a.place(hash)
	first := a.cache[i].Load()
	if first != nil && first.hash == hash {
		return first
	}
	if e := a.cache[i+1].Load(); e != nil && e.hash == hash {
		return e
	}
	var e *word
	if lower := w[0] | 0x20; lower != w[0] && isPlain(w) { // but for its capital, another
		e = a.word(l, string(lower)+w[1:]).copy()
		first = a.cache[i].Load()
	} else {
		e = readWord(l, strings.Clone(w))
	}
	e.hash = hash
	a.cache[i].Store(e)
	if first != nil {
		a.cache[i+1].Store(first)
	}
	return e
}

// word is what one word of a text, as it is spelled there, amounts to. A look at one is a look at cold memory, so it fits one line
// of a cache, and is known by a hash of 64 bits: that two words share one is out of reach of chance, and of those who don't know the
// process's seed.
type word struct {
	hash     uint64 // of the word and its language
	traits   traits
	hints    timeHints
	standing standing  // of the term, if there is one
	terms    []string  // stems; none for a stop word
	sole     [1]string // where terms is, if there is one
}

// readWord finds the terms of one word: its stem, and for a compound (an identifier, a host name, letters next to digits)
// the whole and the stems of its parts.
func readWord(l language, w string) *word {
	lower := strings.ReplaceAll(strings.ToLower(w), "’", "'")
	known := spellings()[lower]
	e := &word{traits: known.traits, hints: readTimeHints(lower)}
	if isYear(lower) {
		e.traits |= hasTime
	}
	if isDigit(lower[0]) {
		e.traits |= hasNumber
	}
	if l <= langEnglish && known.stop || l > langEnglish && isStop(l, lower) {
		return e
	}
	if isPlain(w) {
		e.take(stemKnown(l, lower, known.base))
		if e.sole[0] == lower {
			e.standing = known.standing
		} else {
			e.standing = spellings()[e.sole[0]].standing
		}
		return e
	}
	if i := strings.IndexAny(lower, "'"); i > 0 && i <= 2 && l > langEnglish && i+1 < len(lower) { // l'ami, d'un, dell'arte is longer
		lower, w = lower[i+1:], lower[i+1:]
		if isStop(l, lower) {
			return e
		}
	}
	if base, ok := strings.CutSuffix(lower, "'s"); ok {
		if lower = base; isStop(l, lower) {
			return e
		}
		w = w[:strings.LastIndexAny(w, "'’")]
	}
	parts := split(w)
	if len(parts) > 1 {
		if whole := strings.Trim(lower, "_.:'"); whole != "" {
			e.terms = append(e.terms, whole)
		}
	}
	if len(parts) == 1 {
		e.take(stemIn(l, strings.ToLower(parts[0])))
		e.standing = spellings()[e.sole[0]].standing
		return e
	}
	for _, p := range parts {
		p = strings.ToLower(p)
		if isStop(l, p) {
			continue
		}
		e.terms = append(e.terms, stemIn(l, p))
	}
	if len(e.terms) == 1 {
		e.standing = spellings()[e.terms[0]].standing
	}
	return e
}

// copy is a word of the same terms.
func (e *word) copy() *word {
	c := *e
	if len(c.terms) == 1 {
		c.take(c.sole[0])
	}
	return &c
}

// take makes a stem the word's one term.
func (e *word) take(stem string) {
	e.sole[0] = stem
	e.terms = e.sole[:]
}

// isPlain reports whether a word is ASCII letters, lower-case ones from the second on: split leaves it whole.
func isPlain(w string) bool {
	for i := 1; i < len(w); i++ {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return asciiKinds[w[0]] == kindLetter
}

func isYear(w string) bool {
	return len(w) == 4 && (w[:2] == "19" || w[:2] == "20") && isDigit(w[2]) && isDigit(w[3])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// split cuts a word at signs, at changes from lower to upper case, and between letters and digits.
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

// spaceless reports characters of scripts that are written without spaces.
func spaceless(r rune) bool {
	switch {
	case r < 0xe00:
		return false
	case r <= 0xeff: // Thai, Lao
		return true
	case r >= 0x1000 && r <= 0x109f, r >= 0x1780 && r <= 0x17ff: // Myanmar, Khmer
		return true
	case r >= 0x1100 && r <= 0x11ff, r >= 0x3040 && r <= 0x30ff, r >= 0x3130 && r <= 0x318f, r >= 0x31f0 && r <= 0x31ff,
		r >= 0x3400 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7af, r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x323af:
		return true
	}
	return false
}

// isASCII is isASCII, and has the text's blocks read where they are wanted.
func (a *analyzer) isASCII(text string) (ascii bool) {
	if a.of == nil {
		return isASCII(text)
	}
	a.of.blocks, ascii = blocksOf(text, a.of.blocks)
	return ascii
}

func isASCII(s string) bool {
	for len(s) >= 8 {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
		s = s[8:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
