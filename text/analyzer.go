package text

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
	// MaxText is how many bytes of a text are read; the rest is ignored.
	MaxText = 64 << 10
	// MaxWord is the longest word that is read, in bytes. Longer ones are
	// encoded data and are ignored.
	MaxWord = 96
)

// Analyzer turns text into terms. It caches what it knows of the words that it
// met last.
//
// An analyzer made by NewAnalyzer is safe for concurrent use; one that numbers
// terms belongs to one goroutine.
type Analyzer struct {
	seed   maphash.Seed
	cache  []atomic.Pointer[word]
	number func(term string) uint32 // nil unless it numbers terms
}

// NewAnalyzer returns an analyzer that caches so many words, a power of two.
func NewAnalyzer(words int) *Analyzer {
	return &Analyzer{seed: maphash.MakeSeed(), cache: make([]atomic.Pointer[word], words)}
}

// NewNumberingAnalyzer returns an analyzer that writes numbers instead of
// terms: Analysis.Numbers rather than Terms. A word's terms are numbered when
// the word enters the cache. number must give the marks the numbers
// MarkStatement and MarkQuestion.
func NewNumberingAnalyzer(words int, number func(term string) uint32) *Analyzer {
	a := NewAnalyzer(words)
	a.number = number
	return a
}

// Traits describe a word or a text in addition to its terms. Their values are
// stored with turns.
type Traits uint8

const (
	FirstPerson Traits = 1 << iota // speaks of the speaker
	HasTime                        // a date, or a word such as "yesterday"
	HasNumber
	HasName       // a capital letter inside a sentence
	HasPreference // the speaker states a preference or a standing order
	HasQuestion   // a sentence ends in a question mark
	orderBit      // of a word only: at the start of a sentence it begins a standing order
	StatesChange  // a word may say that something has become different: see Cue

	// StatesClass means that a word belongs to a class of statements, such as
	// where somebody lives. A word has orderBit instead.
	StatesClass = orderBit
)

// Traits of a word that become a text's only in the right place.
const needPlace = HasPreference | orderBit

// preferenceReach is how many words after the "I" that it belongs to a word
// such as "prefer" may come.
const preferenceReach = 3

// cueReach is how many words a negation and what ends it may be apart: "no
// longer", "ne boit plus".
const cueReach = 4

// The marks end sentences in a list of terms. No term equals one.
const (
	EndOfStatement = "."
	EndOfQuestion  = "?"
)

// The numbers of the marks.
const (
	MarkStatement uint32 = iota
	MarkQuestion
)

// IsMark reports whether a term's number is that of a mark.
func IsMark(number uint32) bool { return number <= MarkQuestion }

// Analysis is what an Analyzer finds in a text. Its space is used again by the
// next call with it.
type Analysis struct {
	Terms    []string  // in order, repeated as often as they occur; a mark follows each sentence but an unfinished last one
	Numbers  []uint32  // the same as numbers, by an analyzer that numbers terms
	Proper   []string  // terms of words with a capital letter inside a sentence; not by an analyzer that numbers terms
	hints    timeHints // set for ASCII only
	ASCII    bool
	Traits   Traits
	Language Language // Unknown unless the text's function words reveal it
}

func (a *Analysis) reset() {
	a.Terms, a.Numbers, a.Proper, a.Traits, a.hints, a.Language = a.Terms[:0], a.Numbers[:0], a.Proper[:0], 0, 0, Unknown
}

// Dates returns the days that the analyzed text names; lower is that text in
// lower case.
func (a *Analysis) Dates(lower []byte, now time.Time) []Days {
	switch {
	case now.IsZero():
		return nil
	case !a.ASCII:
		return readDates(string(lower), now, a.Language)
	case a.hints == 0 && a.Language == English:
		return nil
	}
	return datesOf(string(lower), now.UTC(), a.hints, a.Language)
}

// Analyze reads text into out: NFKC, words by UAX #29, no stop words, stems; in
// scripts without spaces characters and pairs of them. The words are those of
// the language that the text's function words reveal, or else of the usual
// language.
func (a *Analyzer) Analyze(text string, usual Language, out *Analysis) {
	out.reset()
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "")
	}
	out.ASCII = IsASCII(text)
	if !out.ASCII && !norm.NFKC.IsNormalString(text) {
		text = norm.NFKC.String(text)
		out.ASCII = IsASCII(text)
	}
	out.Language = detect(text, out.ASCII, usual)
	r := reader{a: a, out: out, language: out.Language, clauseStart: true, sinceSelf: preferenceReach + 1, sinceNot: cueReach + 1, sinceMore: cueReach + 1}
	if r.language == Unknown {
		r.language = usual
	}
	r.read(text)
}

