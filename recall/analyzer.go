package recall

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxText is how many bytes of a text are read; the rest is ignored.
	maxText = 64 << 10
	// maxWord is the longest word that is read, in bytes. Longer ones are encoded data and are ignored.
	maxWord = 96
)

// analyzer turns text into terms. It caches what it knows of the words that it met last.
//
// An analyzer made by newAnalyzer is safe for concurrent use; one that numbers terms belongs to one goroutine.
type analyzer struct {
	seed   maphash.Seed
	cache  []atomic.Pointer[word]
	number func(term string) uint32 // nil unless it numbers terms
}

// newAnalyzer returns an analyzer that caches so many words, a power of two.
func newAnalyzer(words int) *analyzer {
	return &analyzer{seed: maphash.MakeSeed(), cache: make([]atomic.Pointer[word], words)}
}

// newNumberingAnalyzer returns an analyzer that writes numbers instead of terms: analysis.numbers rather than terms. A word's terms are
// numbered when the word enters the cache. number must give the marks the numbers markStatement and markQuestion.
func newNumberingAnalyzer(words int, number func(term string) uint32) *analyzer {
	a := newAnalyzer(words)
	a.number = number
	return a
}

// traits describe a word or a text beside its terms. Their values are stored with turns.
type traits uint8

const (
	firstPerson traits = 1 << iota // speaks of the speaker
	hasTime                        // a date, or a word such as "yesterday"
	hasNumber
	hasName  // a capital letter inside a sentence
	wishes   // the speaker states a preference or a standing order
	asks     // a sentence ends in a question mark
	orderBit // of a word only: at the start of a sentence it begins a standing order
)

// Traits of a word that become a text's only in the right place.
const needPlace = wishes | orderBit

// preferenceReach is how many words after the "I" that it belongs to a word such as "prefer" may come.
const preferenceReach = 3

// The marks end sentences in a list of terms. No term equals one.
const (
	endOfStatement = "."
	endOfQuestion  = "?"
)

// The numbers of the marks.
const (
	markStatement uint32 = iota
	markQuestion
)

// isMark reports whether a term's number is that of a mark.
func isMark(number uint32) bool { return number <= markQuestion }

// analysis is what an analyzer finds in a text. It can be used again, which overwrites it.
type analysis struct {
	terms    []string  // in order, repeated as often as they occur; a mark follows each sentence but an unfinished last one
	numbers  []uint32  // the same as numbers, by an analyzer that numbers terms
	proper   []string  // terms of words with a capital letter inside a sentence; not by an analyzer that numbers terms
	hints    timeHints // set for ASCII only
	ascii    bool
	traits   traits
	language language // langUnknown unless the text's function words reveal it
}

func (a *analysis) reset() {
	a.terms, a.numbers, a.proper, a.traits, a.hints, a.language = a.terms[:0], a.numbers[:0], a.proper[:0], 0, 0, langUnknown
}

// dates returns the days that the analyzed text names; lower is that text in lower case.
func (a *analysis) dates(lower []byte, now time.Time) []days {
	switch {
	case now.IsZero():
		return nil
	case !a.ascii:
		return readDates(string(lower), now, a.language)
	case a.hints == 0 && a.language == langEnglish:
		return nil
	}
	return datesOf(string(lower), now.UTC(), a.hints, a.language)
}

// analyze reads text into out: NFKC, words by UAX #29, no stop words, stems; in scripts without spaces characters and pairs of them. The
// words are those of the language that the text's function words reveal, or else of the usual language.
func (a *analyzer) analyze(text string, usual language, out *analysis) {
	out.reset()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	out.ascii = isASCII(text)
	if !out.ascii && !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
		out.ascii = isASCII(text)
	}
	out.language = detect(text, out.ascii, usual)
	r := reader{a: a, out: out, language: out.language, clauseStart: true, sinceSelf: preferenceReach + 1}
	if r.language == langUnknown {
		r.language = usual
	}
	r.read(text)
}

// reader reads one text.
type reader struct {
	a           *analyzer
	out         *analysis
	language    language
	clauseStart bool   // at the start of a sentence or after a comma, where a capital letter reveals nothing
	sinceSelf   int    // words since the speaker named themselves
	last        string // the character before, in scripts without spaces
	lastEnd     int
}

