package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// language is how a text's words are stemmed and which of them are left out.
type language uint8

const (
	langUnknown language = iota
	langEnglish
	langGerman
	langFrench
	langSpanish
	langItalian
	langPortuguese
	langDutch
	langSwedish
	langDanish
	langNorwegian
	langFinnish
	langRussian
	langTurkish
	langHungarian
	langRomanian
	langArabic
	languages // their number
)

// stemmers are Snowball's.
var stemmers = [languages]func(*snowballstem.Env) bool{
	langUnknown: english.Stem, langEnglish: english.Stem, langGerman: german.Stem, langFrench: french.Stem,
	langSpanish: spanish.Stem, langItalian: italian.Stem, langPortuguese: portuguese.Stem, langDutch: dutch.Stem,
	langSwedish: swedish.Stem, langDanish: danish.Stem, langNorwegian: norwegian.Stem, langFinnish: finnish.Stem,
	langRussian: russian.Stem, langTurkish: turkish.Stem, langHungarian: hungarian.Stem, langRomanian: romanian.Stem,
	langArabic: arabic.Stem,
}

// detectWords bounds the words that are looked at to tell a text's language.
const detectWords = 64

// detect tells a text's language by its function words. Where several have as many, usual wins if it is one of them, then
// English; where none stand in the text it is langUnknown.
func detect(text string, ascii bool, usual language) language {
	if usual <= langEnglish && ascii && plainlyEnglish(text) {
		return langEnglish
	}
	var hits [languages]int
	for seen := 0; seen < detectWords; seen++ {
		var word string
		if word, text = nextWord(text); word == "" {
			break
		}
		for _, l := range languagesTold(word) {
			hits[l]++
		}
	}
	best := langEnglish
	for l := langGerman; l < languages; l++ {
		if hits[l] > hits[best] || hits[l] == hits[best] && l == usual {
			best = l
		}
	}
	if hits[best] == 0 {
		return langUnknown
	}
	return best
}

// nextWord cuts off the first run of letters and apostrophes, "" where there is none.
func nextWord(text string) (word, rest string) {
	from := -1
	for i := 0; i < len(text); {
		c, n := rune(text[i]), 1
		letter := c == '\'' || asciiKinds[text[i]] == kindLetter
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(text[i:])
			letter = c == '’' || unicode.IsLetter(c)
		}
		switch {
		case letter && from < 0:
			from = i
		case !letter && from >= 0:
			return text[from:i], text[i:]
		}
		i += n
	}
	if from < 0 {
		return "", ""
	}
	return text[from:], ""
}

// languagesTold are the languages in which a word is a function word or one of telltales.
func languagesTold(w string) []language {
	var lower [16]byte
	if len(w) > len(lower) {
		return languagesOf[strings.ToLower(w)]
	}
	for i := range len(w) {
		c := w[i]
		if c >= utf8.RuneSelf {
			return languagesOf[strings.ToLower(w)]
		}
		if c != '\'' {
			c |= 0x20
		}
		lower[i] = c
	}
	return languagesOf[string(lower[:len(w)])]
}

// plainlyEnglish reports whether a word stands in an ASCII text that only English has, and has often.
func plainlyEnglish(text string) bool {
	for seen := 0; seen < detectWords && text != ""; {
		var head uint64
		if len(text) >= 8 {
			head = eight(text)
		} else {
			head = few(text)
		}
		word, n := leading(head)
		if n == 0 {
			text = text[1:]
			continue
		}
		text = text[n:]
		for seen++; n == 8 && text != "" && asciiKinds[text[0]] == kindLetter; { // none is that long
			text = text[1:]
		}
		if onlyEnglish.has(word | blanks) {
			return true
		}
	}
	return false
}

const blanks = ' ' * eachByte // which make small letters of capitals, too

// onlyEnglish are the words for plainlyEnglish.
var onlyEnglish = func() (table headTable) {
	for w := range strings.FieldsSeq(`the and are what when where who how why did does my you your with this that they from about which can could
		would should were been`) {
		i := table.place(few(w) | blanks)
		for table[i] != 0 {
			i = (i + 1) % uint64(len(table))
		}
		table[i] = few(w) | blanks
	}
	return table
}()

// headTable is a hash table of words of at most eight letters: these, the first lowest, and blanks.
type headTable [128]uint64

func (t *headTable) place(word uint64) uint64 { return word * languageFactor >> 57 }

func (t *headTable) has(word uint64) bool {
	for i := t.place(word); t[i] != 0; i = (i + 1) % uint64(len(t)) {
		if t[i] == word {
			return true
		}
	}
	return false
}

// stemIn reduces a lower-case word to its stem: irregular English forms by table, the rest by Snowball. The script decides
// before the language does.
func stemIn(l language, w string) string {
	if len(w) < 3 && isASCII(w) {
		return w
	}
	r, _ := utf8.DecodeRuneInString(w)
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		l = langRussian
	case unicode.Is(unicode.Arabic, r):
		l = langArabic
	case !unicode.Is(unicode.Latin, r) && !isDigit(w[0]):
		return w
	case stemsAsEnglish(l):
		if base, ok := irregular[w]; ok {
			w = base
		}
		w = plain(w)
		l = langEnglish
	}
	return stemBy(l, w, unicode.Is(unicode.Latin, r))
}

// isLower reports whether a word is lower-case ASCII letters.
func isLower(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}

// stemsAsEnglish reports whether words in Latin letters that stand in a text of the language are taken for English ones.
func stemsAsEnglish(l language) bool {
	return l == langUnknown || l == langEnglish || l == langRussian || l == langArabic
}

// stemKnown is stemIn for ASCII letters; base is what irregular has for them.
func stemKnown(l language, w, base string) string {
	if len(w) < 3 {
		return w
	}
	if stemsAsEnglish(l) {
		if l = langEnglish; base != "" {
			w = base
		}
	}
	return stemBy(l, w, true)
}

func stemBy(l language, w string, latin bool) string {
	if l == langEnglish && len(w) <= maxWord && isLower(w) {
		return stemEnglish(w)
	}
	env := snowballstem.NewEnv(w)
	stemmers[l](env)
	if l != langEnglish && latin {
		return plain(env.Current()) // people leave accents out
	}
	return env.Current()
}

// plain takes the accents off the Latin letters of European languages.
func plain(w string) string {
	if isASCII(w) {
		return w
	}
	return accents.Replace(w)
}

var accents = strings.NewReplacer(
	"à", "a", "á", "a", "â", "a", "ã", "a", "ä", "a", "å", "a", "ă", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e",
	"ì", "i", "í", "i", "î", "i", "ï", "i", "ı", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ö", "o", "ő", "o", "ø", "o",
	"ù", "u", "ú", "u", "û", "u", "ü", "u", "ű", "u", "ý", "y", "ÿ", "y", "ß", "ss", "æ", "ae", "œ", "oe", "ş", "s", "ș", "s", "ţ", "t", "ț", "t", "ğ", "g",
)

func stem(w string) string { return stemIn(langEnglish, w) }