// reader reads one text.
type reader struct {
	a           *Analyzer
	out         *Analysis
	language    Language
	clauseStart bool   // at the start of a sentence or after a comma, where a capital letter reveals nothing
	sinceSelf   int    // words since the speaker named themselves
	sinceNot    int    // words since a negation
	sinceMore   int    // words since one that ends what is negated
	last        string // the character before, in scripts without spaces
	lastEnd     int
}

func (r *reader) read(text string) {
	if r.out.ASCII {
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
		r.endSentence(EndOfQuestion, MarkQuestion)
		r.out.Traits |= HasQuestion
		r.clauseStart = true
	case len(w) == n && (first == '.' || first == '!' || first == ';' || first == '\n' || first == '\r' || first == '。' || first == '！'):
		r.endSentence(EndOfStatement, MarkStatement)
		r.clauseStart = true
	case first == ',' || first == ':':
		r.clauseStart = true
	case first == '\r': // CR LF
		r.endSentence(EndOfStatement, MarkStatement)
	case first < utf8.RuneSelf && asciiClasses[first] > classJoiner && first != '.',
		first >= utf8.RuneSelf && !unicode.IsLetter(first) && !unicode.IsNumber(first):
	case len(w) > MaxWord:
		if r.out.ASCII {
			r.out.hints |= readTimeHints(strings.ToLower(w))
		}
	case Spaceless(first):
		r.readCharacters(text, from, end)
	default:
		r.readWord(text, from, end, first)
	}
}

func (r *reader) readWord(text string, from, end int, first rune) {
	w := text[from:end]
	known := r.a.word(r.language, w)
	r.sinceSelf++
	r.out.Traits |= known.traits &^ needPlace
	if known.traits&FirstPerson != 0 {
		r.sinceSelf = 0
	}
	if known.traits&HasPreference != 0 && r.sinceSelf <= preferenceReach || known.traits&orderBit != 0 && r.clauseStart && r.sentenceOpens() {
		r.out.Traits |= HasPreference
	}
	r.readCue(known, text[end:])
	if r.out.hints |= known.hints; known.hints&hintYear != 0 && end < len(text) && (text[end] == '-' || text[end] == '/') {
		r.out.hints |= hintISO
	}
	if r.a.number != nil {
		r.out.Numbers = append(r.out.Numbers, known.numbers...)
	} else {
		r.out.Terms = append(r.out.Terms, known.terms...)
	}
	if !r.clauseStart && unicode.IsUpper(first) && len(w) > 1 && w[1] != '\'' {
		r.out.Traits |= HasName
		if r.a.number == nil {
			r.out.Proper = append(r.out.Proper, known.terms...)
		}
	}
	r.clauseStart = r.clauseStart && (w == "Please" || w == "please")
}

// readCue notes whether a word, or the phrase that it begins, may say that
// something has changed.
func (r *reader) readCue(known *word, rest string) {
	r.sinceNot++
	r.sinceMore++
	cue := known.cue
	if known.phrases != nil {
		cue |= cueOfPhrases(*known.phrases, rest)
	}
	if cue&statesClass != 0 {
		r.out.Traits |= StatesClass
	}
	if cue&mayChange != 0 {
		r.out.Traits |= StatesChange
	}
	if known.cue&CueMore != 0 {
		r.sinceMore = 0
	}
	if known.cue&CueNot != 0 {
		r.sinceNot = 0
	}
	if known.cue&(CueMore|CueNot) != 0 && max(r.sinceNot, r.sinceMore) <= cueReach {
		r.out.Traits |= StatesChange
	}
}

// readCharacters reads characters of a script without spaces: each is a term,
// and so is each pair of neighbours.
func (r *reader) readCharacters(text string, from, end int) {
	for from < end {
		_, n := utf8.DecodeRuneInString(text[from:end])
		c := text[from : from+n]
		if cue := cueOfRun(text[from:]); cue != 0 {
			if cue&mayChange != 0 {
				r.out.Traits |= StatesChange
			}
			if cue&statesClass != 0 {
				r.out.Traits |= StatesClass
			}
		}
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
		r.out.Numbers = append(r.out.Numbers, r.a.number(term))
		return
	}
	r.out.Terms = append(r.out.Terms, term)
}

func (r *reader) endSentence(mark string, number uint32) {
	switch {
	case r.sentenceOpens():
	case r.a.number != nil:
		r.out.Numbers = append(r.out.Numbers, number)
	default:
		r.out.Terms = append(r.out.Terms, mark)
	}
}

// sentenceOpens reports whether the sentence has no terms yet.
func (r *reader) sentenceOpens() bool {
	if r.a.number != nil {
		n := len(r.out.Numbers)
		return n == 0 || IsMark(r.out.Numbers[n-1])
	}
	n := len(r.out.Terms)
	return n == 0 || r.out.Terms[n-1] == EndOfStatement || r.out.Terms[n-1] == EndOfQuestion
}