func (r *reader) read(text string) {
	if r.out.ascii {
		for from, end := 0, 0; from < len(text); from = end {
			end = from + asciiWord(text[from:])
			if class := asciiClasses[text[from]]; class != classBlank && class != classIgnored {
				r.readToken(text, from, end)
			}
		}
		return
	}
	for it := words.FromString(text); it.Next(); {
		r.readToken(text, it.Start(), it.End())
	}
}

// readToken reads a word, a sign or a run of blanks.
func (r *reader) readToken(text string, from, end int) {
	w := text[from:end]
	first, n := rune(w[0]), 1
	if first >= utf8.RuneSelf {
		first, n = utf8.DecodeRuneInString(w)
	}
	switch {
	case first == '?' || first == '؟' || first == '？':
		r.endSentence(endOfQuestion, markQuestion)
		r.out.traits |= asks
		r.clauseStart = true
	case len(w) == n && (first == '.' || first == '!' || first == ';' || first == '\n' || first == '\r' || first == '。' || first == '！'):
		r.endSentence(endOfStatement, markStatement)
		r.clauseStart = true
	case first == ',' || first == ':':
		r.clauseStart = true
	case first == '\r': // CR LF
		r.endSentence(endOfStatement, markStatement)
	case first < utf8.RuneSelf && asciiClasses[first] > classJoiner && first != '.',
		first >= utf8.RuneSelf && !unicode.IsLetter(first) && !unicode.IsNumber(first):
	case len(w) > maxWord:
		if r.out.ascii {
			r.out.hints |= readTimeHints(strings.ToLower(w))
		}
	case spaceless(first):
		r.readCharacters(text, from, end)
	default:
		r.readWord(text, from, end, first)
	}
}

func (r *reader) readWord(text string, from, end int, first rune) {
	w := text[from:end]
	known := r.a.word(r.language, w)
	r.sinceSelf++
	r.out.traits |= known.traits &^ needPlace
	if known.traits&firstPerson != 0 {
		r.sinceSelf = 0
	}
	if known.traits&wishes != 0 && r.sinceSelf <= preferenceReach || known.traits&orderBit != 0 && r.clauseStart && r.sentenceOpens() {
		r.out.traits |= wishes
	}
	if r.out.hints |= known.hints; known.hints&hintYear != 0 && end < len(text) && (text[end] == '-' || text[end] == '/') {
		r.out.hints |= hintISO
	}
	if r.a.number != nil {
		r.out.numbers = append(r.out.numbers, known.numbers...)
	} else {
		r.out.terms = append(r.out.terms, known.terms...)
	}
	if !r.clauseStart && unicode.IsUpper(first) && len(w) > 1 && w[1] != '\'' {
		r.out.traits |= hasName
		if r.a.number == nil {
			r.out.proper = append(r.out.proper, known.terms...)
		}
	}
	r.clauseStart = r.clauseStart && (w == "Please" || w == "please")
}

// readCharacters reads characters of a script without spaces: each is a term, and so is each pair of neighbours.
func (r *reader) readCharacters(text string, from, end int) {
	for from < end {
		_, n := utf8.DecodeRuneInString(text[from:end])
		c := text[from : from+n]
		if !particles[c] {
			r.addTerm(c)
		}
		if r.last != "" && r.lastEnd == from {
			if pair := text[from-len(r.last) : from+n]; !particles[pair] && !hinges(r.last, c) {
				r.addTerm(pair)
			}
		}
		from += n
		r.last, r.lastEnd = c, from
	}
}

func (r *reader) addTerm(term string) {
	if r.a.number != nil {
		r.out.numbers = append(r.out.numbers, r.a.number(term))
		return
	}
	r.out.terms = append(r.out.terms, term)
}

func (r *reader) endSentence(mark string, number uint32) {
	switch {
	case r.sentenceOpens():
	case r.a.number != nil:
		r.out.numbers = append(r.out.numbers, number)
	default:
		r.out.terms = append(r.out.terms, mark)
	}
}

// sentenceOpens reports whether the sentence has no terms yet.
func (r *reader) sentenceOpens() bool {
	if r.a.number != nil {
		n := len(r.out.numbers)
		return n == 0 || isMark(r.out.numbers[n-1])
	}
	n := len(r.out.terms)
	return n == 0 || r.out.terms[n-1] == endOfStatement || r.out.terms[n-1] == endOfQuestion
}
